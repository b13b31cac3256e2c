// The first page, chapters 1 and 10: type a name as you heard it; the eight bars answer at each key press. On the first page and
// in chapter 10 the names are also compared as chapter 10 learned it.
import { fixed, mix, softmax, trigramScores } from "./math.mjs";
import { sentence } from "./answered.mjs";
import { button, draw, frame, make, picture, set, slider, sumOf, switches, text } from "./frame.mjs";

export function mount(root, { asked, names, values, temperature }, learned) {
  // The field is the query of the drawing, and the five colours are the heads of its columns. Where there is room, thin lines
  // ask each key, and what each value gives is as thick as its weight.
  const wider = (px) => matchMedia(`(min-width: ${px}px)`).matches, flows = wider(640);
  const at = root.closest(".ask") && wider(1240) ? { to: 52, name: 60, score: 216, bar: 236, span: 126, value: 442, gives: 452, joins: 568, out: 579, size: [688, 274], row: 30, high: 36 }
    : flows ? { to: 36, name: 42, score: 178, bar: 190, span: 76, value: 330, gives: 338, joins: 388, out: 398, size: [472, 246], row: 26, high: 26 }
      : { name: 0, score: 148, bar: 164, span: 124, value: 350, out: 0, size: [350, 268], row: 24 };
  const top = flows ? 24 : 19, Y = (i) => top + at.row * (i + 1), middle = Y((names.length - 1) / 2) - 4, below = at.size[1] - 6, end = { "text-anchor": "end" };
  const rows = names.map((name, i) => {
    const y = Y(i), score = text(at.score, y, "", end), bar = draw("rect", { x: at.bar, y: y - 11, height: 14, class: "ex-weight" }), share = text(0, y, "");
    const asks = draw("path", { class: "ex-asks", d: !flows ? "" : `M0 ${middle}C${at.to / 2} ${middle} ${at.to / 2} ${y - 4} ${at.to} ${y - 4}` }), gives = draw("path", { class: "ex-gives" });
    return { score, bar, share, asks, gives, parts: [...(flows ? [asks, gives] : []), text(at.name, y, name, { class: "ex-key" }), score, draw("line", { x1: at.bar, x2: at.bar, y1: y - 13, y2: y + 5, class: "ex-grid" }), bar, share, text(at.value, y, values[i], { class: "ex-value", ...end })] };
  });
  const out = text(at.out, flows ? middle + 14 : below, "", { class: "ex-output ex-large" });
  const head = (x, words, kind = "", anchor = "start", y = top + 2) => text(x, y, words, { "text-anchor": anchor, class: kind });
  const band = (kind, from, to, y = 0) => draw("rect", { x: from, y, width: to - from, height: 6, class: `ex-${kind}` });
  const value = at.value - (flows ? 20 : 36), quiet = { class: "ex-quiet ex-small" };
  const heads = [head(at.name, "key", "ex-key"), head(at.score, "score", "", "end"), head(at.bar, "weight", "ex-weight"), head(at.value, "value", "ex-value", "end"),
    band("key", at.name, at.bar), band("weight", at.bar, value), band("value", value, flows ? at.out : at.value),
    ...(flows ? [band("query", 0, at.name), band("output", at.out, at.size[0]), head(at.out, "output", "ex-output"), text(at.out, middle + 34, "thousand", quiet), text(at.out, middle + 50, "a year", quiet)]
      : [band("output", 0, at.value, below - 41), head(92, "output", "ex-output", "start", below - 17), text(92, below, "thousand a year", quiet)])];
  const name = make("input", { type: "text", value: asked, maxlength: 40, spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
  name.addEventListener("input", update);
  const warm = slider({ label: "temperature", min: -2, max: 1, step: 0.05, value: Math.log10(temperature), usual: Math.log10(temperature), ends: ["0.01", "10"],
    show: (x) => Number((10 ** x).toPrecision(2)).toString(), input: update });
  const by = learned && switches("how names are compared", ["by letters in a row", "as chapter 10 learned it"], 0, update);
  const field = make("div", { class: "ex-field" }, make("label", { class: "ex-text" }, make("span", {}, "a name, as you heard it"), name),
    make("div", { class: "ex-tries", role: "group", "aria-label": "Names to try" }, ...["brunna kelner", "farid", "zxq"].map((words) => button(words, () => { name.value = words; update(); }))));
  const say = frame(root, [field, picture(...at.size, ...heads, ...rows.flatMap((row) => row.parts), out)], warm.box, ...(by ? [by.box] : []));
  set(field.parentNode, { role: "group" }); // there is something to type in it
  const sum = make("p", { class: "ex-sum", "aria-hidden": "true" }); // what is said beneath, as arithmetic
  root.querySelector(".ex-says").before(sum);
  update();

  async function update() {
    const typed = name.value;
    if (!by?.value) return show(trigramScores(typed, names));
    try {
      const scores = await learned(typed);
      if (!by.value || typed !== name.value) return;
      if (scores) show(scores);
      else say(`“${typed}” has a letter in it that the encoder has never learned. Write it with the letters a to z.`);
    } catch {
      say("The encoder could not be loaded. What is drawn is what was there before; type on to try again.");
    }
  }
  function show(scores) {
    const shared = (all) => softmax(all.map((score) => score / 10 ** warm.value));
    const weights = shared(scores), turn = (at.gives + at.joins) / 2, [output] = mix(weights, values.map((value) => [value]));
    let down = -at.high / 2;
    rows.forEach((row, i) => {
      const thick = at.high * weights[i], y = Y(i) - 4, to = middle + down + thick / 2;
      down += thick;
      row.score.textContent = fixed(scores[i]);
      row.share.textContent = fixed(weights[i]);
      set(row.share, { x: at.bar + at.span * weights[i] + 8, class: weights[i] < 0.005 ? "ex-quiet" : "" });
      set(row.bar, { width: at.span * weights[i] });
      set(row.asks, { opacity: 0.2 + 0.8 * weights[i] });
      if (flows) set(row.gives, { "stroke-width": Math.max(0.5, thick), opacity: weights[i] < 0.005 ? 0.25 : 0.55, d: `M${at.gives} ${y}C${turn} ${y} ${turn} ${to} ${at.joins} ${to}` });
    });
    out.textContent = fixed(output, 1);
    sum.replaceChildren(...sumOf(weights, values, fixed(output, 1), 0.01));
    const others = learned && shared(trigramScores(name.value, names));
    say(sentence(name.value, names, scores, weights, output, by?.value && others), names.map((one, i) => (learned ? [one, fixed(others[i]), by.value ? fixed(weights[i]) : "–", values[i]] : [one, rows[i].score.textContent, fixed(weights[i]), values[i]])));
  }
}
