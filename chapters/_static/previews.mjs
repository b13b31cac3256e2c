// What a word means and which work is cited, where a link to it is: for a pointer that rests on the
// link, for the keyboard, and for the first tap of a finger. Escape closes it. `links.py` puts the
// texts into the page.
{
  const LINKS = "article a[href*='glossary.html#'], article a[href*='bibliography.html#']";
  const previews = [...document.querySelectorAll(".preview")];
  const of = (link) => previews.find((one) => link.href.endsWith(`/${one.dataset.of}`));
  const linkAt = (target) => {
    const link = target.closest?.(LINKS);
    return link && of(link) ? link : undefined;
  };
  let shown, source, timer, finger = false;

  const hide = () => {
    clearTimeout(timer);
    timer = undefined;
    if (shown?.matches(":popover-open")) shown.hidePopover();
    shown = source = undefined;
  };
  const place = () => {
    const at = source.getClientRects()[0], box = shown.getBoundingClientRect();
    const fits = at.bottom + 6 + box.height < innerHeight;
    const left = Math.min(at.left, document.documentElement.clientWidth - box.width - 8);
    shown.style.top = `${fits ? at.bottom + 6 : Math.max(8, at.top - box.height - 6)}px`;
    shown.style.left = `${Math.max(8, left)}px`;
  };
  const show = (link) => {
    if (link === source && shown.matches(":popover-open")) return;
    hide();
    [shown, source] = [of(link), link];
    shown.showPopover();
    place();
  };
  const soon = (what, time, ...more) => {
    clearTimeout(timer);
    timer = setTimeout(what, time, ...more);
  };

  if (previews[0]?.showPopover) {
    previews.forEach((one, i) => { one.id = `preview-${i}`; });
    for (const link of document.querySelectorAll(LINKS)) if (of(link)) link.setAttribute("aria-describedby", of(link).id); // for who hears it
    addEventListener("pointerdown", ({ target, pointerType }) => {
      finger = pointerType === "touch";
      if (shown && !shown.contains(target) && linkAt(target) !== source) hide();
    }, true);
    addEventListener("pointerover", ({ target, pointerType }) => {
      if (pointerType === "touch") return;
      const link = linkAt(target);
      if (link) soon(show, 150, link);
      else if (shown?.contains(target)) clearTimeout(timer);
      else if (timer) soon(hide, 250);
    });
    addEventListener("focusin", ({ target }) => {
      const link = linkAt(target);
      if (link && !finger) show(link);
      else if (shown && !shown.contains(target) && link !== source) hide();
    });
    addEventListener("focusout", () => { if (!finger && !shown?.matches(":hover")) soon(hide, 250); });
    addEventListener("scroll", () => { // what is given the focus may first scroll into view
      if (!shown?.matches(":popover-open")) return;
      const { top, bottom } = source.getBoundingClientRect();
      if (bottom > 0 && top < innerHeight) place(); else hide();
    }, { passive: true });
    addEventListener("click", (event) => { // a second tap follows the link
      const link = linkAt(event.target);
      if (!finger || !link || link === source) return;
      event.preventDefault();
      show(link);
    }, true);
  }
}
