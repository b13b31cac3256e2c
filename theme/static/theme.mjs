// What a page does: colours, search, drawers, the section that is read, boxes that the keyboard can scroll.
// A plain script: a browser loads no module from a folder on a disk.

// Every use of the browser's storage can throw: where a reader blocks site data, where it is full, and
// in a frame of another site. What cannot be stored is kept while the page is open.
for (const name of ["localStorage", "sessionStorage"]) {
  const memory = new Map();
  const attempt = (use, otherwise) => { try { return use(real()); } catch { return otherwise(); } };
  let real = () => { throw 0; };
  try { const found = window[name]; real = () => found; } catch { /* blocked: memory alone */ }
  Object.defineProperty(window, name, { configurable: true, value: {
    getItem: key => memory.get(`${key}`) ?? attempt(store => store.getItem(key), () => null),
    setItem: (key, value) => attempt(
      store => { store.setItem(key, value); memory.delete(`${key}`); },
      () => { memory.set(`${key}`, `${value}`); }),
    get lasts() { return !memory.size; }, // what is kept outlives the page
    removeItem: key => { memory.delete(`${key}`); attempt(store => store.removeItem(key), () => {}); },
  } });
}
{
  const all = (selector) => [...document.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const root = document.documentElement.dataset;

  // Colours: light, dark, or as the system has it.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const modes = () => dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
  const paint = () => {
    if (!modes().includes(root.mode)) root.mode = "auto";
    root.theme = root.mode !== "auto" ? root.mode : dark.matches ? "dark" : "light";
    for (const word of all(".mode")) word.textContent = `: ${root.mode}`;
  };
  dark.addEventListener("change", paint);
  one(".theme-switch-button").addEventListener("click", () => {
    root.mode = modes()[(modes().indexOf(root.mode) + 1) % 3];
    localStorage.setItem("mode", root.mode);
    paint();
  });
  paint();

  // The search: a dialog, or the field of the page that shows what is found.
  const dialog = one("#search-dialog");
  const search = () => {
    const field = one("main .search-field input");
    if (field) field.select(), field.scrollIntoView({ block: "center" });
    else if (dialog.open) dialog.close();
    else dialog.showModal(), dialog.querySelector("input").select(); // what is typed replaces the last word
  };
  const apple = /^(Mac|iPhone)/.test(navigator.platform);
  if (apple) one(".search-button kbd").textContent = "⌘K";
  one(".search-button").addEventListener("click", search);
  dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); }); // beside it
  addEventListener("keydown", (event) => {
    const { key, altKey, shiftKey, ctrlKey, metaKey } = event;
    if (key.toLowerCase() !== "k" || altKey || shiftKey || !(apple ? metaKey && !ctrlKey : ctrlKey && !metaKey)) return;
    event.preventDefault();
    search();
  }, true);

  // Drawers are popovers; one closes when a place on this page is chosen in it.
  for (const drawer of all(".book")) drawer.addEventListener("click", ({ target }) => {
    if (target.closest("a[href^='#']") && drawer.matches(":popover-open")) drawer.hidePopover();
  });

  // What scrolls can be reached by the keyboard.
  const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 20));
  const BOXES = "pre:not(.live-code > pre), .cell_output > .output, .table-box";
  const watch = new ResizeObserver((entries) => {
    const seen = entries.map(({ target: box }) => [box, box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight]);
    for (const [box, scrolls] of seen) scrolls ? box.tabIndex = 0 : box.removeAttribute("tabindex");
  });
  const look = () => all(BOXES).forEach((box) => watch.observe(box));
  new MutationObserver(() => whenIdle(look)).observe(one("#main-content"), { subtree: true, childList: true });

  // The contents beside a page follow the reader. Exercises have one line for all.
  const panel = one(".book");
  const lines = all(".page-toc ul ul a[href^='#']").filter((link) => !link.closest("[href='#exercises'] + ul"))
    .map((link) => [link, document.getElementById(decodeURIComponent(link.hash.slice(1)))]).filter(([, section]) => section);
  let marked;
  // The list is moved by whole lines, under the name of the book, which stays.
  const bring = (line) => {
    const [title, ...links] = [...panel.querySelectorAll("a")].filter((link) => link.offsetHeight);
    const first = links.find((link) => link.offsetTop >= line.offsetTop - panel.clientHeight / 2);
    panel.scrollTop = first === links[0] ? 0 : first.offsetTop - title.offsetHeight;
  };
  const follow = () => {
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const [here] = lines.filter(([, section]) => atEnd || section.getBoundingClientRect().top <= innerHeight / 4).at(-1) ?? [];
    if (here === marked) return;
    marked?.removeAttribute("aria-current");
    here?.setAttribute("aria-current", "true");
    marked = here;
    if (!here || !wide) return;
    const [line, room] = [here, panel].map((box) => box.getBoundingClientRect());
    if (line.top < room.top + 100 || line.bottom > room.bottom - 40) bring(here);
  };
  addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
  addEventListener("resize", follow);

  // Notes beside the text stand where nothing else does: at their line, or a few lines above or below it.
  const notes = all(".beside");
  const place = () => {
    const edge = one(".reading").getBoundingClientRect().left + 650;
    const boxes = all(".reading :is(summary, img, svg, canvas, table, h1, .live-mark)").filter((box) => box.checkVisibility())
      .map((box) => box.getBoundingClientRect()).filter((box) => box.right > edge);
    const found = notes.map((note) => {
      const { top, height } = note.getBoundingClientRect(), at = top - (parseFloat(note.style.marginTop) || 0);
      const by = note.checkVisibility() ? [0, -22, 22, -44, 44, -66, -88].find((by) => !boxes.some((box) => box.bottom > at + by - 8 && box.top < at + by + height + 8)) : undefined;
      if (by !== undefined) boxes.push(new DOMRect(edge, at + by, 100, height));
      return by;
    });
    notes.forEach((note, i) => {
      note.style.marginTop = `${found[i] ?? 0}px`;
      note.classList.toggle("placed", found[i] !== undefined);
    });
  };
  if (notes.length) new ResizeObserver(place).observe(one(".reading"));

  // On a phone an exercise is one line until somebody opens it, or a link leads into it.
  if (matchMedia("(max-width: 639px)").matches) {
    const opens = (exercise, opened) => {
      exercise.classList.toggle("shut", !opened);
      exercise.querySelector(".opens").setAttribute("aria-expanded", opened);
    };
    for (const exercise of all("section.exercise")) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "opens", ariaLabel: "The exercise" });
      button.addEventListener("click", () => opens(exercise, exercise.classList.contains("shut")));
      exercise.querySelector("h3").append(button);
      opens(exercise, false);
    }
    const arrive = () => {
      const place = document.getElementById(decodeURIComponent(location.hash.slice(1))), exercise = place?.closest("section.exercise");
      if (exercise) opens(exercise, true), place.scrollIntoView();
    };
    addEventListener("hashchange", arrive);
    arrive();
  }

  // On a phone, sections that are far below have not been laid out yet (theme.css). Now they are, one by
  // one, so that no tap waits for all of them.
  const wide = panel.checkVisibility(); // the contents stand beside the page
  const far = matchMedia("(min-width: 980px)").matches ? [] : all(".reading > section section");
  const layOut = () => {
    const section = far.shift();
    if (section) {
      section.style.contentVisibility = "visible";
      return whenIdle(layOut);
    }
    root.laidOut = "";
    dispatchEvent(new Event("laidout")); // live cells wait for it
    look();
  };
  addEventListener("load", () => {
    if (wide || scrollY) follow();
    const page = panel.querySelector("a.current");
    if (wide && page) bring(page);
    layOut();
  });
}
