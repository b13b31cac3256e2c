// The weights of chapter 9, with a mistake or none, and what holds of them.
import { softmax } from "./math.mjs";

/** Causal weights from dot products, with one mistake or none. */
export function exhibit(bug, products, width, heads) {
  const offset = (bug === "corner" ? 0 : products[0].length - products.length) + (bug === "late" ? 1 : 0);
  const scale = Math.sqrt(bug === "width" ? width * heads : width);
  const scores = products.map((row, i) => row.map((x, j) => ((j <= i + offset) !== (bug === "upside") ? x / scale : -Infinity)));
  const weigh = (row) => (row.some((x) => x > -Infinity) ? softmax(row) : row.map(() => 0));
  const turned = (rows) => rows[0].map((_, j) => rows.map((row) => row[j]));
  return bug === "axis" ? turned(turned(scores).map(weigh)) : scores.map(weigh);
}

/** Which of four statements hold: the definition, sums of 1, nothing from later keys, one at a time as all at once. */
export function holds(bug, products, width, heads) {
  const found = exhibit(bug, products, width, heads);
  const sees = (i) => i + products[0].length - products.length + 1;
  const close = (one, other) => one.every((x, j) => Math.abs(x - other[j]) < 1e-9);
  const right = exhibit("", products, width, heads);
  return [
    found.every((row, i) => close(row, right[i])),
    found.every((row) => close([row.reduce((a, b) => a + b, 0)], [1])),
    found.every((row, i) => row.slice(sees(i)).every((x) => x === 0)),
    products.every((row, i) => close(found[i], [...exhibit(bug, [row.slice(0, sees(i))], width, heads)[0], ...row.slice(sees(i)).fill(0)])),
  ];
}
