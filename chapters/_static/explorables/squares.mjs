// Weights as squares in the one ramp: what several explorables draw.
import { draw } from "./frame.mjs";

/** Squares whose colour is a weight; where there is none they are hatched. */
export function squares(x, y, size, rows, columns) {
  document.getElementById("ex-hatch") ?? document.body.append(draw("svg", { class: "ex-defs", width: 0, height: 0, "aria-hidden": "true" },
    draw("pattern", { id: "ex-hatch", width: 4, height: 4, patternUnits: "userSpaceOnUse" }, draw("path", { d: "M-1 1l2-2M0 4l4-4M3 5l2-2", "stroke-width": 0.8 }))));
  const all = Array.from({ length: rows }, (_, i) => Array.from({ length: columns(i) }, (_, j) =>
    draw("rect", { x: x + j * size, y: y + i * size, width: 0.92 * size, height: 0.92 * size, rx: 0.1 * size, class: "ex-square" })));
  return { all, parts: all.flat(), show(weights) { all.forEach((row, i) => row.forEach((one, j) => { one.style.setProperty("--w", weights[i][j] ?? 0); one.classList.toggle("ex-masked", weights[i][j] == null); })); } };
}
