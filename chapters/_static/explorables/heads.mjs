// Chapter 5: one question about two people, asked by one head or by two.
import { fixed, heads } from "./math.mjs";
import { choice, draw, frame, picture, set, slider, switches, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(pair, count, { output, weights }, names, values, tried) {
  const [a, b] = pair, wanted = pair.map((i) => values[i]), spread = Math.min(...weights.map((row) => Math.max(row[a], row[b]))) < 0.45;
  const right = output.every((x, i) => Math.abs(x - wanted[i]) < 1);
  if (spread && !right) return `The weight is spread over all eight names, so ${count === 1 ? "one head returns" : "two heads return"} ${output.map((x) => fixed(x, 1)).join(" and ")}. Make the question${count === 1 ? "" : "s"} sharper.`;
  if (a === b && !right) return `Both questions ask for ${names[a]}, but the weights are undecided, so ${output.map((x) => fixed(x, 1)).join(" and ")} ${count === 1 ? "is" : "are"} returned, not ${wanted[0]}. Make the question${count === 1 ? "" : "s"} sharper.`;
  if (a === b) return `Both questions ask for ${names[a]}, so one head is enough for ${count === 1 ? `the answer, ${fixed(output[0], 1)}` : `what two return, ${output.map((x) => fixed(x, 1)).join(" and ")}`}. Choose two different ones.`;
  if (count === 1) return `One head has one row of weights for both questions and returns one number, ${fixed(output[0], 1)}, from which nobody can tell ${wanted.join(" and ")} apart. ${tried ? "No other two names and no sharper question would change that." : "Give it two heads."}`;
  return `Two heads ask for one name each and return ${output.map((x) => fixed(x, 1)).join(" and ")}${right ? `: both incomes, ${wanted.join(" and ")}. Choose other names, or go back to one head.` : ". They are too undecided to name both incomes: make the questions sharper."}`;
}

export function mount(root, { names, values, pair, factor }) {
  const both = [0, 1].map((i) => choice(`${["first", "second"][i]} name`, names, pair[i], update));
  const how = switches("number of heads", ["one head", "two heads"], 0, update);
  const m = names.length, CELL = 11;
  let tried = false, next = 0; // two heads; the question that a name is put to
  // The query is one vector. Two heads cut it in two; their outputs are joined again.
  const part = (y, count, kind) => [0, 1].map((which) => {
    const cells = Array.from({ length: count }, (_, i) => draw("rect", { x: i * CELL, y, width: CELL - 1, height: 14, rx: 2, class: `ex-cell ${kind}` }));
    return { cells, group: draw("g", { class: "ex-glides" }, ...cells) };
  });
  const asking = part(22, m, "ex-query"), joined = part(322, 1, "ex-output");
  const title = text(240, 12, "", { class: "ex-query", "text-anchor": "middle" }), end = text(240, 354, "", { class: "ex-output", "text-anchor": "middle" });
  const panels = [0, 1].map((which) => {
    const x = 86 + 190 * which;
    const title = text(x, 66, "", { class: "ex-query" });
    const rows = names.map((_, i) => {
      const y = 90 + 24 * i;
      return { bar: draw("rect", { x, y: y - 11, height: 14, class: "ex-weight" }), share: text(0, y, ""), ground: draw("line", { x1: x, x2: x, y1: y - 13, y2: y + 5, class: "ex-grid" }) };
    });
    const out = text(0, 302, "", { class: "ex-output ex-large", "text-anchor": "end" });
    const group = draw("g", {}, title, ...rows.flatMap((row) => [row.ground, row.bar, row.share]), text(x, 302, "output", { class: "ex-output" }), out);
    return { title, rows, out, group };
  });
  // A name of the table is asked for by one question and then by the other, a bar of one of two heads by its own.
  const ask = (i, head) => { const which = how.value ? head ?? next : next; next = 1 - which; both[which].put(i); update(); };
  const named = names.map((name, i) => text(74, 90 + 24 * i, name, { class: "ex-key", "text-anchor": "end" }));
  const near = names.flatMap((_, i) => [[0, 80], [80, 186, 0], [266, 214, 1]].map(([x, width, head]) => {
    const made = draw("rect", { x, y: 74 + 24 * i, width, height: 24, fill: "transparent", class: "ex-near" });
    made.addEventListener("click", () => ask(i, head));
    return made;
  }));
  const drawing = picture(480, 362, ...near, title, end, ...[...asking, ...joined].map((one) => one.group), ...named,
    ...values.map((value, i) => text(476, 90 + 24 * i, value, { class: "ex-value", "text-anchor": "end" })), ...panels.map((panel) => panel.group));
  const sharp = slider({ label: "sharpness of a question", min: 0, max: 60, step: 1, value: factor, usual: factor, ends: ["0", "60"], show: String, input: update });
  const say = frame(root, [drawing], how.box, sharp.box, ...both.map((one) => one.box));
  update();

  function update() {
    const asked = both.map((one) => one.value);
    const count = how.value + 1;
    const found = heads(asked, values, sharp.value, count);
    tried ||= count === 2;
    named.forEach((name, i) => set(name, { class: `ex-key ex-chosen${asked.includes(i) ? " ex-strong" : ""}` }));
    asking.forEach(({ cells, group }, which) => {
      group.style.transform = `translateX(${count === 2 ? 86 + 190 * which : 240 + (which - 1) * m * CELL}px)`;
      cells.forEach((cell, i) => set(cell, { class: `ex-cell ex-query${i === asked[which] ? " ex-full" : ""}` }));
    });
    joined.forEach(({ group }, which) => {
      group.style.transform = `translateX(${240 + (count === 2 ? which - 1 : -0.5) * CELL}px)`;
      group.style.opacity = which < count ? 1 : 0;
    });
    title.textContent = count === 1 ? `the query, ${2 * m} components` : `the query, split into two of ${m}`;
    end.textContent = count === 1 ? "one number comes back" : "merged: two numbers come back";
    panels.forEach(({ title, rows, out, group }, which) => {
      group.style.display = which < count ? "" : "none";
      if (which >= count) return;
      title.textContent = count === 1 ? asked.map((i) => names[i]).join(", ") : `head ${which + 1}: ${names[asked[which]]}`;
      const span = count === 1 ? 290 : 100, right = 86 + 190 * which + span; // one head has the room of two
      rows.forEach(({ bar, share }, i) => { const weight = found.weights[which][i]; set(bar, { width: span * weight }); set(share, { x: right - span * (1 - weight) + 8, class: weight < 0.005 ? "ex-quiet" : "" }); share.textContent = fixed(found.weights[which][i]); });
      set(out, { x: right + 46 });
      out.textContent = fixed(found.output[which], 1);
    });
    say(sentence(asked, count, found, names, values, tried), names.map((name, i) => [name, found.weights.map((row) => fixed(row[i])).join(" and "), values[i]]));
  }
}
