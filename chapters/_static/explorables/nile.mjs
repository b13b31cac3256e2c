// Chapter 2: the width of the kernel on the Nile, with the error of each year estimated from the others.
import { leftOutError, smooth } from "./math.mjs";
import { draw, frame, picture, set, slider, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(width, error) {
  const start = `With a width of ${width.toFixed(1)} years, a year is estimated from the others with an error of ${error.toFixed(0)}.`;
  if (width < 1) return `${start} The line chases single years. Make it wider.`;
  if (width > 8) return `${start} The line has forgotten that the flow fell around 1899. Make it narrower.`;
  return `${start} The line shows the fall around 1899. Is there a width with a smaller error?`;
}

export function mount(root, { years, flow, width }) {
  const x = (year) => 44 + ((year - years[0]) / 99) * 420;
  const y = (level) => 230 - ((level - 400) / 1000) * 205;
  const line = draw("polyline", { class: "ex-output ex-trail" });
  const error = text(464, 20, "", { "text-anchor": "end" });
  const drawing = picture(480, 262,
    ...[400, 800, 1200].flatMap((level) => [draw("line", { x1: 44, x2: 464, y1: y(level), y2: y(level), class: "ex-grid" }), text(38, y(level) + 4, level, { "text-anchor": "end" })]),
    ...[1871, 1899, 1930, 1970].map((year) => text(x(year), 252, year, { "text-anchor": "middle" })),
    ...years.map((year, i) => draw("circle", { cx: x(year), cy: y(flow[i]), r: 2.5, class: "ex-value" })), line, error);
  const wide = slider({ label: "width in years", min: Math.log10(0.3), max: Math.log10(50), step: 0.01, value: Math.log10(width), usual: Math.log10(width), ends: ["0.3", "50"],
    show: (at) => (10 ** at).toFixed(1), input: () => update() });
  const say = frame(root, [drawing], wide.box);
  update(width);

  function update(now = 10 ** wide.value) {
    const missed = leftOutError(years, flow, now);
    set(line, { points: smooth(years, flow, now).map((level, i) => `${x(years[i]).toFixed(1)},${y(level).toFixed(1)}`).join(" ") });
    error.textContent = `error from the others: ${missed.toFixed(0)}`;
    say(sentence(now, missed));
  }
}
