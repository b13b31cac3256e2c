// Chapter 6: a query and a key that are rotated by their positions; the score knows only the distance.
import { dot, fixed, rotary } from "./math.mjs";
import { dragged } from "./dragged.mjs";
import { draw, frame, picture, set, slider, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(place, distance, score, largest, began, found) {
  const start = `With the query at ${place + distance} and the key at ${place}, the score is ${fixed(score)}.`;
  if (distance === 0) return `${start} At the same place both are rotated alike, so the score is that of the vectors without rotation. Move the query away.`;
  if (distance !== 2) return `${start} ${score < largest ? "" : "No distance has a larger one. "}${place !== 1 ? `It would be the same at any other place of the key.${found ? "" : " Which distance has the largest?"}`
    : `${fixed(score) === fixed(began) ? "It is that of a distance of 2 as well: two distances can share a score" : "With the distance the score has changed"}. Move both: does it stay?`}`;
  if (place !== 1) return `${start} The arrows have rotated, but the angle between them is still that of the dashed wedge, and the score has stayed. Now change the distance.`;
  return `${start} Move both through the text: the arrows rotate, and the score stays. Then change the distance.`;
}

export function mount(root, { query, key, base, furthest }) {
  const R = 58, middles = [[76, 104], [226, 104]];
  const dials = middles.map(([x, y], pair) => {
    const between = draw("path", { class: "ex-area ex-between" });
    const ghost = draw("path", { class: "ex-ghost" }); // where both began, at this distance
    const [asks, found] = ["query", "key"].map((kind) => ({ line: draw("line", { x1: x, y1: y, class: `ex-line ex-${kind}` }), name: text(0, 0, kind[0], { class: `ex-${kind}`, "text-anchor": "middle" }),
      hand: draw("circle", { r: 6, class: `ex-hand ex-${kind}` }), reach: draw("circle", { r: 22, fill: "transparent" }) })); // the hand is its head, with room for a finger
    const grip = draw("g", { class: "ex-turned" }, found.hand, asks.hand, found.reach, asks.reach), step = base ** (-2 * pair / query.length), degrees = (180 / Math.PI) * step;
    return { x, y, pair, between, arrows: [asks, found], ghost, grip, step, parts: [draw("circle", { cx: x, cy: y, r: R, class: "ex-grid" }), ghost, between, found.line, asks.line, asks.name, found.name, grip,
      text(x, 18, ["fast pair", "slow pair"][pair], { "text-anchor": "middle" }), text(x, 196, `${fixed(degrees, 0)}° per place`, { "text-anchor": "middle", class: "ex-quiet" })] };
  });
  const scoreAt = (place, distance) => dot(rotary(query, place + distance, base), rotary(key, place, base));
  const x = (distance) => 20 + (distance / furthest) * 150, y = (score) => 120 - 46 * score;
  const largest = Math.max(...Array.from({ length: furthest + 1 }, (_, distance) => scoreAt(1, distance))) - 1e-9;
  const point = draw("circle", { r: 6, class: "ex-hand" }), reach = draw("circle", { r: 22, fill: "transparent" }), grip = draw("g", { class: "ex-turned" }, point, reach);
  const shown = text(170, 20, "", { class: "ex-large", "text-anchor": "end" });
  const line = Array.from({ length: 10 * furthest + 1 }, (_, i) => `${x(i / 10).toFixed(1)},${y(scoreAt(0, i / 10)).toFixed(1)}`);
  const turned = picture(302, 208, ...dials.flatMap((dial) => dial.parts));
  const curve = picture(184, 208, text(20, 20, "score"), draw("line", { x1: 20, x2: 170, y1: y(0), y2: y(0), class: "ex-grid" }), ...[1, 0, -1].map((score) => text(14, y(score) + 4, `${score}`.replace("-", "−"), { "text-anchor": "end" })),
    draw("polyline", { points: line.join(" "), class: "ex-curve ex-ink" }), shown, grip,
    ...[0, furthest].map((distance) => text(x(distance), 196, distance, { "text-anchor": "middle" })), text(95, 196, "distance", { "text-anchor": "middle", class: "ex-quiet" }));
  const both = slider({ label: "place of the key (the query moves along)", min: 0, max: 40, step: 1, value: 1, usual: 1, ends: ["0", "40"], show: String, input: update });
  const apart = slider({ label: "distance to the query", min: 0, max: furthest, step: 1, value: 2, usual: 2, ends: ["0", `${furthest}`], show: String, input: update });
  const say = frame(root, [turned, curve], both.box, apart.box);
  dragged(curve, grip, (at) => { apart.put(Math.round(((at - 20) / 150) * furthest)); update(); });
  let held, beside, found = false; // the arrow (a key takes its query with it), and how far beside its end it was taken
  for (const dial of dials) dragged(turned, dial.grip, (x, y, begins) => {
    const far = (arrow) => Math.hypot(x - arrow.at[0], y - arrow.at[1]), angle = (x, y) => Math.atan2(dial.y - y, x - dial.x);
    if (begins) held = far(dial.arrows[0]) <= far(dial.arrows[1]) ? 0 : 1;
    const ahead = angle(x, y) - angle(...dial.arrows[held].at);
    if (begins) beside = ahead;
    const turn = ahead - beside, to = [apart, both][held];
    to.put(to.value + Math.round(Math.atan2(Math.sin(turn), Math.cos(turn)) / dial.step)); // the shorter way round
    update();
  });
  update();

  function update() {
    const place = both.value, distance = apart.value, score = scoreAt(place, distance);
    const asks = rotary(query, place + distance, base), found = rotary(key, place, base);
    for (const dial of dials) {
      const end = (v) => [dial.x + R * v[2 * dial.pair], dial.y - R * v[2 * dial.pair + 1]];
      const angles = [asks, found].map((v) => Math.atan2(v[2 * dial.pair + 1], v[2 * dial.pair])), apart = Math.atan2(Math.sin(angles[0] - angles[1]), Math.cos(angles[0] - angles[1]));
      const aside = Math.max(0, 0.2 - Math.abs(apart) / 2) * (apart < 0 ? -1 : 1); // so that two names do not meet
      [asks, found].forEach((v, k) => {
        const [x, y] = end(v), far = Math.hypot(x - dial.x, y - dial.y) + 14, angle = angles[k] + [aside, -aside][k], arrow = dial.arrows[k];
        arrow.at = [x, y];
        set(arrow.line, { x2: x, y2: y });
        for (const part of [arrow.hand, arrow.reach]) set(part, { cx: x, cy: y });
        set(arrow.name, { x: dial.x + far * Math.cos(angle), y: dial.y + 4 - far * Math.sin(angle) });
      });
      const wedge = (both, reach) => {
        const [from, to] = both.map((v) => Math.atan2(v[2 * dial.pair + 1], v[2 * dial.pair]));
        const near = (angle) => `${dial.x + reach * Math.cos(angle)} ${dial.y - reach * Math.sin(angle)}`;
        return `M${dial.x} ${dial.y}L${near(from)}A${reach} ${reach} 0 0 ${Math.sin(to - from) > 0 ? 0 : 1} ${near(to)}Z`;
      };
      set(dial.between, { d: wedge([asks, found], R / 2) });
      set(dial.ghost, { d: wedge([rotary(query, 1 + distance, base), rotary(key, 1, base)], R / 2) });
    }
    for (const part of [point, reach]) set(part, { cx: x(distance), cy: y(score) });
    shown.textContent = fixed(score);
    found ||= score >= largest; // by the reader
    say(sentence(place, distance, score, largest, scoreAt(1, 2), found));
  }
}
