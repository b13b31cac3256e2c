// Chapter 2: the width of the kernel on the Nile, the weights of one year, and the error of all of them.
import { fixed, leftOutError, mix, smooth, softmax } from "./math.mjs";
import { dragged } from "./dragged.mjs";
import { draw, frame, picture, set, slider, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(width, year, level, error, least, moved, across) {
  const start = `With a width of ${fixed(width, 1)} years the answer for ${year} is ${fixed(level, 0)}. If every year is estimated from the others alone, the error is ${fixed(error, 0)}.`;
  if (width < 1) return `${start} The line chases single years. Make it wider.`;
  if (width > 8) return `${start} The line smears the fall around 1899 over decades. Make it narrower.`;
  const seen = across === null ? "The line shows the fall around 1899" : `Of the weight of ${year}, ${fixed(across)} lies beyond the fall around 1899`;
  if (!moved || error >= least + 0.5) return `${start} ${seen}. Is there a width with a smaller error?`;
  return `${start} ${seen}, and no width has an error that is smaller by 1.${across === null ? " Now ask for another year." : ""}`;
}

export function mount(root, { years, flow, width, year, means, least }) {
  let moved = false, asked = false; // the width, the year
  const x = (at) => 44 + ((at - years[0]) / 99) * 420;
  const y = (level) => 230 - ((level - 400) / 1000) * 205;
  const line = draw("polyline", { class: "ex-output ex-trail" }), asks = draw("line", { y1: 24, y2: 318, class: "ex-line ex-query ex-thin" });
  const point = draw("circle", { r: 6, class: "ex-output" }), title = text(464, 256, "", { class: "ex-weight", "text-anchor": "end" }), name = text(0, 14, "", { class: "ex-query", "text-anchor": "middle" });
  const bars = years.map((at) => draw("rect", { x: x(at) - 1.7, width: 3.4, class: "ex-weight" }));
  const hand = draw("circle", { cy: 26, r: 7, class: "ex-hand ex-query" }), reach = draw("circle", { cy: 26, r: 32, fill: "transparent" }), grip = draw("g", { class: "ex-turned" }, hand, reach);
  const drawing = picture(480, 342,
    ...[400, 800, 1200].flatMap((level) => [draw("line", { x1: 44, x2: 464, y1: y(level), y2: y(level), class: "ex-grid" }), text(38, y(level) + 4, level, { "text-anchor": "end" })]),
    ...means.map(([from, to, level]) => draw("line", { x1: x(from), x2: x(to), y1: y(level), y2: y(level), class: "ex-curve ex-ink", "stroke-dasharray": "1 6" })),
    ...[1871, 1899, 1930, 1970].map((at) => text(x(at), 336, at, { class: "ex-key", "text-anchor": "middle" })), asks,
    ...years.map((at, i) => draw("circle", { cx: x(at), cy: y(flow[i]), r: 2.5, class: "ex-value" })), line, point, name,
    draw("line", { x1: 44, x2: 464, y1: 318, y2: 318, class: "ex-grid" }), ...bars, title, grip);
  const wide = slider({ label: "width in years", min: Math.log10(0.3), max: Math.log10(50), step: 0.01, value: Math.log10(width), usual: Math.log10(width), ends: ["0.3", "50"],
    show: (at) => fixed(10 ** at, 1), input: () => { moved = true; update(); } });
  const when = slider({ label: "the year that asks", min: years[0], max: years[99], step: 1, value: year, usual: year, ends: [years[0], years[99]], show: String, input: () => { asked = true; update(); } });
  const began = wide.value;
  const say = frame(root, [drawing], when.box, wide.box);
  dragged(drawing, grip, (place) => { when.put(Math.round(years[0] + ((place - 44) / 420) * 99)); asked = true; update(); }, true);
  update();

  function update() {
    const now = wide.value === began ? width : 10 ** wide.value; // a slider has steps
    const at = when.value, weights = softmax(years.map((one) => -((one - at) ** 2) / (2 * now ** 2))), most = Math.max(...weights);
    const [level] = mix(weights, flow.map((one) => [one]));
    set(line, { points: smooth(years, flow, now).map((one, i) => `${x(years[i]).toFixed(1)},${y(one).toFixed(1)}`).join(" ") });
    set(asks, { x1: x(at), x2: x(at) });
    for (const part of [hand, reach]) set(part, { cx: x(at) });
    set(point, { cx: x(at), cy: y(level) });
    set(name, { x: x(at) });
    name.textContent = at;
    bars.forEach((bar, i) => set(bar, { y: 318 - (44 * weights[i]) / most, height: (44 * weights[i]) / most }));
    title.textContent = `largest weight ${fixed(most)}`;
    say(sentence(now, at, level, leftOutError(years, flow, now), least, moved, asked ? weights.reduce((sum, weight, i) => sum + ((years[i] < 1899) === (at < 1899) ? 0 : weight), 0) : null));
  }
}
