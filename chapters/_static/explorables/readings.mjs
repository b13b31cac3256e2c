// Chapter 7: any of the 270 heads of a language model on any of the stored texts, asked from any piece.
import { rowsOf } from "./math.mjs";
import { choice, frame, make, picture, set, slider, squares, text } from "./frame.mjs";

const name = (piece) => `“${piece.trim()}”`;

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(pieces, layer, head, asks, row) {
  const best = row.indexOf(Math.max(...row));
  const start = `In head ${layer + 1}.${head + 1}, ${name(pieces[asks])} takes ${row[best].toFixed(2)} from ${name(pieces[best])}`;
  const before = pieces.slice(0, asks).lastIndexOf(pieces[asks]);
  if (asks === 0) return `${start}, because there is nothing else to see. Ask from a later piece.`;
  if (row[best] < 0.3) return `${start}, so it mixes many pieces. Try another layer.`;
  if (before >= 0 && best === before + 1) return `${start}, the piece that followed when it stood there before. Ask from another piece, or try head 17.1.`;
  if (best === 0) return `${start}, the first piece, on which a head rests that finds nothing. Ask from a piece that has stood there before.`;
  if (best === asks - 1) return `${start}, the piece just before it. Does it do so from every piece?`;
  if (best === asks) return `${start}, that is, from itself. Ask from another piece.`;
  return `${start}. Ask from other pieces: is there a rule?`;
}

export function mount(root, { texts, layer, head, rows }) {
  const files = new Map();
  const plane = make("div", { class: "ex-plane" }), line = make("p", { class: "ex-pieces", "aria-hidden": "true" });
  const which = choice("text", texts.map(({ pieces }) => { const whole = pieces.join(""); return whole.length > 48 ? `${whole.slice(0, 46)}…` : whole; }), 0, () => begin());
  const place = (label, max, value) => slider({ label, min: 1, max, step: 1, value, usual: value, ends: ["1", `${max}`], show: String, input: () => update() });
  const layers = place("layer", 30, layer + 1), heads = place("head", 9, head + 1);
  let pieces, grid, marks, words, asks;
  const say = frame(root, [plane, line], which.box, layers.box, heads.box, make("div", {}));
  let from = root.querySelector(".ex-controls").lastChild;
  begin(rows);

  function begin(first) {
    ({ pieces } = texts[which.value]);
    const n = pieces.length, size = Math.min(24, 300 / n), left = 62, font = Math.max(8, Math.min(13, size));
    grid = squares(left, 4, size, n, () => n);
    marks = pieces.map((piece, i) => text(left - 6, 4 + size * (i + 0.75), piece.trim(), { "text-anchor": "end", style: `font-size:${font}px` }));
    plane.replaceChildren(picture(left + 300, 8 + size * n, ...grid.parts, ...marks));
    [...grid.all.entries()].forEach(([i, row]) => [...row, marks[i]].forEach((part) => part.addEventListener("click", () => ask(i))));
    words = pieces.map((piece, i) => {
      const made = make("span", {}, piece.trim());
      if (piece.startsWith(" ")) made.style.marginLeft = ".4rem"; // here a word begins
      made.addEventListener("click", () => ask(i));
      return made;
    });
    line.replaceChildren(...words);
    asks = slider({ label: "asked from piece", min: 1, max: n, step: 1, value: n, ends: [pieces[0].trim(), pieces[n - 1].trim()], show: (i) => `${i}, ${pieces[i - 1].trim()}`, input: () => update() });
    from.replaceWith(asks.box);
    from = asks.box;
    update(first);
  }
  function ask(i) { asks.put(i + 1); update(); }

  async function update(known) {
    const text = which.value, { file, pieces: own } = texts[text];
    if (!known && !files.has(text)) {
      files.set(text, fetch(new URL(file, import.meta.url)).then((answer) => { if (!answer.ok) throw new Error(`${file}: ${answer.status}`); return answer.arrayBuffer(); }));
    }
    try {
      const bytes = known ? null : await files.get(text);
      if (text === which.value) show(known ?? rowsOf(bytes, own.length, layers.value - 1, heads.value - 1));
    } catch {
      files.delete(text);
      say("The weights could not be loaded. What is drawn is what was there before; move a slider to try again.");
    }
  }
  function show(weights) {
    const i = asks.value - 1, row = weights[i];
    grid.show(weights);
    words.forEach((word, j) => { word.style.setProperty("--w", row[j] ?? 0); set(word, { class: j === i ? "ex-asking" : j > i ? "ex-later" : "" }); });
    marks.forEach((mark, j) => set(mark, { class: j === i ? "ex-query ex-strong" : "ex-quiet" }));
    grid.all.forEach((cells, j) => cells.forEach((cell) => cell.classList.toggle("ex-row", j === i)));
    say(sentence(pieces, layers.value - 1, heads.value - 1, i, row), row.map((w, j) => [name(pieces[j]), w.toFixed(2)]));
  }
}
