// Chapter 1: type a name as you heard it; the eight bars answer at each key press. Chapter 10 adds the learned scores.
import { mix, softmax, trigramScores } from "./math.mjs";
import { sentence } from "./answered.mjs";
import { draw, frame, make, picture, set, slider, sumOf, switches, text } from "./frame.mjs";

export function mount(root, { asked, names, values, temperature }, learned) {
  // Where there is room, thin lines ask each key, and what each value gives is as thick as its weight.
  // On the first page the field itself is the query of the drawing, and the five colours are the heads of its columns.
  const wide = matchMedia("(min-width: 640px)").matches, first = root.closest(".ask"), inside = first && matchMedia("(min-width: 1240px)").matches;
  const at = inside ? { asks: 0, to: 52, name: 60, score: 236, bar: 262, span: 150, value: 496, gives: 508, joins: 570, out: 579, size: [688, 258], row: 30, big: "start" }
    : wide ? { asks: 116, to: 150, name: 266, score: 310, bar: 324, span: 130, share: 488, value: 530, gives: 537, joins: 593, out: 640, size: [640, 244], row: 26, big: "end" }
      : { name: 106, score: 146, bar: 156, span: 130, share: 320, value: 350, out: 350, size: [350, 268], row: 26, big: "end" };
  const Y = (i) => 8 + at.row * (i + 1), middle = Y((names.length - 1) / 2) - 4, end = { "text-anchor": "end" };
  const rows = names.map((name, i) => {
    const y = Y(i);
    const score = text(at.score, y, "", end), bar = draw("rect", { x: at.bar, y: y - 11, height: 14, rx: inside ? 0 : 2, class: "ex-weight" }), share = text(at.share ?? 0, y, "", inside ? {} : end);
    const bend = (at.asks + at.to) / 2, asks = draw("path", { class: "ex-asks", d: !wide ? "" : `M${at.asks} ${middle}C${bend} ${middle} ${bend} ${y - 4} ${at.to} ${y - 4}` }), gives = draw("path", { class: "ex-gives" });
    const ground = inside ? draw("line", { x1: at.bar, x2: at.bar, y1: y - 13, y2: y + 5, class: "ex-grid" }) : draw("rect", { x: at.bar, y: y - 11, width: at.span, height: 14, rx: 2, class: "ex-ground" });
    return { score, bar, share, asks, gives, parts: [...(wide ? [asks, gives] : []), text(at.name, y, name, { class: "ex-key", ...(inside ? {} : end) }), score, ground, bar, share, text(at.value, y, values[i], { class: "ex-value", ...end })] };
  });
  const out = text(at.out, inside ? middle + 14 : wide ? middle + 8 : 256, "", { class: "ex-output ex-large", "text-anchor": at.big });
  const typing = text(0, middle + 5, "", { class: "ex-query ex-typed" });
  const head = (x, words, kind = "", anchor = "end") => text(x, 10, words, { "text-anchor": anchor, class: kind });
  const drawing = picture(...at.size, head(at.name - (wide ? 0 : 12), "key", "ex-key", inside ? "start" : "end"), head(at.score, "score"), head(at.bar, "weight", "ex-weight", "start"), head(at.value, "value", "ex-value"),
    ...(wide ? [head(at.out, "output", "ex-output", at.big)] : [text(at.share - 12, 256, "output", { class: "ex-output", ...end })]), ...(wide && !inside ? [head(0, "query", "ex-query", "start"), typing] : []),
    ...(inside ? [text(at.out, middle + 36, "thousand a year", { class: "ex-quiet ex-small" })] : []), ...rows.flatMap((row) => row.parts), out);
  if (inside) root.classList.add("ex-inside");
  const name = make("input", { type: "text", value: asked, maxlength: 40, spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
  name.addEventListener("input", update);
  const box = make("label", { class: "ex-text" }, make("span", {}, "a name, as you heard it"), name);
  const warm = slider({ label: "temperature", min: -2, max: 1, step: 0.05, value: Math.log10(temperature), usual: Math.log10(temperature), ends: ["0.01", "10"],
    show: (x) => Number((10 ** x).toPrecision(2)).toString(), input: update });
  const by = learned && switches("what is compared", ["by trigrams", "by what is learned"], 0, update);
  const tries = first && make("div", { class: "ex-tries", role: "group", "aria-label": "Names to try" }, ...["brunna kelner", "farid", "zxq"].map((words) => {
    const one = make("button", { type: "button" }, words);
    one.addEventListener("click", () => { name.value = words; update(); });
    return one;
  }));
  const say = frame(root, [drawing], box, ...(tries ? [tries] : []), warm.box, ...(by ? [by.box] : []));
  const sum = first && make("p", { class: "ex-sum", "aria-hidden": "true" }); // what is said beneath, as arithmetic
  if (sum) root.querySelector(".ex-says").before(sum);
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
    const weights = shared(scores);
    const full = inside ? 36 : 26, turn = (at.gives + at.joins) / 2;
    let down = -full / 2;
    const [output] = mix(weights, values.map((value) => [value]));
    rows.forEach((row, i) => {
      row.score.textContent = scores[i].toFixed(2).replace("-", "−");
      row.share.textContent = weights[i].toFixed(2);
      row.share.classList.toggle("ex-quiet", weights[i] < 0.005);
      if (inside) set(row.share, { x: at.bar + at.span * weights[i] + 8 });
      set(row.bar, { width: at.span * weights[i] });
      set(row.asks, { opacity: 0.2 + 0.8 * weights[i] });
      const thick = full * weights[i], y = Y(i) - 4, to = middle + down + thick / 2;
      down += thick;
      if (wide) set(row.gives, { "stroke-width": Math.max(0.5, thick), opacity: weights[i] < 0.005 ? 0.25 : 0.55, d: `M${at.gives} ${y}C${turn} ${y} ${turn} ${to} ${at.joins} ${to}` });
    });
    typing.textContent = name.value.length > 16 ? `${name.value.slice(0, 15)}…` : name.value;
    out.textContent = output.toFixed(1);
    sum?.replaceChildren(...sumOf(weights, values, output.toFixed(1)));
    const others = learned && shared(trigramScores(name.value, names)), two = (x) => x.toFixed(2);
    say(sentence(name.value, names, scores, weights, output, by?.value && others), names.map((one, i) => (learned ? [one, two(others[i]), by.value ? two(weights[i]) : "–", values[i]] : [one, rows[i].score.textContent, two(weights[i]), values[i]])));
  }
}
