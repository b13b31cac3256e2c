// A head of the atlas, opened as the table of chapter 1: query, keys, weights, values, output; and its whole picture.
import { button, draw, make, picture, set, text } from "./frame.mjs";
import { fixed } from "./math.mjs";
import { squares } from "./squares.mjs";

export function opened({ tokens, answer, chance, cut, ask, controls, steps }) {
  const n = tokens.length, names = tokens.map((token) => token.trim());
  const title = make("h2", {}), query = make("b", { class: "query" }), output = make("p", { class: "atlas-output" });
  const wires = draw("svg", { class: "atlas-wires", "aria-hidden": "true" });
  const rows = names.map((name) => {
    const bar = make("i", {}), number = make("b", {}), cell = make("td", { class: "atlas-bar" }, bar, number), value = make("td", { class: "value" }, name);
    return { bar, number, cell, value, row: make("tr", {}, make("th", { scope: "row", class: "key" }, name), cell, value) };
  });
  const head = (kind) => make("th", { scope: "col", class: kind }, kind), name = (kind, words) => make("p", { class: `atlas-name ${kind}` }, words);
  const table = make("table", { class: "atlas-table" }, make("caption", {}, "What each token gets"), make("thead", {}, make("tr", {}, head("key"), head("weight"), head("value"))), make("tbody", {}, ...rows.map(({ row }) => row)));
  const lookup = make("div", { class: "atlas-lookup" }, name("query", "query"), make("p", { class: "atlas-query" }, query), controls, table, name("output-word", "output"), output, wires);

  // The name of a row stands beside its diagonal, on ground that is left free of the hatch.
  const SIZE = 20, at = (i) => i * SIZE + 2, grid = squares(2, 2, SIZE, n, (i) => i + 1);
  const words = names.map((name, i) => text(at(i + 1) + 4, at(i) + 13, name));
  const masked = draw("path", { class: "ex-square ex-masked", d: names.map(({ length }, i) => [i, at(i + (length > 1 ? 3 : 2))]).filter(([, x]) => x < at(n)).map(([i, x]) => `M${x} ${at(i)}H${at(n)}v${SIZE}H${x}z`).join("") });
  const frame = draw("rect", { class: "ex-frame", x: 1, height: SIZE, rx: 2 });
  const whole = picture(n * SIZE + 30, n * SIZE + 4, masked, ...grid.parts, ...words, frame);
  whole.addEventListener("click", ({ clientY }) => { const { top, height } = whole.getBoundingClientRect(); ask(Math.min(n - 1, Math.floor((n * (clientY - top)) / height))); });
  const square = make("div", { class: "ex-drawing", role: "img" }, whole);
  const takes = button("", cut), bar = make("i", {}), chances = make("p", {});
  const box = make("div", { class: "atlas-open" }, title, steps, lookup, square, make("div", { class: "atlas-cut" }, takes, make("div", { class: "atlas-meter", "aria-hidden": "true" }, bar), chances));

  let last = () => {};
  new ResizeObserver(() => last()).observe(lookup);

  function show({ name, what, rows: weights, left, first_value: first }, asks, out) {
    const row = weights[asks];
    title.replaceChildren(`Head ${name} `, make("span", {}, what));
    query.textContent = names[asks];
    rows.forEach(({ bar, number, cell, value }, j) => {
      const hidden = j > asks;
      cell.classList.toggle("atlas-masked", hidden);
      cell.classList.toggle("atlas-none", !(row[j] >= 0.005));
      bar.style.setProperty("--w", hidden ? 0 : row[j]);
      number.textContent = hidden ? "later" : fixed(row[j]);
      value.textContent = hidden ? "" : names[j];
    });
    const top = row.map((w, j) => [w, j]).filter(([w]) => w > 0.03).sort(([a], [b]) => b - a).slice(0, 3);
    output.replaceChildren(...(out ? ["nothing: taken out"] : top.flatMap(([w, j], i) => [make("span", {}, i ? "+ " : "", make("b", { class: "weight" }, fixed(w)), " · ", make("em", { class: "value" }, names[j]))])), ...(out || row[0] < 0.005 ? [] : [make("small", {}, `${names[0]}: length ×${fixed(first)}`)]));
    grid.show(weights);
    set(frame, { y: at(asks) - 1, width: (asks + 1) * SIZE });
    words.forEach((word, i) => set(word, { class: i === asks ? "ex-query ex-strong" : "" }));
    set(square, { "aria-label": `All weights of head ${name}: the row that is framed is the table` });
    const now = out ? left : chance;
    takes.textContent = out ? "Put this head back" : "Take this head out";
    bar.style.setProperty("--w", now);
    chances.replaceChildren(make("b", { class: "output-word" }, fixed(now, 3)), ` is what the model gives to ${answer} ${out ? `without head ${name}` : "with all heads"}.`);
    last = () => wire(row, asks, out);
    last();
  }
  /** A thin line for the question, to each key; a thick one for the answer, from each value. */
  function wire(row, asks, out) {
    const room = lookup.getBoundingClientRect(), place = (part) => { const { left, right, top, height } = part.getBoundingClientRect(); return { left: left - room.left, right: right - room.left, y: top - room.top + height / 2 }; };
    const word = document.createRange(), words = (part) => (word.selectNodeContents(part), place(word));
    const asker = words(query), end = place(output);
    if (end.left < place(table).right - 1) return wires.replaceChildren(); // one below the other
    const curve = (x, y, X, Y) => `${x} ${y}C${(x + X) / 2} ${y} ${(x + X) / 2} ${Y} ${X} ${Y}`;
    const from = Math.max(...rows.map(({ value }) => words(value).right)) + 8, into = end.left - 8;
    let down = end.y - 15;
    wires.replaceChildren(...row.flatMap((w, j) => {
      const { left, y } = words(rows[j].row.firstChild), wide = Math.max(0.5, 30 * w), [top, to] = [y - wide / 2, down];
      down += 30 * w;
      return [draw("path", { d: "M" + curve(asker.right + 8, asker.y, left - 8, y), stroke: "var(--query)", "stroke-width": 1.5, opacity: 0.15 + 0.85 * w }),
        ...(out ? [] : [draw("path", { class: "atlas-ribbon", d: `M${curve(from, top, into, to)}V${to + wide}L${curve(into, to + wide, from, top + wide)}Z`, opacity: w < 0.005 ? 0.2 : 0.55 })])];
    }));
  }
  return { box, show };
}
