// What the explorables share: drawing, controls with a label, ends and a mark, and the sentence.
import { fixed } from "./math.mjs";

export const make = (tag, attributes = {}, ...inside) => fill(document.createElement(tag), attributes, inside);
export const draw = (tag, attributes = {}, ...inside) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, inside);
function fill(made, attributes, inside) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}
export const set = (part, attributes) => fill(part, attributes, []);
export const text = (x, y, words, attributes = {}) => draw("text", { x, y, ...attributes }, words);

/** A drawing of this size; what it shows is said by the sentence beneath. Its words have one size, however wide it is:
 *  --unit says how many of its own units a pixel has. */
export function picture(width, height, ...inside) {
  const made = draw("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", style: `max-width:${width * 1.25}px` }, ...inside);
  sizes ??= new ResizeObserver((all) => { for (const { target, contentRect } of all) if (contentRect.width) target.style.setProperty("--unit", (target.viewBox.baseVal.width / contentRect.width).toFixed(3)); });
  sizes.observe(made);
  return made;
}
let sizes;

/** A weighted sum in the colours of its parts. Of many small weights the rounded ones would not add up: they are left out. */
export function sumOf(weights, values, output, least = 0.0005) {
  const word = (kind, words) => make("span", { class: kind }, words);
  const terms = weights.map((weight, i) => [weight, values[i]]).filter(([weight]) => weight >= least);
  return [...terms.flatMap(([weight, value], i) => [i ? " + " : "", word("weight", fixed(weight, 3)), " · ", word("value", value)]), terms.length < weights.length ? " + … = " : " = ", word("output-word", output)];
}

/** A slider: what is shown of its value, its two ends, and a mark where one usually is. */
export function slider({ label, min, max, step, value, usual, ends, show, input }) {
  const control = make("input", { type: "range", "aria-label": label, min, max, step, value }); // its value is said by itself
  const shown = make("b", {}); // an output element would take the label for itself
  const says = () => { shown.textContent = show(control.valueAsNumber); control.setAttribute("aria-valuetext", shown.textContent); };
  control.addEventListener("input", () => { says(); input(); });
  says();
  const box = make("label", { class: "ex-slider" }, make("span", {}, `${label} `, shown), control,
    make("span", { class: "ex-ends", "aria-hidden": "true" }, make("span", {}, ends[0]),
      ...(usual > min && usual < max ? [make("span", { class: `ex-usual${usual - min > 0.6 * (max - min) ? " ex-before" : ""}`, style: `--at:${(usual - min) / (max - min)}` }, draw("svg", { viewBox: "0 0 8 6" }, draw("path", { d: "M4 0l4 6H0z" })))] : []), make("span", {}, ends[1])));
  return { box, control, get value() { return control.valueAsNumber; }, put(x) { control.value = x; says(); } };
}

/** The first words of a text, for a menu that a phone has room for. */
export function brief(pieces) {
  const whole = pieces.join("");
  return whole.length > 31 ? `${whole.slice(0, 32).replace(/[.,:]*\s\S*$/, "")} …` : whole;
}

/** A button, a menu, and buttons of which one is chosen. */
export function button(words, action) {
  const made = make("button", { type: "button" }, words);
  made.addEventListener("click", action);
  return made;
}
export function choice(label, options, value, input) {
  const control = make("select", {}, ...options.map((words) => make("option", {}, words)));
  control.selectedIndex = value;
  control.addEventListener("change", input);
  return { box: make("label", { class: "ex-choice" }, label, control), get value() { return control.selectedIndex; }, put(i) { control.selectedIndex = i; } };
}
export function switches(label, options, value, input) {
  const all = options.map((_, i) => make("input", { type: "radio", name: label, ...(i === value && { checked: "" }) }));
  for (const one of all) one.addEventListener("change", input);
  const labels = all.map((one, i) => make("label", { class: "ex-radio" }, one, ` ${options[i]}`));
  return { box: make("div", { class: "ex-buttons", role: "radiogroup", "aria-label": label }, ...labels), get value() { return all.findIndex((one) => one.checked); } };
}

/** The parts of an explorable: where it is drawn, its controls, the sentence beneath, and its numbers in a fold.
 *  What is said is seen at once, and heard when the reader rests: a screen reader would read each step. */
export function frame(root, drawings, ...controls) {
  const drawing = make("div", { class: "ex-drawing", role: "img", "aria-label": `Drawing: ${root.getAttribute("aria-label")}` }, ...drawings);
  const { replaces } = root.dataset; // a drawing of the page, or that of the cell before
  const place = replaces && (replaces === "before" ? root.previousElementSibling : document.getElementById(replaces)).querySelector(".d2lmini-figure");
  const say = speaker(root);
  if (place) place.after(drawing);
  else root.querySelector(".ex-drawing").replaceWith(drawing);
  root.querySelector(".ex-controls").replaceChildren(...controls);
  root.dataset.state = "ready";
  return say;
}

/** A function that says a sentence, and writes the numbers that belong to it. */
export function speaker(root) {
  const still = root.cloneNode(true); // for paper: what stands there where no script runs
  for (const name of ["explorable", "settings"]) delete still.dataset[name];
  still.classList.add("ex-still");
  root.after(still);
  const says = root.querySelector(".ex-says"), heard = make("p", { class: "ex-heard", role: "status" });
  const fold = root.querySelector(".ex-fold");
  says.after(heard);
  fold.open = false;
  fold.querySelectorAll("caption, tfoot").forEach((part) => part.remove()); // of the start alone
  let waiting;
  return (words, rows) => {
    if (rows) fold.querySelector("tbody").replaceChildren(...rows.map(([first, ...others]) => make("tr", {}, make("th", { scope: "row" }, first), ...others.map((one) => make("td", {}, one)))));
    if (says.textContent === words) return;
    says.textContent = words;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      heard.textContent = words;
      waiting = setTimeout(() => { heard.textContent = ""; }, 5000); // it stands above to be read
    }, 700);
  };
}
