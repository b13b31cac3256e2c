// Chapter 8: the online softmax reads tile after tile, and what was read fades when a larger score comes.
import { online } from "./math.mjs";
import { draw, frame, picture, set, slider, switches, text } from "./frame.mjs";

const ln = (x) => `ln ${Number(x.toFixed(2))}`;

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(read, count, size, { total, mixed, output, fade }) {
  const tiles = count === 1 ? "The only tile is read" : `${read} of ${count} tiles ${read === 1 ? "is" : "are"} read`;
  const start = `${tiles}. The sum is ${total.toFixed(2)}, the mixed values are ${mixed.toFixed(1)}, and the output so far is ${output.toFixed(2)}.`;
  const faded = read > 1 && fade < 1 ? ` What was read before has faded to ${fade.toFixed(2)}, since a larger score has come.` : "";
  if (read < count) return `${start}${faded} Read on, and watch the bars.`;
  return `${start}${faded} It is exact, ${size === 4 ? "but all scores were held at once. Choose smaller tiles." : `with ${size === 1 ? "one score" : "two scores"} at a time. Change the last score.`}`;
}

export function mount(root, { powers, values, size }) {
  const sizes = [1, 2, 4], n = powers.length;
  const rows = powers.map((_, i) => {
    const y = 52 + 34 * i;
    return { y, score: text(62, y, "", { class: "ex-key", "text-anchor": "end" }), bar: draw("rect", { x: 82, y: y - 14, height: 18, rx: 2, class: "ex-weight ex-glides" }),
      ground: draw("rect", { x: 82, y: y - 14, width: 150, height: 18, rx: 2, class: "ex-ground" }), number: text(286, y, "", { "text-anchor": "end" }), value: text(346, y, values[i], { class: "ex-value", "text-anchor": "end" }) };
  });
  const tile = draw("rect", { x: 8, width: 346, rx: 6, class: "ex-frame ex-glides" });
  const kept = ["M", "s", "o"].map((name, i) => ({ number: text(116, 52 + 34 * i, "", { "text-anchor": "end", class: "ex-large" }), name: text(8, 52 + 34 * i, name, {}) }));
  const out = text(116, 156, "", { class: "ex-output ex-large", "text-anchor": "end" });
  const head = (x, words, kind = "") => text(x, 20, words, { "text-anchor": "end", class: kind });
  const table = picture(362, 178, head(62, "score", "ex-key"), text(82, 20, "measured from M", { class: "ex-weight" }), head(346, "value", "ex-value"), tile,
    ...rows.flatMap(({ score, ground, bar, number, value }) => [score, ground, bar, number, value]));
  const sums = picture(128, 178, head(116, "kept"), ...kept.flatMap(({ name, number }) => [name, number]),
    text(8, 156, "o / s", { class: "ex-output" }), out);
  const sized = switches("keys in a tile", sizes.map((s) => `${s} ${s === 1 ? "key" : "keys"}`), sizes.indexOf(size), () => { read.control.max = n / sizes[sized.value]; read.put(Math.min(read.value, read.control.max)); update(); });
  const read = slider({ label: "tiles read", min: 1, max: n / size, step: 1, value: 1, ends: ["1", "all"], show: String, input: update });
  const last = slider({ label: "score of the last key", min: 1, max: 20, step: 1, value: powers[n - 1], usual: powers[n - 1], ends: ["ln 1", "ln 20"], show: ln, input: update });
  const say = frame(root, [table, sums], sized.box, read.box, last.box);
  update();

  function update() {
    const width = sizes[sized.value], now = [...powers.slice(0, -1), last.value], scores = now.map(Math.log);
    const steps = online(scores, values, width), step = steps[read.value - 1], seen = read.value * width;
    rows.forEach(({ score, bar, number, value }, i) => {
      const power = i < seen ? Math.exp(scores[i] - step.largest) : 0;
      score.textContent = ln(now[i]);
      set(bar, { width: 150 * power });
      number.textContent = i < seen ? power.toFixed(2) : "";
      for (const part of [score, value]) part.style.opacity = i < seen ? 1 : 0.55;
    });
    set(tile, { y: rows[seen - width].y - 22, height: 34 * width });
    [ln(Math.exp(step.largest)), step.total.toFixed(2), step.mixed.toFixed(1)].forEach((words, i) => { kept[i].number.textContent = words; });
    out.textContent = step.output.toFixed(2);
    say(sentence(read.value, steps.length, width, step), steps.map((one, i) => [width * (i + 1), ln(Math.exp(one.largest)), one.total.toFixed(2), one.mixed.toFixed(1), one.output.toFixed(2)]));
  }
}
