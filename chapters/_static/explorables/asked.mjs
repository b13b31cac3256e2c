// A sentence and all its weights, of which one token asks: the square of all of them, and the tokens in a line.
import { make, picture, set, slider, text } from "./frame.mjs";
import { squares } from "./squares.mjs";

/** `titles` stand above as many squares, of which the last is the one whose row is told. */
export function askedOf(update, titles = [""]) {
  const plane = make("div", { class: titles.length > 1 ? "ex-planes" : "ex-plane" }), line = make("p", { class: "ex-pieces", "aria-hidden": "true" });
  const place = make("div", {}), named = titles.map((title) => text(0, 14, title, { "text-anchor": "middle" }));
  let grids, marks, words, asks, every;
  return { parts: [plane, line], place, begin, show, name(title) { named.at(-1).textContent = title; }, get row() { return asks.value - 1; } };

  /** Lay out other tokens, of which the last asks, or another. */
  function begin(pieces, from = pieces.length - 1) {
    const n = pieces.length, room = titles.length === 1 ? 362 : matchMedia("(min-width: 640px)").matches ? 640 : 350;
    const left = room === 350 ? 46 : 62, top = titles[0] ? 24 : 4, each = (room - left - 14 * (titles.length - 1)) / titles.length, size = Math.min(24, each / n);
    every = Math.ceil(13 / size); // where rows are low, not each has its name
    const x = (which) => left + which * (each + 14);
    grids = titles.map((_, which) => squares(x(which), top, size, n, () => n));
    named.forEach((name, which) => set(name, { x: x(which) + (n * size) / 2 }));
    marks = pieces.map((piece, i) => text(left - 6, top + size * (i + 0.5) + 4, piece.trim(), { "text-anchor": "end" }));
    plane.replaceChildren(picture(room, top + 4 + size * n, ...named, ...grids.flatMap(({ parts }) => parts), ...marks));
    for (const { all } of grids) all.forEach((row, i) => [...row, marks[i]].forEach((part) => part.addEventListener("click", () => ask(i))));
    words = pieces.map((piece, i) => {
      const made = make("span", {}, piece.trim());
      if (piece.startsWith(" ")) made.style.marginLeft = ".4rem"; // here a word begins
      made.addEventListener("click", () => ask(i));
      return made;
    });
    line.replaceChildren(...words);
    asks = slider({ label: "asked from token", min: 1, max: n, step: 1, value: from + 1, ends: [pieces[0].trim(), pieces[n - 1].trim()], show: (i) => `${i}, ${pieces[i - 1].trim()}`, input: update });
    place.replaceChildren(asks.box);
  }
  function ask(i) { asks.put(i + 1); update(); }
  /** Show all weights of each square; a token that comes later than the one that asks is grey if it cannot be seen. */
  function show(...weights) {
    const i = asks.value - 1, row = weights.at(-1)[i];
    grids.forEach((grid, which) => grid.show(weights[which]));
    words.forEach((word, j) => { word.style.setProperty("--w", row[j] ?? 0); set(word, { class: j === i ? "ex-asking" : row[j] == null ? "ex-later" : "" }); });
    marks.forEach((mark, j) => { set(mark, { class: j === i ? "ex-query ex-strong" : "ex-quiet" }); mark.style.display = j === i || (j % every === 0 && Math.abs(j - i) >= every) ? "" : "none"; });
    for (const { all } of grids) all.forEach((cells, j) => cells.forEach((cell) => cell.classList.toggle("ex-row", j === i)));
  }
}
