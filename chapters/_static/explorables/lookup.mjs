// The first page: turn the query, and watch scores, weights and output move.
import { lookup } from "./math.mjs";
import { draw, dragged, frame, picture, set, slider, text } from "./frame.mjs";

const X = 112, Y = 122, UNIT = 34; // where 0 is, and how long 1 is
const vector = (xy) => `(${xy.map((x) => x.toFixed(1).replace("-", "−")).join(", ")})`;

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(query, keys, values, { weights, output }) {
  const best = weights.indexOf(Math.max(...weights));
  const out = output[0].toFixed(2);
  const key = `(${keys[best].join(", ")})`;
  if (Math.hypot(...query) < 0.05) return `The query is 0, so all scores are equal, and the output is the plain average of the values, ${out}. Make it longer again.`;
  if (weights[best] > 0.95) return `The query ${vector(query)} puts ${weights[best].toFixed(2)} of the weight on the key ${key}: the output ${out} is nearly its value, ${values[best][0]}. Shorten the query to mix again.`;
  return `The query ${vector(query)} fits the key ${key} best, which gets ${weights[best].toFixed(2)} of the weight, and the output is ${out}. Turn the query towards another key, then make it longer.`;
}

export function mount(root, { query, keys, values }) {
  const line = (to, attributes) => draw("line", { x1: X, y1: Y, x2: X + UNIT * to[0], y2: Y - UNIT * to[1], ...attributes });
  const arrow = (kind) => draw("marker", { id: `ex-head-${kind}`, viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, draw("path", { d: "M0 0 8 4 0 8z", class: `ex-${kind}` }));
  const hand = draw("circle", { r: 8, class: "ex-query ex-hand" });
  const reach = draw("circle", { r: 20, fill: "transparent" });
  const turned = line(query, { class: "ex-query ex-line", "marker-end": "url(#ex-head-query)" });
  const asked = text(0, 0, "query", { class: "ex-query" });
  const plane = draw("g", { class: "ex-turned" },
    draw("rect", { x: 4, y: 14, width: 216, height: 216, fill: "transparent" }),
    ...[1, 2, 3].map((r) => draw("circle", { cx: X, cy: Y, r: UNIT * r, class: "ex-grid" })),
    ...keys.map((key) => (Math.hypot(...key) ? line(key, { class: "ex-key ex-line", "marker-end": "url(#ex-head-key)" })
      : draw("circle", { cx: X, cy: Y, r: 5, class: "ex-key" }))),
    turned, asked, hand, reach);
  const rows = keys.map((key, i) => {
    const y = 52 + 40 * i;
    const score = text(108, y, "", { "text-anchor": "end" });
    const bar = draw("rect", { x: 124, y: y - 11, height: 14, rx: 2, class: "ex-weight" });
    const share = text(232, y, "", { "text-anchor": "end" });
    const parts = [text(56, y, `(${key.join(", ")})`, { class: "ex-key", "text-anchor": "end" }), score,
      draw("rect", { x: 124, y: y - 11, width: 70, height: 14, rx: 2, class: "ex-ground" }), bar, share,
      text(274, y, values[i][0], { class: "ex-value", "text-anchor": "end" })];
    return { score, bar, share, parts };
  });
  const out = text(274, 192, "", { class: "ex-output ex-large", "text-anchor": "end" });
  const head = (x, words, kind) => text(x, 20, words, { "text-anchor": "end", class: kind });
  const left = picture(224, 244, draw("defs", {}, arrow("query"), arrow("key")), plane);
  const right = picture(282, 204, head(56, "key", "ex-key"), head(108, "score", ""), head(194, "weight", "ex-weight"), head(274, "value", "ex-value"),
    ...rows.flatMap((row) => row.parts), draw("line", { x1: 20, x2: 274, y1: 162, y2: 162, class: "ex-grid" }),
    text(200, 192, "output", { class: "ex-output", "text-anchor": "end" }), out);

  const degrees = (x) => `${Math.round(x)}°`;
  const start = [(Math.atan2(query[1], query[0]) * 180) / Math.PI, Math.hypot(...query)];
  let exact = query; // until it is moved: a slider has steps
  const moved = () => { exact = null; update(); };
  const turn = slider({ label: "direction of the query", min: -180, max: 180, step: 1, value: start[0], usual: start[0], ends: ["−180°", "180°"], show: degrees, input: moved });
  const long = slider({ label: "its length", min: 0, max: 6, step: 0.1, value: start[1], usual: start[1], ends: ["0", "6"], show: (x) => x.toFixed(1), input: moved });
  const say = frame(root, [left, right], turn.box, long.box);
  dragged(left, plane, (x, y) => {
    const to = [(x - X) / UNIT, (Y - y) / UNIT];
    turn.put((Math.atan2(to[1], to[0]) * 180) / Math.PI);
    long.put(Math.min(3, Math.hypot(...to)));
    moved();
  });
  update();

  function update() {
    const angle = (turn.value * Math.PI) / 180;
    const now = exact ?? [long.value * Math.cos(angle), long.value * Math.sin(angle)];
    const found = lookup(now, keys, values);
    const scale = Math.min(1, 3 / (Math.hypot(...now) || 1)); // the plane ends at 3
    const end = [X + UNIT * scale * now[0], Y - UNIT * scale * now[1]];
    set(turned, { x2: end[0], y2: end[1] });
    for (const part of [hand, reach]) set(part, { cx: end[0], cy: end[1] });
    set(asked, { x: Math.min(172, Math.max(6, end[0] + (now[0] < 0 ? -50 : 12))), y: Math.max(12, end[1] - 10) });
    rows.forEach(({ score, bar, share }, i) => {
      score.textContent = found.scores[i].toFixed(1).replace("-", "−");
      set(bar, { width: 70 * found.weights[i] });
      share.textContent = found.weights[i].toFixed(2);
    });
    out.textContent = found.output[0].toFixed(2);
    say(sentence(now, keys, values, found));
  }
}
