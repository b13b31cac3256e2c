// Chapter 3: choose a sentence and the word that asks, click the mask, and read the word's ledger and output.
import { fixed, masked } from "./math.mjs";
import { button, choice, draw, frame, make, picture, set, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(words, asks, seen, { weights, output }, tried) {
  const quoted = (word) => `“${word}”`, word = quoted(words[asks]);
  if (!seen.some(Boolean)) return `Nothing is left for ${word} to see, so its weights and its output are all 0. Click a cell of its row to show a word again.`;
  const most = Math.max(...weights), best = words.filter((_, j) => most - weights[j] < 1e-9).map(quoted), largest = best.length > 1 ? `Its largest weights, ${fixed(most)} each, are` : `Its largest weight, ${fixed(most)}, is`;
  const hidden = words.filter((_, j) => !seen[j]);
  const next = tried.over ? `${best.join(" and ")} took over from ${quoted(tried.over)}.` : !hidden.length ? `Hide ${best[0]} from it, and look who takes over.`
    : !tried.word ? `Choose another word${tried.sentence ? "." : ", or the other sentence."}` : tried.sentence ? "Click a cell of its row, and look who takes over." : "Now choose the other sentence.";
  const sees = hidden.length ? `${word} does not see ${new Intl.ListFormat("en-GB").format(hidden.map(quoted))}` : `${word} sees every word`;
  return `${sees}. ${largest} on ${best.join(" and ")}, and the answer has ${fixed(output[0])} of food and ${fixed(output[1])} of technology. ${next}`;
}

export function mount(root, { sentences, embedding, components }) {
  const which = choice("sentence", sentences.map((words) => words.join(" ")), 0, () => { tried.sentence = true; restart(); });
  const grid = make("table", { role: "grid", "aria-label": "the mask: a row for each word that asks, a column for each word that may be seen", class: "ex-grid-table" });
  const bars = components.map((name, i) => {
    const y = 22 + 26 * i;
    const bar = draw("rect", { y: y - 11, height: 14, rx: 2, class: "ex-output" });
    const number = text(0, y, "");
    return { bar, number, parts: [text(74, y, name, { class: "ex-output", "text-anchor": "end" }), bar, number] };
  });
  const steps = make("table", { class: "ex-steps" });
  const answer = picture(306, 26 * components.length + 6, draw("line", { x1: 140, x2: 140, y1: 6, y2: 26 * components.length + 2, class: "ex-grid" }), ...bars.flatMap((bar) => bar.parts));
  const lines = make("div", { class: "ex-lines" });
  const tried = { word: false, sentence: false, over: "" }; // over: the word of the largest weight, when it is hidden
  let words, vectors, mask, asks, cells, at, drawn;
  const restart = () => {
    words = sentences[which.value];
    vectors = words.map((word) => embedding[word]);
    asks = words.indexOf("apple");
    tried.over = "";
    at = [asks, 0];
    mask = by((rules.find(([, , one]) => one.ariaPressed === "true") ?? rules[0])[1]); // as before
    build();
    update();
  };
  const by = (rule) => words.map((_, i) => words.map((_, j) => rule(i, j)));
  const rules = [["Causal", (i, j) => j <= i], ["Padding", (_, j) => j > 0], ["Both", (i, j) => j > 0 && j <= i], ["None", () => true]]
    .map(([name, rule]) => [name, rule, button(name, () => { tried.over = ""; mask = by(rule); update(); })]);
  const say = frame(root, [grid, lines, answer, steps], which.box,
    make("div", { class: "ex-buttons ex-rules" }, ...rules.map(([, , one]) => one)));
  grid.parentNode.setAttribute("role", "group"); // it is a table, not a picture
  restart();

  function ask(i) {
    if (asks === i) return;
    [asks, tried.word, tried.over] = [i, true, ""];
    update();
  }
  function build() {
    cells = words.map((word, i) => words.map((other, j) => {
      const cell = make("td", { role: "gridcell", tabindex: -1 });
      cell.addEventListener("click", () => {
        const { weights } = masked(vectors[i], vectors, vectors, mask[i]);
        asks = i;
        at = [i, j];
        tried.over = mask[i][j] && weights.every((w, k) => k === j || w < weights[j] - 1e-9) ? other : "";
        mask[i][j] = !mask[i][j];
        update();
      });
      cell.addEventListener("focus", () => { at = [i, j]; ask(i); });
      return cell;
    }));
    const Y = (i) => 20 + 30 * i;
    drawn = words.map((word, i) => ({ // a finger chooses, the mouse needs only to come near
      word: text(66, Y(i) + 4, word, { "text-anchor": "end", class: "ex-query" }), near: draw("rect", { x: 0, y: Y(i) - 15, width: 74, height: 30, fill: "transparent", class: "ex-near" }),
      lines: words.map((_, j) => draw("line", { x1: 74, x2: 176, y1: Y(i), y2: Y(j), class: "ex-value" })) }));
    drawn.forEach(({ near }, i) => { near.onclick = () => ask(i); near.onpointerenter = ({ pointerType }) => { if (pointerType !== "touch") ask(i); }; });
    lines.replaceChildren(picture(240, 30 * words.length + 10, ...drawn.flatMap((one) => one.lines), ...drawn.flatMap((one) => [one.word, one.near]),
      ...words.map((word, j) => text(184, Y(j) + 4, word, { class: "ex-key" }))));
    const head = make("tr", { role: "row" }, make("td", {}), ...words.map((word) => make("th", { scope: "col", class: "ex-key-word" }, word)));
    grid.replaceChildren(head, ...words.map((word, i) => make("tr", { role: "row" }, make("th", { scope: "row", class: "ex-query-word" }, word), ...cells[i])));
  }
  grid.addEventListener("keydown", (event) => {
    const [i, j] = at, last = words.length - 1;
    const to = { ArrowUp: [Math.max(0, i - 1), j], ArrowDown: [Math.min(last, i + 1), j], ArrowLeft: [i, Math.max(0, j - 1)], ArrowRight: [i, Math.min(last, j + 1)], Home: [i, 0], End: [i, last] }[event.key];
    if (to) cells[to[0]][to[1]].focus();
    else if (event.key === " " || event.key === "Enter") cells[i][j].click();
    else return;
    event.preventDefault();
  });

  function update() {
    const found = words.map((_, i) => masked(vectors[i], vectors, vectors, mask[i]));
    cells.forEach((row, i) => row.forEach((cell, j) => {
      const seen = mask[i][j], weight = found[i].weights[j];
      set(cell, { "aria-selected": seen, class: seen ? "" : "ex-hidden", tabindex: i === at[0] && j === at[1] ? 0 : -1, style: `--w:${weight}`,
        "aria-label": `${words[i]} ${seen ? `sees ${words[j]}, weight ${fixed(weight)}` : `does not see ${words[j]}`}` });
      cell.textContent = seen ? fixed(weight) : "";
      cell.parentNode.classList.toggle("ex-asks", i === asks);
    }));
    drawn.forEach(({ word, lines }, i) => {
      set(word, { class: i === asks ? "ex-query ex-strong" : "ex-query" });
      lines.forEach((one, j) => set(one, { "stroke-width": Math.max(0.4, 9 * found[i].weights[j]), style: `opacity:${mask[i][j] ? (i === asks ? 0.85 : 0.1) : 0}` }));
    });
    const { scores, scaled, weights, output } = found[asks];
    const told = (x, j) => (mask[asks][j] ? fixed(x) : "–"), line = (name, row) => make("tr", {}, make("th", { scope: "row" }, name), ...row.map((x, j) => make("td", {}, told(x, j))));
    steps.replaceChildren(make("caption", {}, `The ledger of “${words[asks]}”`), make("tr", {}, make("td", {}), ...words.map((word) => make("th", { scope: "col" }, word))),
      line("score", scores), line("scaled", scaled), line("weight", weights));
    bars.forEach(({ bar, number }, i) => {
      const long = 36 * output[i];
      set(bar, { x: 140 + Math.min(0, long), width: Math.abs(long) });
      set(number, { x: 146 + Math.max(0, long) });
      number.textContent = fixed(output[i]);
    });
    const hidden = mask.flat().filter((seen) => !seen).length;
    for (const [, rule, one] of rules) set(one, { "aria-pressed": `${by(rule)}` === `${mask}` });
    say((hidden ? `${hidden} of ${words.length ** 2} cells ${hidden === 1 ? "is" : "are"} hidden. ` : "") + sentence(words, asks, mask[asks], found[asks], tried),
      words.map((word, j) => [word, ...[scores, scaled, weights].map((row) => told(row[j], j))]));
  }
}
