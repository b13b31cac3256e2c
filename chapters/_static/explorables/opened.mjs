// A head of the atlas, opened as the table of chapter 1: query, keys, weights, values, output; and its whole picture.
import { draw, make, picture, set, text } from "./frame.mjs";
import { squares } from "./squares.mjs";

export function opened({ tokens, answer, chance, cut, ask }) {
  const n = tokens.length, names = tokens.map((token) => token.trim());
  const title = make("h2", {}), query = make("p", { class: "atlas-query" }), output = make("p", { class: "atlas-output" });
  const wires = draw("svg", { class: "atlas-wires", "aria-hidden": "true" });
  const rows = names.map((name) => {
    const bar = make("i", {}), number = make("b", {}), cell = make("td", { class: "atlas-bar" }, bar, number), value = make("td", { class: "value" }, name);
    return { bar, number, cell, value, row: make("tr", {}, make("th", { scope: "row", class: "key" }, name), cell, value) };
  });
  const head = (words, kind) => make("th", { scope: "col", class: kind }, words);
  const table = make("table", { class: "atlas-table" }, make("caption", {}, "What each token gets"), make("thead", {}, make("tr", {}, head("key", "key"), head("weight", "weight"), head("value", "value"))), make("tbody", {}, ...rows.map(({ row }) => row)));
  const lookup = make("div", { class: "atlas-lookup" }, make("div", {}, make("p", { class: "query atlas-name" }, "query"), query), table, make("div", {}, make("p", { class: "output-word atlas-name" }, "output"), output), wires);

  const SIZE = 20, grid = squares(2, 2, SIZE, n, () => n);
  const words = names.map((name, i) => text((i + 1) * SIZE + 6, i * SIZE + 17, name));
  const frame = draw("rect", { class: "ex-frame", x: 1, height: SIZE, rx: 2 });
  const whole = picture(n * SIZE + 30, n * SIZE + 4, ...grid.parts, ...words, frame);
  grid.all.forEach((row, i) => row.forEach((part) => part.addEventListener("click", () => ask(i))));
  const button = make("button", { type: "button" }), bar = make("i", {}), chances = make("span", {});
  button.addEventListener("click", cut);
  const box = make("div", { class: "atlas-open" }, title, lookup, make("div", { class: "atlas-side" }, make("div", { class: "ex-drawing", role: "img" }, whole), make("div", { class: "atlas-cut" }, button, make("div", { class: "atlas-meter", "aria-hidden": "true" }, bar), make("p", {}, chances))));

  let last = () => {};
  new ResizeObserver(() => last()).observe(lookup);

  function show({ name, what, rows: weights, left, first_value: first }, asks, out) {
    const row = weights[asks];
    title.replaceChildren(`Head ${name} `, make("span", {}, what));
    query.replaceChildren(make("b", { class: "query" }, names[asks]), make("small", {}, `token ${asks + 1} asks`));
    rows.forEach(({ bar, number, cell, value }, j) => {
      const hidden = j > asks;
      cell.classList.toggle("atlas-masked", hidden);
      cell.classList.toggle("atlas-none", !(row[j] >= 0.005));
      bar.style.setProperty("--w", hidden ? 0 : row[j]);
      number.textContent = hidden ? "later" : row[j].toFixed(2);
      value.textContent = hidden ? "" : names[j];
    });
    const top = row.map((w, j) => [w, j]).filter(([w]) => w > 0.03).sort(([a], [b]) => b - a).slice(0, 3);
    output.replaceChildren(...(out ? ["nothing: taken out"] : top.flatMap(([w, j], i) => [make("span", {}, i ? "+ " : "", make("b", { class: "weight" }, w.toFixed(2)), " · ", make("em", { class: "value" }, names[j]))])), ...(out || row[0] < 0.005 ? [] : [make("small", {}, `${names[0]}: length ×${first.toFixed(2)}`)]));
    grid.show(weights.map((one) => Array.from({ length: n }, (_, j) => one[j] ?? null)));
    set(frame, { y: asks * SIZE + 1, width: (asks + 1) * SIZE });
    words.forEach((word, i) => set(word, { class: i === asks ? "ex-query ex-strong" : "" }));
    box.querySelector(".ex-drawing").setAttribute("aria-label", `All weights of head ${name}: the row that is framed is the table`);
    const now = out ? left : chance;
    button.textContent = out ? "Put this head back" : "Take this head out";
    bar.style.setProperty("--w", now);
    chances.textContent = `${now.toFixed(3)} is what the model gives to ${answer} ${out ? `without head ${name}` : "with all heads"}.`;
    last = () => wire(row, asks, out);
    last();
  }
  /** A thin line for the question, to each key; a thick one for the answer, from each value. */
  function wire(row, asks, out) {
    const room = lookup.getBoundingClientRect(), at = (part) => { const { left, right, top, height } = part.getBoundingClientRect(); return { left: left - room.left, right: right - room.left, y: top - room.top + height / 2 }; };
    const asker = at(query.firstChild), end = at(output);
    if (end.y > at(table).y + room.height / 2 || end.left < at(table).right) return wires.replaceChildren(); // one below the other
    const curve = (x, y, X, Y) => `${x} ${y}C${(x + X) / 2} ${y} ${(x + X) / 2} ${Y} ${X} ${Y}`;
    const word = document.createRange(), right = ({ value }) => (word.selectNodeContents(value), word.getBoundingClientRect().right - room.left);
    const from = Math.max(...rows.map(right)) + 8, into = end.left - 8;
    let down = end.y - 15;
    wires.replaceChildren(...row.flatMap((w, j) => {
      const key = at(rows[j].row.firstChild), wide = Math.max(0.5, 30 * w), [y, to] = [key.y - wide / 2, down];
      down += 30 * w;
      return [draw("path", { d: "M" + curve(asker.right + 6, asker.y, key.left - 6, key.y), stroke: "var(--query)", "stroke-width": 1.5, opacity: 0.15 + 0.85 * w }),
        ...(out ? [] : [draw("path", { class: "atlas-ribbon", d: `M${curve(from, y, into, to)}V${to + wide}L${curve(into, to + wide, from, y + wide)}Z`, opacity: w < 0.005 ? 0.2 : 0.55 })])];
    }));
  }
  return { box, show };
}
