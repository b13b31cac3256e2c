// Chapter 2: the temperature and three scores; the output glides in the triangle, and its path stays.
import { fixed, mix, softmax } from "./math.mjs";
import { dragged } from "./dragged.mjs";
import { button, draw, frame, picture, set, slider, text } from "./frame.mjs";

const place = ([x, y]) => [24 + 42 * x, 288 - 42 * y];
const NAMES = ["A", "B", "C"], COLDEST = -1.5;

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(weights, scores, coldest, fell) {
  const most = Math.max(...weights), best = NAMES[weights.indexOf(most)], top = Math.max(...scores), tied = NAMES.filter((_, i) => scores[i] === top);
  const start = `With the weights ${weights.map((w) => fixed(w)).join(", ")} the point`;
  if (fell) return `${start} leans to ${best}. At the temperature that was set no score up to 3 leads there, so it fell to ${fell}.`;
  if (tied.length === 3) return `${start} is the mean of the values. The scores are equal, so no temperature can choose: move one of them.`;
  if (most > 0.99) return `${start} sits in the corner ${best}, where moving a score hardly moves it. Raise the temperature.`;
  if (most - Math.min(...weights) < 0.1) return `${start} is near the mean of the values. Lower the temperature, or move one score.`;
  if (tied.length === 2) return `${start} is pulled by ${tied.join(" and ")} equally, since their scores are equal. No temperature can choose: move one of the two.`;
  return `${start} leans to ${best}. ${coldest ? "It cannot get colder: move one score" : "Lower the temperature"} and watch the path into a corner.`;
}

const temperature = (x) => `${Number((10 ** x).toPrecision(2))}`;

export function mount(root, { scores, values }) {
  const corners = values.map(place);
  const trail = draw("polyline", { class: "ex-output ex-trail" });
  const whole = draw("polyline", { class: "ex-curve ex-ghost" }); // where these scores lead at any temperature
  const point = draw("circle", { r: 7, class: "ex-output" }), hand = draw("circle", { r: 32, class: "ex-hand ex-grip" });
  const bars = NAMES.map((name, i) => {
    const y = 60 + 44 * i;
    const bar = draw("rect", { x: 350, y: y - 12, height: 15, class: "ex-weight" });
    const share = text(0, y, "");
    return { bar, share, parts: [text(340, y, name, { class: "ex-value", "text-anchor": "end" }), draw("line", { x1: 350, x2: 350, y1: y - 14, y2: y + 5, class: "ex-grid" }), bar, share] };
  });
  const drawing = picture(480, 300,
    draw("polygon", { points: corners.join(" "), class: "ex-area" }),
    ...corners.flatMap(([x, y], i) => [draw("circle", { cx: x, cy: y, r: 5, class: "ex-value" }), text(x, y + (i ? 22 : -12), NAMES[i], { class: "ex-value", "text-anchor": "middle" })]),
    whole, trail, point, hand, text(350, 30, "weights", { class: "ex-weight" }), ...bars.flatMap((bar) => bar.parts));
  const warm = slider({ label: "temperature", min: COLDEST, max: 2, step: 0.02, value: 0, usual: 0, ends: ["0.03", "100"],
    show: temperature, input: () => update() });
  let held = [...scores]; // a slider has steps, and a finger asks for what lies between them
  const shown = (score) => fixed(score).replace(/\.?0+$/, "");
  const each = scores.map((score, i) => slider({ label: `score of ${NAMES[i]}`, min: -3, max: 3, step: 0.1, value: score, usual: score, ends: ["−3", "3"],
    show: () => shown(held[i]), input: () => { held[i] = each[i].value; each[i].put(held[i]); update(); } }));
  const again = button("Clear the path", () => { path = path.slice(-1); set(trail, { points: path.join(" ") }); say("The path begins again where the point is. Move it, or change the temperature."); });
  const say = frame(root, [drawing], warm.box, ...each.map((one) => one.box), again);
  let path = [];
  dragged(drawing, hand, pulled);
  update();

  /** The scores that put the point there: the logarithms of its shares of the corners, times the temperature. */
  function pulled(x, y) {
    const [[ax, ay], [bx, by], [cx, cy]] = corners, whole = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay);
    const b = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / whole, c = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / whole;
    const logs = [1 - b - c, b, c].map((share) => Math.log(Math.max(share, 0.001))), middle = (Math.max(...logs) + Math.min(...logs)) / 2;
    const coolest = Math.floor(50 * Math.log10(3 / (Math.max(...logs) - middle))) / 50, fell = coolest < warm.value; // beyond it a score would be above 3
    if (fell) warm.put(coolest);
    held = logs.map((log) => 10 ** warm.value * (log - middle));
    each.forEach((one, i) => one.put(held[i]));
    update(fell);
  }

  function update(fell) {
    const scores = held, weights = softmax(scores.map((one) => one / 10 ** warm.value));
    const [x, y] = place(mix(weights, values));
    set(whole, { points: Array.from({ length: 71 }, (_, i) => place(mix(softmax(scores.map((one) => one / 10 ** (2 - i / 20))), values)).map((at) => at.toFixed(1))).join(" ") });
    path = [...path, [x, y]].slice(-600);
    set(trail, { points: path.join(" ") });
    for (const part of [point, hand]) set(part, { cx: x, cy: y });
    bars.forEach(({ bar, share }, i) => { set(bar, { width: 70 * weights[i] }); set(share, { x: 358 + 70 * weights[i], class: weights[i] < 0.005 ? "ex-quiet" : "" }); share.textContent = fixed(weights[i]); });
    say(sentence(weights, scores, warm.value <= COLDEST, fell && temperature(warm.value)), NAMES.map((name, i) => [name, shown(scores[i]), fixed(weights[i]), `(${values[i].join(", ")})`]));
  }
}
