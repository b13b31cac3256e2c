// Chapter 8: the online softmax reads tile after tile; each keeps three numbers, and fades when a larger score comes.
import { fixed, online } from "./math.mjs";
import { dragged } from "./dragged.mjs";
import { draw, frame, picture, set, slider, switches, text } from "./frame.mjs";

const ln = (x) => `ln ${Number(fixed(x))}`;
const kept = (largest, total, mixed) => [`M = ${ln(Math.exp(largest))}`, `s = ${Number(fixed(total))}`, `o = ${Number(fixed(mixed, 1))}`];

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(read, count, size, { total, mixed, output, fade }, changed, every) {
  const tiles = count === 1 ? "The only tile is read" : `${read} of ${count} tiles ${read === 1 ? "is" : "are"} read`;
  const start = `${tiles}. The sum is ${fixed(total)}, the mixed values are ${fixed(mixed, 1)}, and the output so far is ${fixed(output)}.`;
  const faded = read > 1 && fade < 1 ? ` What was read before has faded to ${fixed(fade)}, since a larger score has come.` : "";
  if (read < count) return `${start}${faded} Read on, and watch the bars.`;
  return `${start}${faded} It is exact, ${size === 4 ? "but all scores were held at once" : `with ${size === 1 ? "one score" : "two scores"} at a time`}. ${every && changed ? "Every size of the tiles gives the same." : size === 4 ? "Choose smaller tiles." : changed ? "Does another size of the tiles give the same?" : "Change the last score."}`;
}

export function mount(root, { powers, values, size }) {
  // Keys at the left, what each tile keeps of them, and what all that are read come to; on a phone the output is below.
  const wide = matchMedia("(min-width: 640px)").matches, sizes = [1, 2, 4], n = powers.length, PITCH = 58, TOP = 34, middle = TOP + (n * PITCH) / 2;
  const at = wide ? { score: 44, bar: 56, span: 112, value: 236, tile: 274, box: 92, stub: 50, joined: 446, out: 586, room: [640, 274] } : { score: 38, bar: 44, span: 52, value: 146, tile: 168, box: 64, stub: 37, joined: 286, out: 291, room: [350, 274] };
  const Y = (i) => TOP + PITCH * (i + 0.5);
  // The last score is moved on a scale of its own: the bars are measured from the largest.
  const below = Y(n - 1) + 24, along = (power) => at.bar + (at.span * (power - 1)) / 19, hand = draw("circle", { cy: below, r: 7, class: "ex-hand ex-quiet" }), reach = draw("circle", { cy: below, r: wide ? 22 : 26, fill: "transparent" });
  const grip = draw("g", { class: "ex-turned" }, draw("line", { x1: along(1), x2: along(20), y1: below, y2: below, class: "ex-grid" }), hand, reach);
  const rows = powers.map((_, i) => ({ score: text(at.score, Y(i) + 5, "", { "text-anchor": "end" }), value: text(at.value, Y(i) + 5, values[i], { class: "ex-value", "text-anchor": "end" }), number: text(at.bar + 5, Y(i) + 5, "", { class: "ex-slides" }),
    bar: draw("rect", { x: at.bar, y: Y(i) - 7, height: 14, rx: 2, class: "ex-quiet ex-glides" }) }));
  const box = (x) => {
    const lines = [0, 1, 2].map(() => text(x + at.box / 2, 0, "", { "text-anchor": "middle" })), edge = draw("rect", { x, width: at.box, height: 54, rx: 4, class: "ex-box" });
    return { parts: [edge, ...lines], show(y, words) { set(edge, { y: y - 27 }); lines.forEach((line, i) => { set(line, { y: y - 12 + 16.5 * i }); line.textContent = words[i]; }); } };
  };
  const way = () => draw("path", { class: "ex-way", "marker-end": "url(#ex-head-way)" });
  const tiles = powers.map(() => { const made = box(at.tile), comes = way(), goes = way(), fade = text(at.tile + at.box + 5, 0, ""); return { ...made, comes, goes, fade, group: draw("g", {}, comes, goes, ...made.parts, fade) }; });
  const joined = box(at.joined), out = text(at.out + 27, 0, "", { class: "ex-output ex-large", "text-anchor": "middle" }), outY = wide ? middle : middle + 78;
  const edge = draw("rect", { x: at.out, y: outY - 18, width: 54, height: 36, rx: 4, class: "ex-box ex-output" }), last = draw("path", { class: "ex-way", "marker-end": "url(#ex-head-way)", d: wide ? `M${at.joined + at.box} ${middle}H${at.out - 4}` : `M${at.out + 27} ${middle + 27}V${outY - 22}` });
  set(out, { y: outY + 6 });
  const head = (x, words, kind = "", anchor = "middle") => text(x, 14, words, { "text-anchor": anchor, class: kind });
  const drawing = picture(...at.room, draw("defs", {}, draw("marker", { id: "ex-head-way", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, draw("path", { d: "M0 0 8 4 0 8z", class: "ex-quiet" }))),
    head(at.score, "score", "", "end"), head(at.bar, wide ? "measured from M" : "from M", "ex-quiet", "start"), head(at.value, "value", "ex-value", "end"), head(at.tile + at.box / 2, "each tile"), head(at.joined + at.box / 2, "joined"),
    ...rows.flatMap(({ score, bar, number, value }) => [score, bar, number, value]), ...tiles.map(({ group }) => group), last, ...joined.parts, edge, out, grip);
  const sized = switches("keys in a tile", ["tiles of 1 key", "2 keys", "4 keys"], sizes.indexOf(size), () => { const count = n / sizes[sized.value]; read.control.max = count; read.put(count); update(); });
  const read = slider({ label: "tiles read", min: 1, max: n / size, step: 1, value: n / size, ends: ["1", "all"], show: String, input: update });
  const latest = slider({ label: "score of the last key", min: 1, max: 20, step: 1, value: powers[n - 1], usual: powers[n - 1], ends: ["ln 1", "ln 20"], show: ln, input: update });
  const say = frame(root, [drawing], sized.box, read.box, latest.box);
  const tried = new Set();
  let changed = false; // ever, as the sizes that were tried
  dragged(drawing, grip, (x) => { latest.put(Math.round(1 + (19 * (x - at.bar)) / at.span)); update(); });
  update();

  function update() {
    const width = sizes[sized.value], now = [...powers.slice(0, -1), latest.value], scores = now.map(Math.log), count = n / width;
    const steps = online(scores, values, width), step = steps[read.value - 1], seen = read.value * width;
    rows.forEach(({ score, bar, number, value }, i) => {
      const power = i < seen ? Math.exp(scores[i] - step.largest) : 0;
      score.textContent = ln(now[i]);
      set(bar, { width: at.span * power });
      number.style.transform = `translateX(${at.span * power}px)`;
      number.textContent = i < seen ? fixed(power) : "";
      for (const part of [score, value]) part.style.opacity = i < seen ? 1 : 0.55;
    });
    tiles.forEach(({ group, comes, goes, fade, show }, i) => {
      group.style.display = i < count ? "" : "none";
      if (i >= count) return;
      const from = i * width, y = TOP + PITCH * (from + width / 2), [own] = online(scores.slice(from, from + width), values.slice(from, from + width), width);
      show(y, kept(own.largest, own.total, own.mixed));
      set(comes, { d: `M${at.value + 7} ${Y(from) - 12}V${Y(from + width - 1) + 12}M${at.value + 7} ${y}H${at.tile - 4}` });
      set(goes, { d: `M${at.tile + at.box} ${y}h${at.stub}L${at.joined - 4} ${middle + (y - middle) / 8}` });
      fade.textContent = `× ${Number(fixed(Math.exp(own.largest - step.largest)))}`;
      set(fade, { y: y - 7 });
      group.style.opacity = i < read.value ? 1 : 0.4;
      for (const part of [goes, fade]) part.style.display = i < read.value ? "" : "none";
    });
    for (const part of [hand, reach]) set(part, { cx: along(latest.value) });
    joined.show(middle, kept(step.largest, step.total, step.mixed));
    out.textContent = Number(fixed(step.output));
    changed ||= latest.value !== powers[n - 1];
    tried.add(width);
    say(sentence(read.value, steps.length, width, step, changed, tried.size === sizes.length), steps.map((one, i) => [width * (i + 1), ln(Math.exp(one.largest)), fixed(one.total), fixed(one.mixed, 1), fixed(one.output)]));
  }
}
