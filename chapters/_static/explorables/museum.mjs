// Chapter 9: a mistake is switched on and off, and four tests look at the weights.
import { fixed } from "./math.mjs";
import { exhibit, holds } from "./exhibits.mjs";
import { choice, frame, picture, set, switches, text } from "./frame.mjs";
import { squares } from "./squares.mjs";

const BUGS = ["upside", "late", "corner", "width", "axis"];
const SHORT = ["mask upside down", "mask off by one", "triangle at a wrong corner", "scale of the whole width", "softmax over the queries"]; // as a phone has room for
const NAMES = ["the mask is upside down", "the mask is off by one", "the triangle begins at the wrong corner", "the scale takes the width of the whole model", "the softmax runs over the queries"];
const TESTS = ["it is the definition", "weights sum to one", "a later token changes nothing", "one at a time is all at once"];

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(bug, name, kept, first, tried) {
  const all = tried.length === NAMES.length ? "You have seen all five." : "";
  if (!bug) return `Without the mistake all four tests hold${tried.length ? " again" : ""}. ${all || `${first || tried.includes(name) ? `Choose ${tried.length ? "another" : "one"}, say which tests will notice it,` : `If ${name}, which tests will notice it? Guess,`} and switch it on.`}`;
  const broken = TESTS.filter((_, i) => !kept[i]).map((words) => `“${words}”`);
  const which = broken.length > 1 ? `The tests ${broken.slice(0, -1).join(", ")} and ${broken.at(-1)} notice it.` : `Only the test ${broken[0]} notices it.`;
  return `Now ${name}. ${which} ${broken.length > 1 ? all || "Choose another, and guess first." : `The others see nothing wrong, so one test is not enough. ${all}`.trim()}`;
}

export function mount(root, { products, width, heads }) {
  const tried = new Set(), n = products.length, m = products[0].length, SIZE = 48, X = 66, Y = 44;
  const grid = squares(X, Y, SIZE, n, () => m);
  const numbers = grid.all.map((row, i) => row.map((_, j) => text(X + SIZE * (j + 0.46), Y + SIZE * (i + 0.46) + 5, "", { "text-anchor": "middle", class: "ex-on" })));
  const sums = products.map((_, i) => text(X + SIZE * m + 38, Y + SIZE * (i + 0.46) + 5, "", { "text-anchor": "end" }));
  const tests = TESTS.map((words, i) => ({ mark: text(4, 20 + 30 * i, "", { class: "ex-large" }), words: text(22, 20 + 30 * i, words) }));
  const table = picture(310, 200, text(X, 14, "keys", { class: "ex-key" }), text(X + SIZE * m + 38, 32, "sum", { "text-anchor": "end" }), ...grid.parts, ...numbers.flat(), ...sums,
    ...products[0].map((_, j) => text(X + SIZE * (j + 0.46), 34, j + 1, { class: "ex-key", "text-anchor": "middle" })),
    ...products.map((_, i) => text(X - 12, Y + SIZE * (i + 0.46) + 5, `token ${i + 1 + m - n}`, { class: "ex-query", "text-anchor": "end" })));
  const list = picture(240, 120, ...tests.flatMap(({ mark, words }) => [mark, words]));
  const which = choice("the mistake", SHORT, 0, update);
  const on = switches("with or without it", ["as it should be", "with the mistake"], 0, update);
  const say = frame(root, [table, list], which.box, on.box);
  update();

  function update() {
    const bug = on.value ? BUGS[which.value] : "";
    const weights = exhibit(bug, products, width, heads), kept = holds(bug, products, width, heads);
    grid.show(weights.map((row) => row.map((w) => w || null)));
    weights.forEach((row, i) => {
      row.forEach((w, j) => { numbers[i][j].textContent = w === 0 ? "" : fixed(w); numbers[i][j].style.setProperty("--w", w); });
      const sum = row.reduce((a, b) => a + b, 0);
      sums[i].textContent = fixed(sum);
      set(sums[i], { class: Math.abs(sum - 1) < 1e-9 ? "" : "ex-wrong" });
    });
    tests.forEach(({ mark, words }, i) => {
      mark.textContent = kept[i] ? "✓" : "✗";
      set(mark, { class: `ex-large ${kept[i] ? "" : "ex-wrong"}` });
      set(words, { class: kept[i] ? "" : "ex-wrong" });
    });
    if (bug) tried.add(NAMES[which.value]);
    say(sentence(bug, NAMES[which.value], kept, which.value === 0, [...tried]), weights.map((row, i) => [`token ${i + 1 + m - n}`, ...row.map((w) => (w ? fixed(w) : "–")), sums[i].textContent]));
  }
}
