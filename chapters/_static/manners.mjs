// What a page does for a keyboard and a phone, beside what the theme's scripts do.
// It is loaded as a plain script, because a browser loads no module from a folder on a disk.

// The theme takes the focus from a pressed button, and Tab would begin at the top again.
let pressed;
const giveBackFocus = () => {
  if (document.activeElement === document.body) pressed?.focus({ preventScroll: true });
};
addEventListener("click", ({ target }) => {
  if (!target.closest("dialog")) pressed = target.closest("button");
}, true);
addEventListener("click", giveBackFocus);

// What scrolls only once it is unfolded can be reached too. The theme looks when a window resizes.
addEventListener("toggle", () => dispatchEvent(new Event("resize")), true);

// A phone's contents close when a section is chosen in them, and the page stays at that section.
let chosen;
addEventListener("click", ({ target }) => {
  const link = target.closest("dialog a[href^='#']");
  if (!link) return;
  chosen = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  link.closest("dialog").close();
});
addEventListener("close", () => setTimeout(() => {
  giveBackFocus();
  chosen?.scrollIntoView();
  chosen = undefined;
}), true);
