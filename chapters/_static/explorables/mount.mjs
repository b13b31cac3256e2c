// Starts the explorables of a page; where this does not run, their numbers stay.
export function start(kinds) {
  for (const root of document.querySelectorAll("[data-explorable]")) {
    try {
      kinds[root.dataset.explorable].mount(root, JSON.parse(root.dataset.settings));
    } catch (error) {
      root.dataset.state = "failed";
      reportError(error);
    }
  }
}
