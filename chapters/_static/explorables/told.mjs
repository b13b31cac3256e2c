// Chapter 7: the score of one key in head 19.7 as a sum over all that wrote into its vector.
import { choice, draw, frame, make, picture, set, slider, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(tokens, key, weight, lead, parts) {
  const [best, most] = parts[0];
  const start = `Head 19.7 gives ${weight.toFixed(2)} to “${tokens[key].trim()}”, whose score is ${Math.abs(lead).toFixed(1)} ${lead < 0 ? "below" : "above"} the mean of the other keys`;
  if (lead < 0) return `${start}. Choose a key with more weight, and see who told the head.`;
  if (best === "17.1" && most > lead / 2) return `${start}, and head 17.1 wrote ${most.toFixed(1)} of that. Choose another key, or a text with nothing to look up.`;
  return `${start}. The largest part, ${most.toFixed(1)}, is by ${best.startsWith("network") || best === "embedding" ? `the ${best}` : `head ${best}`}. Is it 17.1 wherever a token is found?`;
}

export function mount(root, { texts }) {
  const LEFT = 100, ZERO = 172, UNIT = 10.4;
  const which = choice("text", texts.map(({ tokens }) => { const whole = tokens.join(""); return whole.length > 44 ? `…${whole.slice(-43)}` : whole; }), 0, () => begin());
  const rows = Array.from({ length: 7 }, (_, i) => {
    const y = 20 + 26 * i;
    return { name: text(LEFT, y, "", { "text-anchor": "end" }), bar: draw("rect", { y: y - 12, height: 15, rx: 2, class: "ex-key" }), number: text(0, y, "") };
  });
  const words = make("p", { class: "ex-pieces", "aria-hidden": "true" }), line = draw("line", { x1: ZERO, x2: ZERO, y1: 0, y2: 190, style: "stroke:var(--muted);stroke-width:1" });
  const drawing = picture(410, 190, line, ...rows.flatMap(({ name, bar, number }) => [name, bar, number]));
  let keys = slider({ label: "key", min: 1, max: 2, step: 1, value: 1, ends: ["", ""], show: String, input: () => {} });
  const say = frame(root, [words, make("div", { class: "ex-plane" }, drawing)], which.box, keys.box);
  begin();

  function begin() {
    const { tokens, start } = texts[which.value], n = tokens.length;
    const made = slider({ label: "key", min: 1, max: n, step: 1, value: start + 1, usual: start + 1, ends: [tokens[0].trim(), tokens[n - 1].trim()], show: (i) => `${i}, ${tokens[i - 1].trim()}`, input: update });
    keys.box.replaceWith(made.box);
    keys = made;
    words.replaceChildren(...tokens.map((token, i) => {
      const one = make("span", {}, token.trim());
      if (token.startsWith(" ")) one.style.marginLeft = ".4rem"; // here a word begins
      one.style.outlineColor = "var(--key)";
      one.addEventListener("click", () => { keys.put(i + 1); update(); });
      return one;
    }));
    update();
  }
  function update() {
    const { tokens, weights, leads, tops } = texts[which.value], key = keys.value - 1;
    const parts = [...tops[key], ["the other 175", leads[key] - tops[key].reduce((sum, [, x]) => sum + x, 0)]];
    [...words.children].forEach((one, i) => { one.style.setProperty("--w", weights[i]); set(one, { class: i === key ? "ex-asking" : "" }); });
    rows.forEach(({ name, bar, number }, i) => {
      const [words, x] = parts[i], wide = Math.min(Math.abs(x), 19) * UNIT;
      name.textContent = words;
      set(bar, { x: x < 0 ? ZERO - wide : ZERO, width: wide });
      set(number, { x: ZERO + (x < 0 ? 6 : wide + 6) });
      number.textContent = x.toFixed(1).replace("-", "−");
    });
    say(sentence(tokens, key, weights[key], leads[key], parts), parts.map(([words, x]) => [words, x.toFixed(1).replace("-", "−")]));
  }
}
