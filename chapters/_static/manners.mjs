// What a page does for a keyboard and a phone, beside what the theme's scripts do.
// It is loaded as a plain script, because a browser loads no module from a folder on a disk.

// A pressed button keeps the focus. The theme drops it, and Tab would begin at the top again.
addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button && document.activeElement === document.body) button.focus({ preventScroll: true });
});

// What scrolls only once it is unfolded can be reached too. The theme looks when a window resizes.
addEventListener("toggle", () => dispatchEvent(new Event("resize")), true);

// A phone's contents close when a section is chosen in them, and the page stays at that section.
addEventListener("click", ({ target }) => {
  const link = target.closest("dialog a[href^='#']");
  if (!link) return;
  const dialog = link.closest("dialog");
  const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  dialog.addEventListener("close", () => section?.scrollIntoView(), { once: true });
  dialog.close();
});
