// The wall of the atlas: a small picture of each head, which can be sorted, walked with the arrow keys, and opened.
import { make, set } from "./frame.mjs";

const HEADS = 9;
export const HALF = 0.5;

export function wallOf(all, n, answer, { open, look, sorted }) {
  let by;
  const SORTS = [["layer", "by layer", ""], ["one", "looks one back", "give the token before more than half"], ["first", "rests on the first token", "give the first token more than half"],
    ["up", `looks up ${answer}`, `give ${answer} more than half in the last row`], ["need", `matters for ${answer}`, ""]];
  const told = make("p", { class: "atlas-told", role: "status" });
  const sorts = make("div", { class: "atlas-sorts", role: "group", "aria-label": "Sort the wall" }, ...SORTS.map(([key, words]) => {
    const one = make("button", { type: "button", "aria-pressed": key === "layer" }, words);
    one.addEventListener("click", () => sort(key));
    return one;
  }));
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
    const rows = [...wall.children], at = rows.indexOf(document.activeElement), style = getComputedStyle(wall), down = style.gridAutoFlow.startsWith("column");
    const across = down ? HEADS : style.gridTemplateColumns.split(" ").length;
    const step = { ArrowRight: down ? across : 1, ArrowLeft: down ? -across : -1, ArrowDown: down ? 1 : across, ArrowUp: down ? -1 : -across, Home: -at, End: rows.length - 1 - at }[event.key];
    if (step === undefined || at < 0) return;
    event.preventDefault();
    if (rows[at + step]) { rove(rows[at + step]); rows[at + step].focus(); }
  });
  return { parts: [sorts, wall, told], paint, rove, sort, by: () => by };

  /** Each picture in the ramp of this theme, which a probe in the page tells. */
  function paint() {
    const probe = wall.parentNode.appendChild(make("i", { class: "ex-on atlas-probe" }));
    const colours = Array.from({ length: 101 }, (_, i) => { probe.style.setProperty("--w", i / 100); return getComputedStyle(probe).backgroundColor; });
    probe.remove();
    for (const { canvas, rows } of all) {
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, n, n);
      rows.forEach((row, i) => row.forEach((w, j) => { pen.fillStyle = colours[Math.round(100 * w)]; pen.fillRect(j, i, 1, 1); }));
    }
  }
  function rove(button) {
    for (const one of wall.querySelectorAll("[tabindex='0']")) one.tabIndex = -1;
    button.tabIndex = 0;
  }
  function sort(key) {
    by = key;
    const [, words, does] = SORTS.find(([one]) => one === key), places = new Map(all.map(({ button }) => [button, button.getBoundingClientRect()]));
    [...all].sort((a, b) => b[key] - a[key] || a.at - b.at).forEach(({ button }) => wall.append(button));
    wall.classList.toggle("atlas-layers", key === "layer");
    [...sorts.children].forEach((one, i) => set(one, { "aria-pressed": SORTS[i][0] === key }));
    for (const one of all) one.button.classList.toggle("atlas-faint", Boolean(does) && one[key] <= HALF);
    const count = all.filter((one) => one[key] > HALF).length;
    told.textContent = key === "layer" ? "30 layers of 9 heads: layer 1 is nearest to the words, layer 30 to the answer." : does ? `${count} of 270 heads ${does}; the others are pale.` : `First the heads without which the model gives ${answer} least.`;
    if (words && !matchMedia("(prefers-reduced-motion: reduce)").matches) for (const { button } of all) {
      const old = places.get(button), place = button.getBoundingClientRect();
      if (old.width && (old.x !== place.x || old.y !== place.y)) button.animate([{ transform: `translate(${old.x - place.x}px,${old.y - place.y}px)` }, {}], { duration: 500, easing: "cubic-bezier(.3,0,.1,1)" });
    }
    sorted();
  }
}
