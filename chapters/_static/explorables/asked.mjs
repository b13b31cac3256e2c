// A sentence and all its weights, of which one token asks: the square of all of them, and the tokens in a line.
import { make, picture, set, slider, squares, text } from "./frame.mjs";

export function askedOf(update, unit = "piece") {
  const plane = make("div", { class: "ex-plane" }), line = make("p", { class: "ex-pieces", "aria-hidden": "true" });
  const place = make("div", {});
  let grid, marks, words, asks;
  return { parts: [plane, line], place, begin, show, get row() { return asks.value - 1; } };

  /** Lay out other tokens, of which the last asks, or another. */
  function begin(pieces, from = pieces.length - 1) {
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
    asks = slider({ label: `asked from ${unit}`, min: 1, max: n, step: 1, value: from + 1, ends: [pieces[0].trim(), pieces[n - 1].trim()], show: (i) => `${i}, ${pieces[i - 1].trim()}`, input: update });
    place.replaceChildren(asks.box);
  }
  function ask(i) { asks.put(i + 1); update(); }
  /** Show all weights; a token that is asked about and comes later is grey if it cannot be seen. */
  function show(weights) {
    const i = asks.value - 1, row = weights[i];
    grid.show(weights);
    words.forEach((word, j) => { word.style.setProperty("--w", row[j] ?? 0); set(word, { class: j === i ? "ex-asking" : row[j] == null ? "ex-later" : "" }); });
    marks.forEach((mark, j) => set(mark, { class: j === i ? "ex-query ex-strong" : "ex-quiet" }));
    grid.all.forEach((cells, j) => cells.forEach((cell) => cell.classList.toggle("ex-row", j === i)));
  }
}
