// Starts the explorables of a page; where this does not run, their numbers stay.
for (const root of document.querySelectorAll("[data-explorable]")) {
  import(`./${root.dataset.explorable}.mjs`)
    .then(({ mount }) => mount(root, JSON.parse(root.dataset.settings)))
    .catch(() => { root.dataset.state = "failed"; });
}
