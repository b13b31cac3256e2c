// Chapter 7: the score of one key in head 19.7 as a sum over all that wrote into its vector.
import { fixed } from "./math.mjs";
import { brief, choice, draw, frame, make, picture, set, slider, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(tokens, key, weight, lead, parts) {
  const [best, most] = parts[0];
  const start = `Head 19.7 gives ${fixed(weight)} to “${tokens[key].trim()}”, whose score is ${fixed(Math.abs(lead), 1)} ${lead < 0 ? "below" : "above"} the mean of the other keys`;
  if (lead < 0 || weight < 0.05) return `${start}. Choose a key with more weight, and see who told the head.`;
  if (best === "17.1" && most > lead / 2) return `${start}. ${most > lead ? `Head 17.1 alone gives ${fixed(most, 1)}, and others take away` : `Of this, head 17.1 gives ${fixed(most, 1)}`}. Choose another key, or a text with nothing to look up.`;
  return `${start}. The largest part, ${fixed(most, 1)}, is by ${best === "embedding" ? "the embedding" : best.startsWith("network") ? best.replace("network", "the network of layer") : `head ${best}`}${most > lead ? ", and others take away" : ""}. ${best === "17.1" ? "Who gives the rest?" : "Is it 17.1 wherever a token is found?"}`;
}

export function mount(root, { texts, twenty }) {
  // The parts of one lead at the left; at the right twenty lookups, head 17.1 as a dot, and below them the key that is chosen.
  const wide = matchMedia("(min-width: 640px)").matches, LEFT = 104, ZERO = 172, UNIT = 7.4, X = (lead) => 494 + 6.6 * lead, HERE = 206;
  const which = choice("text", texts.map(({ tokens }) => brief(tokens)), 0, () => begin());
  const rows = Array.from({ length: 7 }, (_, i) => {
    const y = 44 + 27 * i;
    return { name: text(LEFT, y, "", { "text-anchor": "end" }), bar: draw("rect", { y: y - 12, height: 15, rx: 2 }), number: text(0, y, "") };
  });
  const span = (y, kind = "") => ({ range: draw("line", { y1: y, y2: y, class: `ex-span ${kind}` }), dot: draw("circle", { cy: y, r: kind ? 6 : 4, class: "ex-key" }) });
  const show = ({ range, dot }, [low, high, by]) => { set(range, { x1: X(low), x2: X(high) }); set(dot, { cx: X(by) }); };
  const all = twenty.map((one, i) => { const made = span(30 + 8 * i); show(made, one); return made; });
  const here = span(HERE, "ex-here"), named = text(0, HERE - 10, "17.1", { class: "ex-key", "text-anchor": "middle" });
  const tick = (lead) => [draw("line", { x1: X(lead), x2: X(lead), y1: 24, y2: 222, class: "ex-grid" }), text(X(lead), 240, lead, { "text-anchor": "middle", class: "ex-quiet" })];
  const right = draw("g", wide ? {} : { transform: "translate(-302 246)" }, ...[0, 10, 20].flatMap(tick), ...all.flatMap(({ range, dot }) => [range, dot]), text(372, 108, "20 texts"), text(372, HERE + 5, "this key"), here.range, here.dot, named,
    text(560, 14, "parts of a lead", { "text-anchor": "middle", class: "ex-quiet" }));
  const drawing = picture(...(wide ? [640, 248] : [350, 494]), text(ZERO, 14, "its largest parts", { class: "ex-quiet" }), draw("line", { x1: ZERO, x2: ZERO, y1: 26, y2: 222, class: "ex-grid" }), ...rows.flatMap(({ name, bar, number }) => [name, bar, number]), right);
  const words = make("p", { class: "ex-pieces", "aria-hidden": "true" });
  let keys = slider({ label: "key", min: 1, max: 2, step: 1, value: 1, ends: ["", ""], show: String, input: () => {} });
  const say = frame(root, [words, make("div", { class: "ex-planes" }, drawing)], which.box, keys.box);
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
    const { tokens, weights, leads, tops, spans } = texts[which.value], key = keys.value - 1;
    const parts = [...tops[key], ["the other 175", leads[key] - tops[key].reduce((sum, [, x]) => sum + x, 0)]];
    [...words.children].forEach((one, i) => { one.style.setProperty("--w", weights[i]); set(one, { class: i === key ? "ex-asking" : "" }); });
    rows.forEach(({ name, bar, number }, i) => {
      const [words, x] = parts[i], wide = Math.min(Math.abs(x), 19) * UNIT, covered = x < 0 && wide > ZERO - LEFT - 6; // its bar would be on its name
      name.textContent = words;
      set(name, covered ? { x: ZERO + 54, "text-anchor": "start" } : { x: LEFT, "text-anchor": "end" });
      set(bar, { x: x < 0 ? ZERO - wide : ZERO, width: wide, class: words === "17.1" ? "ex-key" : "ex-quiet" });
      set(number, { x: ZERO + (x < 0 ? 6 : wide + 6) });
      number.textContent = fixed(x, 1);
    });
    show(here, spans[key]);
    set(named, { x: X(spans[key][2]) });
    say(sentence(tokens, key, weights[key], leads[key], parts), parts.map(([words, x]) => [words, fixed(x, 1)]));
  }
}
