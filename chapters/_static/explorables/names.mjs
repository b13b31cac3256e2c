// Chapter 1: type a name as you heard it; the eight bars answer at each key press. Chapter 10 adds the learned scores.
import { mix, softmax, trigramScores } from "./math.mjs";
import { sentence } from "./answered.mjs";
import { draw, frame, make, picture, set, slider, sumOf, switches, text } from "./frame.mjs";

export function mount(root, { asked, names, values, temperature }, learned) {
  // Where there is room, thin lines ask each key, and what each value gives is as thick as its weight.
  // On the first page the field itself is the query of the drawing, the five colours are the heads of its columns, and the answer is large.
  const wider = (px) => matchMedia(`(min-width: ${px}px)`).matches, wide = wider(640), first = root.closest(".ask"), inside = first && wider(700);
  const at = first && wider(1240) ? { asks: 0, to: 52, name: 60, score: 216, bar: 236, span: 126, value: 442, gives: 452, joins: 568, out: 579, size: [688, 274], row: 30, high: 36 }
    : inside ? { asks: 0, to: 36, name: 42, score: 178, bar: 190, span: 76, value: 330, gives: 338, joins: 388, out: 398, size: [472, 246], row: 26, high: 26 }
      : first ? { name: 0, score: 148, bar: 164, span: 124, value: 350, out: 0, size: [350, 268], row: 24 }
        : wide ? { asks: 116, to: 150, name: 266, score: 310, bar: 324, span: 130, share: 488, value: 530, gives: 537, joins: 593, out: 640, size: [640, 244], row: 26, high: 26 }
          : { name: 106, score: 146, bar: 156, span: 130, share: 320, value: 350, out: 350, size: [350, 268], row: 26 };
  const flows = "asks" in at, top = first ? (flows ? 24 : 19) : 8, Y = (i) => top + at.row * (i + 1), middle = Y((names.length - 1) / 2) - 4, below = at.size[1] - (first ? 6 : 12), end = { "text-anchor": "end" };
  const rows = names.map((name, i) => {
    const y = Y(i);
    const score = text(at.score, y, "", end), bar = draw("rect", { x: at.bar, y: y - 11, height: 14, rx: first ? 0 : 2, class: "ex-weight" }), share = text(at.share ?? 0, y, "", first ? {} : end);
    const bend = (at.asks + at.to) / 2, asks = draw("path", { class: "ex-asks", d: !flows ? "" : `M${at.asks} ${middle}C${bend} ${middle} ${bend} ${y - 4} ${at.to} ${y - 4}` }), gives = draw("path", { class: "ex-gives" });
    const ground = first ? draw("line", { x1: at.bar, x2: at.bar, y1: y - 13, y2: y + 5, class: "ex-grid" }) : draw("rect", { x: at.bar, y: y - 11, width: at.span, height: 14, rx: 2, class: "ex-ground" });
    return { score, bar, share, asks, gives, parts: [...(flows ? [asks, gives] : []), text(at.name, y, name, { class: "ex-key", ...(first ? {} : end) }), score, ground, bar, share, text(at.value, y, values[i], { class: "ex-value", ...end })] };
  });
  const out = text(at.out, flows ? middle + (first ? 14 : 8) : below, "", { class: "ex-output ex-large", "text-anchor": first ? "start" : "end" });
  const typing = text(0, middle + 5, "", { class: "ex-query ex-typed" });
  const head = (x, words, kind = "", anchor = "end", y = top + 2) => text(x, y, words, { "text-anchor": anchor, class: kind });
  const band = (kind, from, to, y = 0) => draw("rect", { x: from, y, width: to - from, height: 6, class: `ex-${kind}` });
  const value = at.value - 20, quiet = { class: "ex-quiet ex-small" };
  const heads = first ? [head(at.name, "key", "ex-key", "start"), head(at.score, "score"), head(at.bar, "weight", "ex-weight", "start"), flows ? head(value, "value", "ex-value", "start") : head(at.value, "value", "ex-value"),
    ...(flows ? [band("query", 0, at.name)] : []), band("key", at.name, at.bar), band("weight", at.bar, value - (flows ? 0 : 16)), band("value", value - (flows ? 0 : 16), flows ? at.out : at.value),
    ...(flows ? [band("output", at.out, at.size[0]), head(at.out, "output", "ex-output", "start"), text(at.out, middle + 34, "thousand", quiet), text(at.out, middle + 50, "a year", quiet)]
      : [band("output", 0, at.value, below - 41), head(92, "output", "ex-output", "start", below - 17), text(92, below, "thousand a year", quiet)])]
    : [head(at.name - (wide ? 0 : 12), "key", "ex-key"), head(at.score, "score"), head(at.bar, "weight", "ex-weight", "start"), head(at.value, "value", "ex-value"),
      ...(wide ? [head(at.out, "output", "ex-output"), head(0, "query", "ex-query", "start"), typing] : [head(at.share - 12, "output", "ex-output", "end", below)])];
  const drawing = picture(...at.size, ...heads, ...rows.flatMap((row) => row.parts), out);
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
    const full = at.high, turn = (at.gives + at.joins) / 2;
    let down = -full / 2;
    const [output] = mix(weights, values.map((value) => [value]));
    rows.forEach((row, i) => {
      row.score.textContent = scores[i].toFixed(2).replace("-", "−");
      row.share.textContent = weights[i].toFixed(2);
      row.share.classList.toggle("ex-quiet", weights[i] < 0.005);
      if (first) set(row.share, { x: at.bar + at.span * weights[i] + 8 });
      set(row.bar, { width: at.span * weights[i] });
      set(row.asks, { opacity: 0.2 + 0.8 * weights[i] });
      const thick = full * weights[i], y = Y(i) - 4, to = middle + down + thick / 2;
      down += thick;
      if (flows) set(row.gives, { "stroke-width": Math.max(0.5, thick), opacity: weights[i] < 0.005 ? 0.25 : 0.55, d: `M${at.gives} ${y}C${turn} ${y} ${turn} ${to} ${at.joins} ${to}` });
    });
    typing.textContent = name.value.length > 16 ? `${name.value.slice(0, 15)}…` : name.value;
    out.textContent = output.toFixed(1);
    sum?.replaceChildren(...sumOf(weights, values, output.toFixed(1), 0.01));
    const others = learned && shared(trigramScores(name.value, names)), two = (x) => x.toFixed(2);
    say(sentence(name.value, names, scores, weights, output, by?.value && others), names.map((one, i) => (learned ? [one, two(others[i]), by.value ? two(weights[i]) : "–", values[i]] : [one, rows[i].score.textContent, two(weights[i]), values[i]])));
  }
}
