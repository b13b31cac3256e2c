// Chapter 5: one question about two people, asked by one head or by two.
import { heads } from "./math.mjs";
import { draw, frame, make, picture, set, slider, text } from "./frame.mjs";

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(pair, count, { output }, values) {
  const [a, b] = pair;
  const wanted = [a, b].map((i) => values[i]);
  if (count === 1) return `One head has one row of weights for both questions and returns one number, ${output[0].toFixed(1)}, from which nobody can tell ${wanted.join(" and ")} apart. Give it two heads.`;
  const right = output.every((x, i) => Math.abs(x - wanted[i]) < 1);
  return `Two heads ask for one name each and return ${output.map((x) => x.toFixed(1)).join(" and ")}${right ? `: both incomes, ${wanted.join(" and ")}. Choose other names, or go back to one head.` : ". Each head is too undecided to name its income: sharpen them."}`;
}

export function mount(root, { names, values, pair, factor }) {
  const pick = (which) => {
    const made = make("select", {}, ...names.map((name) => make("option", {}, name)));
    made.selectedIndex = pair[which];
    made.addEventListener("change", update);
    return made;
  };
  const both = [pick(0), pick(1)];
  const switches = [1, 2].map((count) => {
    const made = make("input", { type: "radio", name: "ex-heads", value: count });
    made.checked = count === 1;
    made.addEventListener("change", update);
    return made;
  });
  const panels = [0, 1].map((which) => {
    const x = 86 + 190 * which;
    const title = text(x, 14, "", { class: "ex-query" });
    const rows = names.map((_, i) => {
      const y = 40 + 24 * i;
      return { bar: draw("rect", { x, y: y - 11, height: 14, rx: 2, class: "ex-weight" }), share: text(x + 146, y, "", { "text-anchor": "end" }), ground: draw("rect", { x, y: y - 11, width: 100, height: 14, rx: 2, class: "ex-ground" }) };
    });
    const out = text(x + 146, 250, "", { class: "ex-output ex-large", "text-anchor": "end" });
    const group = draw("g", {}, title, ...rows.flatMap((row) => [row.ground, row.bar, row.share]), text(x, 250, "output", { class: "ex-output" }), out);
    return { title, rows, out, group };
  });
  const drawing = picture(480, 264, ...names.map((name, i) => text(74, 40 + 24 * i, name, { class: "ex-key", "text-anchor": "end" })),
    ...values.map((value, i) => text(476, 40 + 24 * i, value, { class: "ex-value", "text-anchor": "end" })), ...panels.map((panel) => panel.group));
  const sharp = slider({ label: "sharpness of a question", min: 0, max: 60, step: 1, value: factor, usual: factor, ends: ["0", "60"], show: String, input: update });
  const label = (words, control) => make("label", { class: "ex-choice" }, words, control);
  const radio = switches.map((control, i) => make("label", { class: "ex-radio" }, control, ` ${["one head", "two heads"][i]}`));
  const say = frame(root, [drawing], make("div", { class: "ex-buttons", role: "radiogroup", "aria-label": "number of heads" }, ...radio), sharp.box,
    label("first name", both[0]), label("second name", both[1]));
  update();

  function update() {
    const asked = both.map((one) => one.selectedIndex);
    const count = switches[1].checked ? 2 : 1;
    const found = heads(asked, values, sharp.value, count);
    panels.forEach(({ title, rows, out, group }, which) => {
      group.style.display = which < count ? "" : "none";
      if (which >= count) return;
      title.textContent = count === 1 ? asked.map((i) => names[i]).join(", ") : `head ${which + 1}: ${names[asked[which]]}`;
      rows.forEach(({ bar, share }, i) => { set(bar, { width: 100 * found.weights[which][i] }); share.textContent = found.weights[which][i].toFixed(2); });
      out.textContent = found.output[which].toFixed(1);
    });
    say(sentence(asked, count, found, values));
  }
}
