// The atlas: all heads of a language model on one sentence, as a wall of small pictures; one opens as the table of chapter 1.
import { fixed, rowsOf } from "./math.mjs";
import { button, draw, make, set, slider, speaker } from "./frame.mjs";
import { opened } from "./opened.mjs";
import { HALF, wallOf } from "./wall.mjs";

const HEADS = 9, [WIDE, HIGH] = [1184, 80]; // of the arcs
const quoted = (token) => `“${token.trim()}”`;

/** What a head does more than half of the time, each from 0 to 1: looks one back, rests on the first token, looks up the answer. */
export function habits(rows, place) {
  const later = rows.slice(2), mean = (take) => later.reduce((sum, row, i) => sum + take(row, i + 2), 0) / later.length;
  return { one: mean((row, i) => row[i - 1]), first: mean((row) => row[0]), up: rows.at(-1)[place] };
}
export const does = ({ one, first, up }, answer) => (up > HALF ? `looks up ${answer}` : one > HALF ? "looks one token back" : first > HALF ? "rests on the first token"
  : `gives ${one > first ? `the token before ${fixed(one)}` : `the first token ${fixed(first)}`} on average`);

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(name, what, tokens, asks, row, answer, left, chance, sorted, out) {
  const best = row.indexOf(Math.max(...row));
  return `Head ${name} ${what}. From ${quoted(tokens[asks])} it looks at ${best === asks ? "itself" : quoted(tokens[best])} most, with ${fixed(row[best])}. Without this head the model ${left > 0.95 * chance ? "still gives" : "gives"} ${answer} ${fixed(left, 3)}${left > 0.95 * chance ? "" : ` instead of ${fixed(chance, 3)}`}. ${out ? "Put it back, or open another." : sorted ? "Open another, or sort by something else." : "Open another, or sort the wall."}`;
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

  const arcs = draw("svg", { class: "atlas-arcs", viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" });
  const line = make("p", { class: "ex-pieces atlas-tokens", "aria-hidden": "true" }, ...tokens.map((token, i) => {
    const one = make("span", {}, token.trim());
    one.addEventListener("click", () => ask(i));
    return one;
  }));
  const seen = make("p", { class: "atlas-seen", "aria-hidden": "true" });
  const wall = wallOf(all, n, answer, { open: (one) => { out = false; open(one); to(table.box); }, look: (one) => look(one ?? now), sorted: tell });
  const picture = make("div", { class: "atlas ex-live" }, arcs, line, seen, ...wall.parts);
  document.querySelector(`#${root.dataset.replaces} .d2lmini-figure`).after(picture); // which stays for paper

  const from = slider({ label: "asked from token", min: 1, max: n, step: 1, value: n, ends: [tokens[0].trim(), tokens[n - 1].trim()], show: (i) => `${i}, ${tokens[i - 1].trim()}`, input: () => ask(from.value - 1) });
  const steps = [-1, 1].map((by) => button("", () => { out = false; open(all[now.at + by]); }));
  for (const part of [root, picture]) part.addEventListener("keydown", ({ key }) => { if (key === "Escape") leave(); });
  const controls = root.querySelector(".ex-controls");
  const table = opened({ tokens, answer, chance, cut: () => { out = !out; open(now); }, ask, controls, steps: make("div", { class: "ex-buttons" }, ...steps, button("Back to the wall", leave)) });
  root.prepend(table.box);
  controls.replaceChildren(from.box);
  root.dataset.state = "ready";
  new MutationObserver(wall.paint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  wall.paint();
  open(now);

  /** Bring into view what is not, moving there if the reader likes that. */
  function to(part) { part.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" }); }
  function leave() { now.button.focus({ preventScroll: true }); to(now.button); }
  /** A head over the sentence. */
  function look(one) {
    const x = (i) => (WIDE * (i + 0.5)) / n, row = one.rows[asks], best = row.indexOf(Math.max(...row));
    arcs.replaceChildren(...one.rows.flatMap((row, i) => row.flatMap((w, j) => {
      const mine = i === asks, y = HIGH * (0.9 - 1.25 * Math.sqrt((i - j) / n));
      return w < 0.04 ? [] : i === j ? [draw("circle", { cx: x(i), cy: HIGH - 6, r: 1 + 4 * w, opacity: mine ? 0.85 : 0.22 })]
        : [draw("path", { d: `M${x(i)} ${HIGH}C${x(i)} ${y} ${x(j)} ${y} ${x(j)} ${HIGH}`, "stroke-width": (mine ? 9 : 4) * w + 0.6, opacity: mine ? 0.8 : 0.15 + 0.15 * w })];
    })));
    [...line.children].forEach((word, j) => { word.style.setProperty("--w", row[j] ?? 0); set(word, { class: j === asks ? "ex-asking" : j > asks ? "ex-later" : "" }); });
    const word = (kind, words) => make("b", { class: kind }, words);
    seen.replaceChildren(`Head ${one.name} ${one.what}. `, word("query", tokens[asks].trim()), " takes ", word("weight", fixed(row[best])), " from ", word("key", best === asks ? "itself" : tokens[best].trim()), ".");
  }
  /** Say what is seen, after what was done. */
  function tell(done) { say(`${done ? `${done} ` : ""}${sentence(now.name, now.what, tokens, asks, now.rows[asks], answer, now.left, chance, wall.by() !== "layer", out)}`); }
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
