// Two models that read what is typed: the encoder of chapter 10, as d2lmini.NameEncoder does, and the first layer of MiniLM, as
// d2lmini.models.MiniLMLayer; a test compares them.
import { dot, half, softmax } from "./math.mjs";

const FOLDED = { ß: "ss", æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ð: "d", þ: "th", ı: "i" };

/** The words of a name, in letters from a to z; null if there is a letter that it has never learned. */
export function folded(name) {
  const apart = [...name.toLowerCase()].map((c) => FOLDED[c] ?? c).join("").normalize("NFKD");
  const words = apart.split(/[\s-]+/).map((word) => word.replace(/[^\p{L}\p{N}]/gu, "")).filter(Boolean);
  return words.every((word) => /^[a-z]{1,64}$/.test(word)) ? words : null;
}

/** The matrices in a file of 16-bit numbers: [name, rows, columns] of each, one after the other. */
export function matrices(file, shapes) {
  const all = new DataView(file);
  let at = 0;
  const number = () => { const bits = all.getUint16(2 * at++, true); return bits & 32768 ? -half(bits & 32767) : half(bits); };
  return Object.fromEntries(shapes.map(([name, rows, columns]) => [name, Array.from({ length: rows }, () => Array.from({ length: columns }, number))]));
}

const times = (rows, w) => rows.map((row) => w.map((one) => dot(one, row)));
const plus = (a, b) => a.map((row, i) => row.map((x, j) => x + b[i][j]));
const norm = (rows) => rows.map((row) => {
  const mean = row.reduce((a, b) => a + b, 0) / row.length;
  const size = Math.sqrt(row.reduce((a, b) => a + (b - mean) ** 2, 0) / row.length + 1e-5);
  return row.map((x) => (x - mean) / size);
});

function attend(w, name, query, key, count = 4) {
  const [q, k, v] = [["q", query], ["k", key], ["v", key]].map(([one, rows]) => times(rows, w[`${name}.w_${one}.weight`]));
  const size = q[0].length / count;
  const joined = q.map((row) => Array.from({ length: count }, (_, h) => {
    const part = (x) => x.slice(h * size, (h + 1) * size);
    const weights = softmax(k.map((one) => dot(part(row), part(one)) / Math.sqrt(size)));
    return part(v[0]).map((_, c) => weights.reduce((sum, a, j) => sum + a * v[j][h * size + c], 0));
  }).flat());
  return times(joined, w[`${name}.w_o.weight`]);
}

/** The vector of a name: the sum of its words' vectors, of length 1; 0 for a name without letters. */
export function encoded(w, words) {
  const total = words.map((word) => ofWord(w, word)).reduce((a, b) => a.map((x, i) => x + b[i]), w.question[0].map(() => 0));
  return unit(total);
}
const unit = (x) => { const length = Math.hypot(...x) || 1; return x.map((a) => a / length); };

function ofWord(w, letters) {
  const d = w.question[0].length;
  let x = [...letters].map((c, t) => w["letters.weight"][c.charCodeAt(0) - 97].map((a, j) => a + Math[j % 2 ? "cos" : "sin"](t / 10000 ** ((2 * Math.floor(j / 2)) / d))));
  for (const at of ["blocks.0.", "blocks.1."]) {
    const h = norm(x);
    x = plus(x, attend(w, `${at}attend`, h, h));
    const [[up], [down]] = ["widen", "narrow"].map((one) => w[`${at}${one}.bias`]);
    const wide = times(norm(x), w[`${at}widen.weight`]).map((row) => row.map((a, j) => Math.max(0, a + up[j])));
    x = plus(x, times(wide, w[`${at}narrow.weight`]).map((row) => row.map((a, j) => a + down[j])));
  }
  return unit(attend(w, "pool", w.question, x)[0]);
}

/** The weights of each head of MiniLM's first layer, from what each word and each place adds to queries and keys. */
export function firstLayer({ parts, spread, same: [same] }, words, heads) {
  const both = words.map((word, i) => same.map((x, c) => (parts[word][c] + parts[spread.length + i][c]) / spread[word][i] + x));
  const size = same.length / 2 / heads;
  return Array.from({ length: heads }, (_, h) => {
    const [queries, keys] = [h, h + heads].map((at) => both.map((row) => row.slice(at * size, (at + 1) * size)));
    return queries.map((query) => softmax(keys.map((key) => dot(query, key) / Math.sqrt(size))));
  });
}
