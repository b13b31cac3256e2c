// Chapter 4: the training of three projections, step by step, from noise to a diagonal.
import { fixed } from "./math.mjs";
import { button, draw, frame, make, picture, set, slider, text } from "./frame.mjs";
import { squares } from "./squares.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(step, found, right) {
  const start = step ? `After ${step} steps the letters find ${fixed(found)} of their partners and name ${fixed(right)} of the digits.`
    : `Before the first step the letters find ${fixed(found)} of their partners and name ${fixed(right)} of the digits.`;
  if (found > 0.95) return `${start} The weights lie on the diagonal, since each letter looks at its partner’s card. Go back, and look when it appeared.`;
  if (found > 0.6) return `${start} A diagonal shows, and the rest still takes ${fixed(1 - found)}. Go on: where does it go?`;
  if (found > 0.25) return `${start} A diagonal begins to show. Are the darkest squares right already?`;
  return `${start} ${step ? "The rows are hardly more than noise. Go on" : "The rows are noise. Let it learn"}, and watch whether finding or reading comes first.`;
}

export function mount(root, { steps, weights, found, right, tokens }) {
  const narrow = matchMedia("(max-width: 576px)").matches; // there the names of cards take two lines
  const X = 34, Y = 44, SIZE = 24, askers = tokens.slice(8), last = steps.length - 1;
  const grid = squares(X, Y, SIZE, 8, () => 16);
  const middle = SIZE * 0.46;
  const x = (step) => X + (step / steps[last]) * (16 * SIZE), y = (share) => 342 - 70 * share;
  const curve = (shares, kind) => draw("polyline", { class: `ex-curve ${kind}`, points: shares.map((share, i) => `${x(steps[i])},${y(share)}`).join(" ") });
  const mark = draw("line", { y1: 262, y2: 342, class: "ex-grid ex-mark" });
  const points = ["ex-weight", "ex-output"].map((kind) => draw("circle", { r: 5, class: kind }));
  const numbers = [text(X + 16 * SIZE + 10, 0, "", { class: "ex-weight" }), text(X + 16 * SIZE + 10, 0, "", { class: "ex-output" })];
  const drawing = picture(520, 366, text(X + 16 * SIZE + 10, Y - 8, "keys", { class: "ex-key" }), ...grid.parts,
    ...tokens.map((token, j) => text(X + j * SIZE + middle, Y - (narrow && j < 8 && j % 2 ? 28 : 8), token, { class: "ex-key", "text-anchor": "middle" })),
    ...askers.map((token, i) => text(X - 10, Y + i * SIZE + middle + 4, token, { class: "ex-query", "text-anchor": "end" })),
    ...[0, 1].flatMap((share) => [draw("line", { x1: X, x2: X + 16 * SIZE, y1: y(share), y2: y(share), class: "ex-grid" }), text(X - 8, y(share) + 4, share, { "text-anchor": "end" })]),
    mark, curve(found, "ex-weight"), curve(right, "ex-output"), ...points, ...numbers,
    ...[0, 20, 40, 60].map((step) => text(x(step), 362, step, { "text-anchor": "middle" })));
  const at = slider({ label: "steps of training", min: 0, max: last, step: 1, value: 0, ends: ["0", `${steps[last]}`], show: (i) => `${steps[i]}`, input: () => { stop(); update(); } }); // the hand goes before
  let running;
  const stop = () => { clearInterval(running); running = null; play.textContent = "Play"; };
  const play = button("Play", () => {
    if (running) return stop();
    play.textContent = "Pause";
    if (at.value === last) { at.put(0); update(); }
    running = setInterval(() => { at.put(at.value + 1); update(); if (at.value === last) stop(); }, 300);
  });
  const say = frame(root, [drawing], at.box, make("div", { class: "ex-buttons" }, play));
  update();

  function update() {
    const i = at.value;
    grid.show(weights[i].map((row) => row.map((fiftieths) => fiftieths / 50)));
    set(mark, { x1: x(steps[i]), x2: x(steps[i]) });
    const beside = (share) => Math.min(y(share), 328); // clear of the numbers below
    const apart = Math.max(0, 16 - Math.abs(beside(found[i]) - beside(right[i]))) / 2 * (found[i] < right[i] ? 1 : -1);
    [[found, apart, "found"], [right, -apart, "right"]].forEach(([shares, shift, word], k) => {
      set(points[k], { cx: x(steps[i]), cy: y(shares[i]) });
      numbers[k].textContent = `${word} ${fixed(shares[i])}`;
      set(numbers[k], { y: beside(shares[i]) + 4 + shift });
    });
    say(sentence(steps[i], found[i], right[i]));
  }
}
