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

// The contents beside a page follow the reader: the section at the top of the window is marked, and
// its line is in view. The theme, which finds them by this name, marks what has left the window.
{
  document.getElementById("pst-page-toc-nav")?.removeAttribute("id");
  const lines = [...document.querySelectorAll(".page-toc a[href^='#']")]
    .map((link) => [link, document.getElementById(decodeURIComponent(link.hash.slice(1)))])
    .filter(([link, section]) => section && getComputedStyle(link.closest("ul")).display !== "none");
  let marked;
  const follow = () => {
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
    const [line, room] = [here, panel].map((one) => one.getBoundingClientRect());
    const bottom = Math.min(room.bottom, innerHeight);
    if (line.bottom > bottom - 40) panel.scrollTop += line.bottom - bottom + 80;
    if (line.top < room.top + 40) panel.scrollTop -= room.top - line.top + 80;
  };
  addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
  addEventListener("resize", follow);
  follow();
}
