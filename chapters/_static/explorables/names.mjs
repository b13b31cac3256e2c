// Chapter 1: type a name as you heard it; the eight bars answer at each key press. Chapter 10 adds the learned scores.
import { mix, softmax, trigramScores } from "./math.mjs";
import { draw, frame, make, picture, set, slider, switches, text } from "./frame.mjs";

/** What a reader sees, in words, and what it was by trigrams; the build writes the first of these sentences. */
export function sentence(asked, names, scores, weights, output, before) {
  const best = weights.indexOf(Math.max(...weights));
  const was = before ? ` (by trigrams ${before[best].toFixed(2)})` : "";
  const out = output.toFixed(1);
  if (Math.max(...scores) === 0) return `${asked.trim() ? `No three letters in a row of “${asked}” occur in a stored name` : "Nothing is typed"}, so all eight weigh the same and the answer is the plain average, ${out}. Type a part of a name.`;
  if (weights[best] > 0.95) return `“${asked}” is answered by ${names[best]}, with ${weights[best].toFixed(2)} of the weight${was}, and the answer is ${out}. Leave out letters until a second name joins in, or raise the temperature.`;
  return `“${asked}” fits ${names[best]} best, with ${weights[best].toFixed(2)} of the weight${was}, and the answer is ${out}. Type on, and see who gains.`;
}

export function mount(root, { asked, names, values, temperature }, learned) {
  // Where there is room, thin lines ask each key, and what each value gives is as thick as its weight.
  // On the first page the field itself is the query of the drawing.
  const wide = matchMedia("(min-width: 640px)").matches, inside = root.closest(".ask") && matchMedia("(min-width: 1240px)").matches;
  const at = wide ? { name: 266, score: 310, bar: 324, share: 488, value: 530, out: 640, size: [640, 244] } : { name: 106, score: 146, bar: 156, share: 320, value: 350, out: 350, size: [350, 268] };
  const Y = (i) => 34 + 26 * i, middle = Y((names.length - 1) / 2) - 4;
  const rows = names.map((name, i) => {
    const y = Y(i);
    const score = text(at.score, y, "", { "text-anchor": "end" });
    const bar = draw("rect", { x: at.bar, y: y - 11, height: 14, rx: 2, class: "ex-weight" });
    const share = text(at.share, y, "", { "text-anchor": "end" });
    const asks = draw("path", { class: "ex-asks", d: `M116 ${middle}C133 ${middle} 133 ${y - 4} 150 ${y - 4}` }), gives = draw("path", { class: "ex-gives" });
    return { score, bar, share, asks, gives, parts: [...(wide ? [asks, gives] : []), text(at.name, y, name, { class: "ex-key", "text-anchor": "end" }), score,
      draw("rect", { x: at.bar, y: y - 11, width: 130, height: 14, rx: 2, class: "ex-ground" }), bar, share,
      text(at.value, y, values[i], { class: "ex-value", "text-anchor": "end" })] };
  });
  const out = text(at.out, wide ? middle + 8 : 256, "", { class: "ex-output ex-large", "text-anchor": "end" });
  const typing = text(0, middle + 5, "", { class: "ex-query ex-typed" });
  const head = (x, words, kind = "", anchor = "end") => text(x, 10, words, { "text-anchor": anchor, class: kind });
  const drawing = picture(...at.size, head(at.name - (wide ? 0 : 12), "key", "ex-key"), head(at.score, "score"), head(at.bar, "weight", "ex-weight", "start"), head(at.value, "value", "ex-value"),
    ...(wide ? [head(0, "query", "ex-query", "start"), typing, head(at.out, "output", "ex-output")] : [text(at.share - 12, 256, "output", { class: "ex-output", "text-anchor": "end" })]), ...rows.flatMap((row) => row.parts), out);
  if (inside) {
    for (const part of drawing.querySelectorAll(".ex-query")) part.remove();
    set(drawing, { viewBox: "112 0 528 244", style: "" });
    root.classList.add("ex-inside");
  }
  const name = make("input", { type: "text", value: asked, maxlength: 40, spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
  name.addEventListener("input", update);
  const box = make("label", { class: "ex-text" }, make("span", {}, "a name, as you heard it"), name);
  const warm = slider({ label: "temperature", min: -2, max: 1, step: 0.05, value: Math.log10(temperature), usual: Math.log10(temperature), ends: ["0.01", "10"],
    show: (x) => Number((10 ** x).toPrecision(2)).toString(), input: update });
  const by = learned && switches("what is compared", ["by trigrams", "by what is learned"], 0, update);
  const say = frame(root, [drawing], box, warm.box, ...(by ? [by.box] : []));
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
    let down = -13;
    const [output] = mix(weights, values.map((value) => [value]));
    rows.forEach((row, i) => {
      row.score.textContent = scores[i].toFixed(2).replace("-", "−");
      row.share.textContent = weights[i].toFixed(2);
      set(row.bar, { width: 130 * weights[i] });
      set(row.asks, { opacity: 0.2 + 0.8 * weights[i] });
      const thick = 26 * weights[i], y = Y(i) - 4, to = middle + down + thick / 2;
      down += thick;
      set(row.gives, { "stroke-width": Math.max(0.5, thick), opacity: weights[i] < 0.005 ? 0.25 : 0.55, d: `M537 ${y}C565 ${y} 565 ${to} 593 ${to}` });
    });
    typing.textContent = name.value.length > 16 ? `${name.value.slice(0, 15)}…` : name.value;
    out.textContent = output.toFixed(1);
    const others = learned && shared(trigramScores(name.value, names)), two = (x) => x.toFixed(2);
    say(sentence(name.value, names, scores, weights, output, by?.value && others), names.map((one, i) => (learned ? [one, two(others[i]), by.value ? two(weights[i]) : "–", values[i]] : [one, rows[i].score.textContent, two(weights[i]), values[i]])));
  }
}
