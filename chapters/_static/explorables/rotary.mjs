// Chapter 6: a query and a key that are turned by their positions; the score knows only the distance.
import { dot, rotary } from "./math.mjs";
import { draw, frame, picture, set, slider, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(place, distance, score, largest) {
  const start = `The query stands at ${place + distance} and the key at ${place}, so the score is ${score.toFixed(2).replace("-", "−")}.`;
  if (distance === 0) return `${start} At the same place both are turned alike, and the score is that of the vectors as they are. Move the query away.`;
  if (distance !== 2) return `${start} ${score < largest ? "" : "No distance has a larger one. "}${place === 1 ? "With the distance the score has changed. Move both: does it stay?" : `It would be the same at any other place of the key.${score < largest ? " Which distance has the largest?" : ""}`}`;
  if (place !== 1) return `${start} The arrows have turned, the angle between them is that of the dashed ghost, and the score has stayed. Now change the distance.`;
  return `${start} Move both through the text: the arrows turn, and the score stays. Then change the distance.`;
}

export function mount(root, { query, key, base, furthest }) {
  const R = 62, middles = [[76, 104], [226, 104]];
  const arrow = (kind) => draw("marker", { id: `ex-turned-${kind}`, viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, draw("path", { d: "M0 0 8 4 0 8z", class: `ex-${kind}` }));
  const dials = middles.map(([x, y], pair) => {
    const hand = (kind) => draw("line", { x1: x, y1: y, class: `ex-line ex-${kind}`, "marker-end": `url(#ex-turned-${kind})` });
    const between = draw("path", { class: "ex-area ex-between" });
    const asks = hand("query"), found = hand("key"), ghost = draw("path", { class: "ex-ghost" }); // where both began, at this distance
    const names = ["query", "key"].map((kind) => text(0, 0, kind[0], { class: `ex-${kind}`, "text-anchor": "middle" }));
    const degrees = (180 / Math.PI) * base ** (-2 * pair / query.length);
    return { x, y, pair, between, asks, found, ghost, names, parts: [draw("circle", { cx: x, cy: y, r: R, class: "ex-grid" }), ghost, between, found, asks, ...names,
      text(x, 18, ["fast pair", "slow pair"][pair], { "text-anchor": "middle" }), text(x, 196, `${degrees.toFixed(0)}° a place`, { "text-anchor": "middle", class: "ex-quiet" })] };
  });
  const scoreAt = (place, distance) => dot(rotary(query, place + distance, base), rotary(key, place, base));
  const x = (distance) => 20 + (distance / furthest) * 150, y = (score) => 104 - 38 * score;
  const largest = Math.max(...Array.from({ length: furthest + 1 }, (_, distance) => scoreAt(1, distance))) - 1e-9;
  const point = draw("circle", { r: 6 });
  const shown = text(170, 20, "", { class: "ex-large", "text-anchor": "end" });
  const line = Array.from({ length: 10 * furthest + 1 }, (_, i) => `${x(i / 10).toFixed(1)},${y(scoreAt(0, i / 10)).toFixed(1)}`);
  const turned = picture(302, 208, draw("defs", {}, arrow("query"), arrow("key")), ...dials.flatMap((dial) => dial.parts));
  const curve = picture(184, 208, text(20, 20, "score"), draw("line", { x1: 20, x2: 170, y1: y(0), y2: y(0), class: "ex-grid" }), text(14, y(0) + 4, "0", { "text-anchor": "end" }),
    draw("polyline", { points: line.join(" "), class: "ex-curve ex-ink" }), point, shown,
    ...[0, furthest].map((distance) => text(x(distance), 196, distance, { "text-anchor": "middle" })), text(95, 196, "distance", { "text-anchor": "middle", class: "ex-quiet" }));
  const both = slider({ label: "place of the key, and the query with it", min: 0, max: 40, step: 1, value: 1, usual: 1, ends: ["0", "40"], show: String, input: update });
  const apart = slider({ label: "distance to the query", min: 0, max: furthest, step: 1, value: 2, usual: 2, ends: ["0", `${furthest}`], show: String, input: update });
  const say = frame(root, [turned, curve], both.box, apart.box);
  update();

  function update() {
    const place = both.value, distance = apart.value, score = scoreAt(place, distance);
    const asks = rotary(query, place + distance, base), found = rotary(key, place, base);
    for (const dial of dials) {
      const end = (v) => [dial.x + R * v[2 * dial.pair], dial.y - R * v[2 * dial.pair + 1]];
      const [a, b] = [end(asks), end(found)];
      set(dial.asks, { x2: a[0], y2: a[1] });
      set(dial.found, { x2: b[0], y2: b[1] });
      [asks, found].forEach((v, k) => { const [x, y] = end(v), far = Math.hypot(x - dial.x, y - dial.y) || 1; set(dial.names[k], { x: x + (11 * (x - dial.x)) / far, y: y + 4 + (11 * (y - dial.y)) / far }); });
      const wedge = (both, reach) => {
        const [from, to] = both.map((v) => Math.atan2(v[2 * dial.pair + 1], v[2 * dial.pair]));
        const near = (angle) => `${dial.x + reach * Math.cos(angle)} ${dial.y - reach * Math.sin(angle)}`;
        return `M${dial.x} ${dial.y}L${near(from)}A${reach} ${reach} 0 0 ${Math.sin(to - from) > 0 ? 0 : 1} ${near(to)}Z`;
      };
      set(dial.between, { d: wedge([asks, found], R / 2) });
      set(dial.ghost, { d: wedge([rotary(query, 1 + distance, base), rotary(key, 1, base)], R / 2) });
    }
    set(point, { cx: x(distance), cy: y(score) });
    shown.textContent = score.toFixed(2).replace("-", "−");
    say(sentence(place, distance, score, largest));
  }
}
