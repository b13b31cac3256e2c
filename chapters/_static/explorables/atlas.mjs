// The atlas: all heads of a language model on one sentence, as a wall of small pictures; one opens as the table of chapter 1.
import { rowsOf } from "./math.mjs";
import { draw, make, set, slider, speaker } from "./frame.mjs";
import { opened } from "./opened.mjs";
import { HALF, wallOf } from "./wall.mjs";

const HEADS = 9;
const quoted = (token) => `“${token.trim()}”`;

/** What a head does more than half of the time, each from 0 to 1: looks one back, rests on the first token, looks up the answer. */
export function habits(rows, place) {
  const later = rows.slice(2), mean = (take) => later.reduce((sum, row, i) => sum + take(row, i + 2), 0) / later.length;
  return { one: mean((row, i) => row[i - 1]), first: mean((row) => row[0]), up: rows.at(-1)[place] };
}
export const does = ({ one, first, up }, answer) => (up > HALF ? `looks up ${answer}` : one > HALF ? "looks one token back" : first > HALF ? "rests on the first token"
  : `gives ${one > first ? `the token before ${one.toFixed(2)}` : `the first token ${first.toFixed(2)}`} on average`);

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(name, what, tokens, asks, row, answer, left, chance, sorted, out) {
  const best = row.indexOf(Math.max(...row));
  return `Head ${name} ${what}. From ${quoted(tokens[asks])} it looks at ${best === asks ? "itself" : quoted(tokens[best])} most, with ${row[best].toFixed(2)}. Without this head the model ${left > 0.95 * chance ? "still gives" : "gives"} ${answer} ${left.toFixed(3)}${left > 0.95 * chance ? "" : ` instead of ${chance.toFixed(3)}`}. ${out ? "Put it back, or open another." : sorted ? "Open another, or sort by something else." : "Open another, or sort the wall."}`;
}

export async function mount(root, { tokens, file, place, chance, without, first, layer, head }) {
  const n = tokens.length, answer = quoted(tokens[place]), say = speaker(root);
  let bytes;
  try {
    const found = await fetch(new URL(file, import.meta.url));
    if (!found.ok) throw new Error(`${file}: ${found.status}`);
    bytes = await found.arrayBuffer();
  } catch {
    say("The weights could not be loaded. The wall above is a picture of them.");
    root.dataset.state = "failed";
    return;
  }
  const all = without.flatMap((row, i) => row.map((left, j) => {
    const rows = rowsOf(bytes, n, i, j), habit = habits(rows, place);
    return { at: HEADS * i + j, name: `${i + 1}.${j + 1}`, rows, left, what: does(habit, answer), layer: 0, ...habit, need: chance - left, first_value: first[i][j] };
  }));
  let now = all[HEADS * layer + head], asks = n - 1, out = false;

  const arcs = draw("svg", { class: "atlas-arcs", viewBox: "0 0 920 100", "aria-hidden": "true" });
  const line = make("p", { class: "ex-pieces atlas-tokens", "aria-hidden": "true" }, ...tokens.map((token, i) => {
    const one = make("span", {}, token.trim());
    one.addEventListener("click", () => ask(i));
    return one;
  }));
  const seen = make("p", { class: "atlas-seen", "aria-hidden": "true" });
  const wall = wallOf(all, n, answer, { open: (one) => { out = false; open(one); to(root); }, look: (one) => look(one ?? now), sorted: tell });
  const key = (w) => make("i", { class: "ex-on", style: `--w:${w}` });
  const legend = make("p", { class: "atlas-legend", "aria-hidden": "true" }, "weight 0 ", ...[0, 0.25, 0.5, 0.75, 1].map(key), " 1", make("i", { class: "atlas-later" }), " comes later, not seen");
  const picture = make("div", { class: "atlas" }, arcs, line, seen, ...wall.parts, legend);
  document.querySelector(`#${root.dataset.replaces} .d2lmini-figure`).replaceWith(picture);

  const from = slider({ label: "asked from token", min: 1, max: n, step: 1, value: n, ends: [tokens[0].trim(), tokens[n - 1].trim()], show: (i) => `${i}, ${tokens[i - 1].trim()}`, input: () => ask(from.value - 1) });
  const back = make("button", { type: "button" }, "Back to the wall");
  back.addEventListener("click", leave);
  for (const part of [root, picture]) part.addEventListener("keydown", ({ key }) => { if (key === "Escape") leave(); });
  const steps = [-1, 1].map((by) => {
    const one = make("button", { type: "button" });
    one.addEventListener("click", () => { out = false; open(all[now.at + by]); });
    return one;
  });
  const table = opened({ tokens, answer, chance, cut: () => { out = !out; open(now); }, ask });
  root.querySelector(".ex-controls").replaceChildren(from.box, make("div", { class: "ex-buttons" }, ...steps, back));
  root.querySelector(".ex-controls").after(table.box);
  root.dataset.state = "ready";
  new MutationObserver(wall.paint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  wall.paint();
  wall.sort("layer");
  open(now);

  /** Bring into view what is not, moving there if the reader likes that. */
  function to(part) { part.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" }); }
  function leave() { now.button.focus({ preventScroll: true }); to(now.button); }
  /** A head over the sentence. */
  function look(one) {
    const x = (i) => (920 * (i + 0.5)) / n;
    arcs.replaceChildren(...one.rows.flatMap((row, i) => row.flatMap((w, j) => (w < 0.04 || i === j ? [] : [draw("path", {
      d: `M${x(i)} 100C${x(i)} ${96 - 5.2 * (i - j)} ${x(j)} ${96 - 5.2 * (i - j)} ${x(j)} 100`, "stroke-width": (i === asks ? 9 : 4) * w + 0.6, opacity: i === asks ? 0.8 : 0.15 + 0.15 * w })]))));
    const row = one.rows[asks];
    [...line.children].forEach((word, j) => { word.style.setProperty("--w", row[j] ?? 0); set(word, { class: j === asks ? "ex-asking" : j > asks ? "ex-later" : "" }); });
    const best = row.indexOf(Math.max(...row));
    seen.textContent = `Head ${one.name} ${one.what}. ${quoted(tokens[asks])} gives ${row[best].toFixed(2)} to ${best === asks ? "itself" : quoted(tokens[best])}.`;
  }
  function tell() { say(sentence(now.name, now.what, tokens, asks, now.rows[asks], answer, now.left, chance, wall.by() !== "layer", out)); }
  function ask(i) { asks = i; from.put(i + 1); open(now); }
  function open(one) {
    now.button.removeAttribute("aria-current");
    now = one;
    one.button.setAttribute("aria-current", "true");
    wall.rove(one.button);
    look(one);
    table.show(one, asks, out);
    steps.forEach((button, i) => { const other = all[now.at + (i ? 1 : -1)]; button.hidden = !other; if (other) button.textContent = i ? `head ${other.name} →` : `← head ${other.name}`; });
    tell();
  }
}
