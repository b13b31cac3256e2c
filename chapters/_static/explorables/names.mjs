// Chapter 1: type a name as you heard it; the eight bars answer at each key press. Chapter 10 adds the learned scores.
import { mix, softmax, trigramScores } from "./math.mjs";
import { draw, frame, make, picture, set, slider, switches, text } from "./frame.mjs";

/** What a reader sees, in words, and what it was by trigrams; the build writes the first of these sentences. */
export function sentence(asked, names, scores, weights, output, before) {
  const best = weights.indexOf(Math.max(...weights));
  const was = before ? ` (by trigrams ${before[best].toFixed(2)})` : "";
  const out = output.toFixed(1);
  if (Math.max(...scores) === 0) return `Nothing in “${asked}” occurs in a stored name, so all eight weigh the same and the answer is the plain average, ${out}. Type a part of a name.`;
  if (weights[best] > 0.95) return `“${asked}” is answered by ${names[best]}, with ${weights[best].toFixed(2)} of the weight${was}, and the answer is ${out}. Leave out letters until a second name joins in, or raise the temperature.`;
  return `“${asked}” fits ${names[best]} best, with ${weights[best].toFixed(2)} of the weight${was}, and the answer is ${out}. Type on, and see who gains.`;
}

export function mount(root, { asked, names, values, temperature }, learned) {
  const rows = names.map((name, i) => {
    const y = 34 + 26 * i;
    const score = text(192, y, "", { "text-anchor": "end" });
    const bar = draw("rect", { x: 208, y: y - 11, height: 14, rx: 2, class: "ex-weight" });
    const share = text(382, y, "", { "text-anchor": "end" });
    return { score, bar, share, parts: [text(142, y, name, { class: "ex-key", "text-anchor": "end" }), score,
      draw("rect", { x: 208, y: y - 11, width: 130, height: 14, rx: 2, class: "ex-ground" }), bar, share,
      text(440, y, values[i], { class: "ex-value", "text-anchor": "end" })] };
  });
  const out = text(440, 256, "", { class: "ex-output ex-large", "text-anchor": "end" });
  const head = (x, words, kind = "") => text(x, 10, words, { "text-anchor": "end", class: kind });
  const drawing = picture(452, 268, head(142, "key", "ex-key"), head(192, "score"), head(382, "weight", "ex-weight"), head(440, "value", "ex-value"),
    ...rows.flatMap((row) => row.parts), text(382, 256, "answer", { class: "ex-output", "text-anchor": "end" }), out);
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
    const [output] = mix(weights, values.map((value) => [value]));
    rows.forEach((row, i) => {
      row.score.textContent = scores[i].toFixed(2).replace("-", "−");
      row.share.textContent = weights[i].toFixed(2);
      set(row.bar, { width: 130 * weights[i] });
    });
    out.textContent = output.toFixed(1);
    const others = learned && shared(trigramScores(name.value, names)), two = (x) => x.toFixed(2);
    say(sentence(name.value, names, scores, weights, output, by?.value && others), names.map((one, i) => (learned ? [one, two(others[i]), by.value ? two(weights[i]) : "–", values[i]] : [one, rows[i].score.textContent, two(weights[i]), values[i]])));
  }
}
