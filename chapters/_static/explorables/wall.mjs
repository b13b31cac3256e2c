// The wall of the atlas: a small picture of each head, which can be sorted, walked with the arrow keys, and opened.
import { button, make, set } from "./frame.mjs";

const HEADS = 9;
export const HALF = 0.5;

/** `sorted` is told what an order that was asked for shows. */
export function wallOf(all, n, answer, { open, look, sorted }) {
  let by = "layer", paints = 0;
  const SORTS = [["layer", "layer"], ["one", "looks one back", "give the token before more than half"], ["first", "rests on the first token", "give the first token more than half"],
    ["up", `looks up ${answer}`, `give ${answer} more than half in the last row`], ["need", `matters for ${answer}`]];
  const [most, least] = ["first", "last"].map((end) => make("p", { class: `atlas-${end}`, "aria-hidden": "true" }));
  const sorts = make("div", { class: "atlas-sorts", role: "group", "aria-label": "Sort the wall by" }, make("span", { "aria-hidden": "true" }, "Sort by"));
  const buttons = SORTS.map(([key, words]) => set(button(words, () => sorted(sort(key))), { "aria-pressed": key === by }));
  sorts.append(...buttons);
  const key = (w) => make("i", { class: "ex-on", style: `--w:${w / 8}` });
  const legend = make("p", { class: "atlas-legend", "aria-hidden": "true" }, make("span", {}, "weight 0 ", ...Array.from({ length: 9 }, (_, w) => key(w)), " 1"), make("span", {}, make("i", { class: "atlas-later" }), " comes later, not seen"));
  const wall = make("div", { class: "atlas-wall", role: "group", "aria-label": "270 heads, 30 layers of 9. Arrow keys move, Enter opens." });
  for (const one of all) {
    one.canvas = make("canvas", { width: n, height: n });
    one.button = make("button", { type: "button", tabindex: -1, "aria-label": `head ${one.name}, ${one.what}` }, one.canvas);
    one.button.addEventListener("click", () => open(one));
    one.button.addEventListener("pointerenter", () => look(one));
    one.button.addEventListener("focus", () => look(one));
    wall.append(one.button);
  }
  wall.addEventListener("pointerleave", () => look(null));
  wall.addEventListener("keydown", (event) => {
    const rows = [...wall.children], at = rows.indexOf(document.activeElement), down = getComputedStyle(wall).gridAutoFlow.startsWith("column");
    const [right, below] = down ? [HEADS, 1] : [1, HEADS]; // nine below each other, or on a phone beside each other
    const step = { ArrowRight: right, ArrowLeft: -right, ArrowDown: below, ArrowUp: -below, Home: -at, End: rows.length - 1 - at }[event.key];
    if (step === undefined || at < 0) return;
    event.preventDefault();
    if (rows[at + step]) { rove(rows[at + step]); rows[at + step].focus(); }
  });
  label();
  return { parts: [make("div", { class: "atlas-tools" }, sorts, legend), make("div", { class: "atlas-ends" }, most, wall, least)], paint, rove, by: () => by };

  /** Each picture in the ramp of this theme, which a probe in the page tells; a slow phone answers in between. */
  async function paint() {
    const probe = wall.parentNode.appendChild(make("i", { class: "ex-on atlas-probe" }));
    const colours = Array.from({ length: 101 }, (_, i) => { probe.style.setProperty("--w", i / 100); return getComputedStyle(probe).backgroundColor; });
    probe.remove();
    const mine = ++paints;
    for (const [place, { canvas, rows }] of all.entries()) {
      if (place % 10 === 9) await new Promise((done) => setTimeout(done));
      if (mine !== paints) return; // the theme has changed once more
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, n, n);
      pen.fillStyle = colours[0]; // of most weights, a row at once
      rows.forEach((row, i) => pen.fillRect(0, i, row.length, 1));
      rows.forEach((row, i) => row.forEach((w, j) => { if (w >= 0.005) { pen.fillStyle = colours[Math.round(100 * w)]; pen.fillRect(j, i, 1, 1); } }));
    }
  }
  function rove(button) {
    for (const one of wall.querySelectorAll("[tabindex='0']")) one.tabIndex = -1;
    button.tabIndex = 0;
  }
  /** What stands at the two ends of the wall, and how many heads do more than half of the time what it is sorted by. */
  function label() {
    const [, , does] = SORTS.find(([one]) => one === by), count = all.filter((one) => one[by] > HALF).length;
    most.textContent = by === "layer" ? "layer 1, nearest to the words" : `most: ${does ? `${count} heads ${does}` : `without these the model gives ${answer} least`}`;
    least.textContent = by === "layer" ? "layer 30, nearest to the answer" : does ? "least (pale)" : "least";
    for (const one of all) one.button.classList.toggle("atlas-faint", Boolean(does) && one[by] <= HALF);
    return by === "layer" ? "The layers are in their order." : does ? `${count} of 270 heads ${does}. They come first, and the others are pale.` : `The heads without which the model gives ${answer} least come first.`;
  }
  function sort(key) {
    by = key;
    const places = new Map(all.map(({ button }) => [button, button.getBoundingClientRect()]));
    [...all].sort((a, b) => b[key] - a[key] || a.at - b.at).forEach(({ button }) => wall.append(button));
    buttons.forEach((one, i) => set(one, { "aria-pressed": SORTS[i][0] === key }));
    const says = label();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) for (const [button, place] of all.map(({ button }) => [button, button.getBoundingClientRect()])) { // all before one moves
      const old = places.get(button);
      if (old.x !== place.x || old.y !== place.y) button.animate([{ transform: `translate(${old.x - place.x}px,${old.y - place.y}px)` }, {}], { duration: 500, easing: "cubic-bezier(.3,0,.1,1)" });
    }
    return says;
  }
}
