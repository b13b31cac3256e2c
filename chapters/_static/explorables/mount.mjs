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
  // The four pictures of the first page play once when they come into view.
  const seen = new IntersectionObserver((all) => {
    for (const { target } of all.filter((one) => one.isIntersecting)) {
      seen.unobserve(target);
      target.classList.add("ex-seen");
      setTimeout(() => target.classList.remove("ex-seen"), 4000); // and again under a pointer
    }
  }, { threshold: 0.9 });
  for (const one of document.querySelectorAll(".strip .picture")) seen.observe(one);
}
