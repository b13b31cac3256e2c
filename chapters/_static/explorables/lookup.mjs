// The first page: turn the query, and watch scores, weights and output move.
import { fixed, lookup } from "./math.mjs";
import { dragged } from "./dragged.mjs";
import { draw, frame, make, picture, set, slider, sumOf, text } from "./frame.mjs";

const X = 112, Y = 122, RADIUS = 102; // where 0 is, and how far the plane reaches
const LONGEST = 6;
const vector = (xy) => `(${xy.map((x) => fixed(x, 1)).join(", ")})`;

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(query, keys, values, { weights, output }) {
  const most = Math.max(...weights);
  const best = weights.indexOf(most);
  const out = fixed(output[0]);
  const name = (i) => `(${keys[i].join(", ")})`;
  const length = Math.hypot(...query);
  const tied = keys.map((_, i) => i).filter((i) => most - weights[i] < 0.005);
  if (length < 0.05) return `The query is 0, so all scores are equal, and the output is the plain average of the values, ${out}. Make it longer again.`;
  if (weights[best] > 0.95) return `The query ${vector(query)} puts ${fixed(weights[best])} of the weight on the key ${name(best)}: the output ${out} is nearly its value, ${values[best][0]}. Shorten the query to mix again.`;
  if (tied.length > 1) return `The query ${vector(query)} fits the keys ${tied.map(name).join(" and ")} equally well, each gets ${fixed(most)} of the weight, and the output is ${out}. Turn the query towards one of them.`;
  return `The query ${vector(query)} fits the key ${name(best)} best, which gets ${fixed(weights[best])} of the weight, and the output is ${out}. Turn the query towards another key${length < LONGEST - 0.05 ? ", then make it longer" : ", or make it shorter"}.`;
}

export function mount(root, { query, keys, values }) {
  const line = (attributes) => draw("line", { x1: X, y1: Y, ...attributes });
  const arrow = (kind) => draw("marker", { id: `ex-head-${kind}`, viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, draw("path", { d: "M0 0 8 4 0 8z", class: `ex-${kind}` }));
  const hand = draw("circle", { r: 8, class: "ex-query ex-hand" });
  const reach = draw("circle", { r: 24, fill: "transparent" }); // room for a finger
  const turned = line({ class: "ex-query ex-line" }); // the hand is its head
  const asked = text(0, 0, "query", { class: "ex-query" });
  const rings = [1, 2, 3, 4, 5, 6].map((r) => ({ r, circle: draw("circle", { cx: X, cy: Y, class: "ex-grid" }) }));
  const arrows = keys.map((key) => (Math.hypot(...key) ? line({ class: "ex-key ex-line", "marker-end": "url(#ex-head-key)" })
    : draw("circle", { cx: X, cy: Y, r: 5, class: "ex-key" })));
  const grip = draw("g", { class: "ex-turned" }, hand, reach);
  // The shadow of the query on a key of length 1 is their score.
  const shadows = keys.map(() => [draw("line", { class: "ex-ghost" }), line({ class: "ex-key ex-shadow" })]), named = keys.map((key) => text(0, 0, `(${key.join(", ")})`, { class: "ex-key", "text-anchor": key[0] ? "middle" : "end" }));
  const plane = draw("g", {}, ...rings.map(({ circle }) => circle), ...shadows.flat(), ...arrows, ...named, turned, asked, grip);
  const rows = keys.map((key, i) => {
    const y = 52 + 40 * i;
    const score = text(108, y, "", { "text-anchor": "end" });
    const bar = draw("rect", { x: 124, y: y - 11, height: 14, class: "ex-weight" });
    const share = text(0, y, "");
    const parts = [text(56, y, `(${key.join(", ")})`, { class: "ex-key", "text-anchor": "end" }), score,
      draw("line", { x1: 124, x2: 124, y1: y - 13, y2: y + 5, class: "ex-grid" }), bar, share,
      text(274, y, values[i][0], { class: "ex-value", "text-anchor": "end" })];
    return { score, bar, share, parts };
  });
  const out = text(274, 192, "", { class: "ex-output ex-large", "text-anchor": "end" });
  const head = (x, words, kind) => text(x, 20, words, { "text-anchor": "end", class: kind });
  const left = picture(224, 244, draw("defs", {}, arrow("key")), plane);
  const right = picture(282, 204, head(56, "key", "ex-key"), head(108, "score", ""), text(124, 20, "weight", { class: "ex-weight" }), head(274, "value", "ex-value"),
    ...rows.flatMap((row) => row.parts), draw("line", { x1: 20, x2: 274, y1: 162, y2: 162, class: "ex-grid" }),
    text(200, 192, "output", { class: "ex-output", "text-anchor": "end" }), out);

  const degrees = (x) => `${Math.round(x)}°`.replace("-", "−");
  const start = [(Math.atan2(query[1], query[0]) * 180) / Math.PI, Math.hypot(...query)];
  const turn = slider({ label: "direction of the query", min: -180, max: 180, step: 1, value: start[0], usual: start[0], ends: ["−180°", "180°"], show: degrees, input: update });
  const long = slider({ label: "its length", min: 0, max: LONGEST, step: 0.1, value: start[1], usual: start[1], ends: ["0", "6"], show: (x) => fixed(x, 1), input: update });
  const began = [turn.value, long.value]; // about where it starts: a slider has steps
  const say = frame(root, [left, right], turn.box, long.box);
  const sum = document.querySelector(`#${root.dataset.replaces} figcaption`);
  const terms = sum && make("span", { class: "ex-sum" });
  if (sum) sum.replaceChildren(make("span", { class: "ex-live" }, "Each score is a dot product, here the shadow of the query on a key. Each value counts by its weight: ", terms), make("span", { class: "ex-still" }, ...sum.childNodes));
  dragged(left, grip, (x, y) => {
    const to = [(x - X) / unit, (Y - y) / unit];
    turn.put((Math.atan2(to[1], to[0]) * 180) / Math.PI);
    long.put(Math.min(LONGEST, Math.hypot(...to)));
    update();
  });
  let unit; // how long 1 is: the plane shows three rings, and six when the query is longer
  update();

  function update() {
    const angle = (turn.value * Math.PI) / 180;
    const now = turn.value === began[0] && long.value === began[1] ? query : [long.value * Math.cos(angle), long.value * Math.sin(angle)];
    const found = lookup(now, keys, values);
    unit = RADIUS / Math.max(3, Math.ceil(Math.hypot(...now) - 1e-9));
    for (const { r, circle } of rings) set(circle, { r: unit * r, visibility: unit * r > RADIUS + 1 ? "hidden" : "visible" });
    const at = ([x, y]) => [X + unit * x, Y - unit * y], end = at(now);
    keys.forEach((key, i) => {
      const [x, y] = at(key), [falls, shadow] = shadows[i], foot = at(key.map((x) => (x * found.scores[i]) / (Math.hypot(...key) ** 2 || 1)));
      set(arrows[i], { x2: x, y2: y });
      set(falls, { x1: end[0], y1: end[1], x2: foot[0], y2: foot[1], visibility: Math.hypot(...key) ? "visible" : "hidden" });
      set(shadow, { x2: foot[0], y2: foot[1] });
      set(named[i], key[1] ? { x: x - 8, y: y + 5 } : { x: key[0] ? x : x - 8, y: y + 18 });
    });
    set(turned, { x2: end[0], y2: end[1] });
    for (const part of [hand, reach]) set(part, { cx: end[0], cy: end[1] });
    set(asked, { x: Math.min(172, Math.max(6, end[0] + (now[0] < 0 ? -50 : 12))), y: Math.max(12, end[1] - 10) });
    rows.forEach(({ score, bar, share }, i) => {
      score.textContent = fixed(found.scores[i], 1);
      set(bar, { width: 70 * found.weights[i] });
      set(share, { x: 132 + 70 * found.weights[i], class: found.weights[i] < 0.005 ? "ex-quiet" : "" });
      share.textContent = fixed(found.weights[i]);
    });
    out.textContent = fixed(found.output[0]);
    terms?.replaceChildren(...sumOf(found.weights, values.flat(), fixed(found.output[0])));
    say(sentence(now, keys, values, found), keys.map((key, i) => [`(${key.join(", ")})`, rows[i].score.textContent, fixed(found.weights[i]), values[i][0]]));
  }
}
