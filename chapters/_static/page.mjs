// What the buttons over a page do, and what a keyboard and a phone need. It stands in the place of
// the theme's scripts, which lay a page out once more for each box that they look at.
// It is loaded as a plain script, because a browser loads no module from a folder on a disk.
{
  const all = (selector) => [...document.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const wide = matchMedia("(min-width: 992px)"); // the contents of the book stand beside the page
  const later = (work, delay) => {
    let waiting;
    return () => {
      clearTimeout(waiting);
      waiting = setTimeout(work, delay);
    };
  };

  // Colours: light, dark, or as the system has it. The head of the page has put on the right ones.
  const root = document.documentElement.dataset;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const modes = () => dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
  const paint = () => {
    if (!modes().includes(root.mode)) root.mode = "auto";
    root.theme = root.mode !== "auto" ? root.mode : dark.matches ? "dark" : "light";
  };
  dark.addEventListener("change", paint);
  for (const button of all(".theme-switch-button")) button.addEventListener("click", () => {
    root.mode = modes()[(modes().indexOf(root.mode) + 1) % 3];
    localStorage.setItem("mode", root.mode);
    paint();
  });
  if (!modes().includes(root.mode)) paint();

  // A dialog closes when one presses beside it.
  const closeBeside = ({ currentTarget: dialog, target, clientX: x, clientY: y }) => {
    if (target !== dialog) return;
    const box = dialog.getBoundingClientRect();
    if (x < box.left || x > box.right || y < box.top || y > box.bottom) dialog.close();
  };

  // The search: a dialog, or the field of the page that shows what is found.
  const dialog = one("#pst-search-dialog");
  const search = () => {
    const field = one(":not(#pst-search-dialog) > form.bd-search input");
    if (field) field.select(), field.scrollIntoView({ block: "center" });
    else if (dialog) dialog.open ? dialog.close() : dialog.showModal();
  };
  const apple = /^(Mac|iPhone)/.test(navigator.platform);
  if (apple) for (const keys of all(".search-button__kbd-shortcut")) keys.firstElementChild.textContent = "⌘";
  for (const button of all(".search-button__button")) button.addEventListener("click", search);
  dialog?.addEventListener("click", closeBeside);
  addEventListener("keydown", (event) => {
    const { key, altKey, shiftKey, ctrlKey, metaKey } = event;
    const [held, other] = apple ? [metaKey, ctrlKey] : [ctrlKey, metaKey];
    if (key.toLowerCase() !== "k" || altKey || shiftKey || other || !held) return;
    event.preventDefault();
    search();
  }, true);

  // Where there is no room beside the page, the contents of the book and of the page are drawers.
  const move = (from, to) => {
    to.append(...from.childNodes);
    to.classList.add(...from.classList);
    from.className = "";
  };
  let chosen;
  for (const name of ["primary", "secondary"]) {
    const button = one(`.${name}-toggle`);
    const side = one(`#pst-${name}-sidebar`);
    const drawer = one(`#pst-${name}-sidebar-modal`);
    if (!button || !side || !drawer) continue;
    button.addEventListener("click", () => {
      if (name === "primary" && wide.matches) return side.classList.toggle("pst-sidebar-hidden");
      move(side, drawer);
      drawer.showModal();
    });
    drawer.addEventListener("click", closeBeside);
    // One that was chosen in a drawer closes it, and the page stays at that section.
    drawer.addEventListener("click", ({ target }) => {
      const link = target.closest("a[href^='#']");
      if (!link) return;
      chosen = document.getElementById(decodeURIComponent(link.hash.slice(1)));
      drawer.close();
    });
    drawer.addEventListener("close", () => {
      move(drawer, side);
      setTimeout(() => {
        chosen?.scrollIntoView();
        chosen = undefined;
      });
    });
  }

  // What scrolls can be reached by the keyboard. What is near is asked about at once, the rest when the
  // browser has nothing else to do.
  const BOXES = "pre:not(.live-code > pre), .cell_output > .output, .pst-scrollable-table-container";
  const stops = (boxes) => {
    const seen = boxes.map((box) => [box, box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight]);
    for (const [box, scrolls] of seen) {
      if (scrolls) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  const near = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? near.add(target) : near.delete(target);
    stops([...near]);
  }, { rootMargin: "50%" });
  const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 20));
  const look = later(() => {
    stops([...near]);
    const others = all(BOXES).filter((box) => !near.has(box));
    others.forEach((box) => watch.observe(box));
    const next = () => {
      const box = others.shift();
      if (!box) return;
      if (!box.closest("details:not([open])")) stops([box]);
      whenIdle(next);
    };
    whenIdle(next);
  }, 300);
  addEventListener("toggle", look, true); // what was folded
  addEventListener("resize", look);
  new MutationObserver(look).observe(one("#main-content"), { subtree: true, childList: true });

  // The contents beside a page follow the reader: the section at the top of the window is marked,
  // and its line is in view. Exercises have one line for all.
  const lines = all(".page-toc a[href^='#']")
    .filter((link) => !link.parentElement.parentElement.matches("[href='#exercises'] + ul"))
    .map((link) => [link, document.getElementById(decodeURIComponent(link.hash.slice(1)))])
    .filter(([, section]) => section);
  let marked;
  const follow = () => {
    document.body.classList.toggle("scrolled", scrollY > 0);
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const begun = ([, section]) => atEnd || section.getBoundingClientRect().top <= innerHeight / 4;
    const [here] = lines.filter(begun).at(-1) ?? [];
    if (here === marked) return;
    marked?.classList.remove("active");
    marked?.removeAttribute("aria-current");
    here?.classList.add("active");
    here?.setAttribute("aria-current", "true");
    marked = here;
    const panel = here?.closest(".bd-sidebar-secondary");
    if (!panel) return;
    const [line, room] = [here, panel].map((box) => box.getBoundingClientRect());
    const bottom = Math.min(room.bottom, innerHeight);
    if (line.bottom > bottom - 40) panel.scrollTop += line.bottom - bottom + 80;
    if (line.top < room.top + 40) panel.scrollTop -= room.top - line.top + 80;
  };
  addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
  addEventListener("resize", follow);

  // The contents of the book are where the reader left them; else the page that is open is in view.
  const KEPT = "sidebar-scroll-top";
  const book = one(".bd-sidebar-primary");
  const unroll = () => {
    if (!book || !wide.matches) return;
    const kept = parseInt(sessionStorage.getItem(KEPT), 10);
    const open = [...book.querySelectorAll("li.active")].at(-1);
    const at = open?.getBoundingClientRect().top;
    if (kept >= 0) book.scrollTop = kept;
    else if (at > innerHeight / 2) book.scrollTop += at - innerHeight / 2; // scrollIntoView would scroll the page as well
  };
  if (book) addEventListener("pagehide", () => sessionStorage.setItem(KEPT, book.scrollTop));

  // On a phone, sections that are far below have not been laid out yet (book.css). Now they are, one by
  // one, so that no tap waits for all of them.
  const far = wide.matches ? [] : all(".bd-article > section section");
  const layOut = () => {
    const section = far.shift();
    if (section) {
      section.style.contentVisibility = "visible";
      whenIdle(layOut);
    } else {
      root.laidOut = "";
      dispatchEvent(new Event("laidout")); // live cells wait for it
      look();
    }
  };

  // All that asks where things are waits until they are there.
  const settle = () => {
    if (wide.matches || scrollY) follow();
    unroll();
    layOut();
  };
  if (document.readyState === "complete") settle();
  else addEventListener("load", settle);
}
