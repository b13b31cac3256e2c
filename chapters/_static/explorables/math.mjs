// The formulas of d2lmini, as plain loops; a test compares them with the library.
export const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

/** A number with so many digits, as Python writes it: a tie goes to the even digit, and no zero is negative. */
export function fixed(x, digits = 2) {
  const tie = Math.abs((x * 2 ** (digits + 1)) % 2) === 1; // only whole eighths lie between two hundredths
  return (tie ? (2 * Math.round((x * 10 ** digits) / 2)) / 10 ** digits : x).toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "−");
}

export function softmax(scores) {
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

export const mix = (weights, values) => values[0].map((_, j) => dot(weights, values.map((value) => value[j])));

/** Attention of one query, with dot products as scores. */
export function lookup(query, keys, values) {
  const scores = keys.map((key) => dot(query, key));
  const weights = softmax(scores);
  return { scores, weights, output: mix(weights, values) };
}

const pieces = (text) => {
  const padded = [...` ${text.toLowerCase().normalize("NFC")} `];
  return padded.slice(2).map((_, i) => padded.slice(i, i + 3).join(""));
};

/** The cosine of the trigrams of a text and of each name, over the trigrams that the names have. */
export function trigramScores(text, names) {
  const known = new Set(names.flatMap(pieces));
  const unit = (word) => {
    const counts = new Map();
    for (const piece of pieces(word)) if (known.has(piece)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
    const length = Math.sqrt([...counts.values()].reduce((sum, n) => sum + n * n, 0)) || 1;
    return new Map([...counts].map(([piece, n]) => [piece, n / length]));
  };
  const asked = unit(text);
  return names.map((name) => {
    const key = unit(name);
    return [...asked].reduce((sum, [piece, x]) => sum + x * (key.get(piece) ?? 0), 0);
  });
}

/** A kernel regression at each x, and its error when each x is left out of its own estimate. */
export function smooth(x, y, width, leaveOut = false) {
  return x.map((at, i) => {
    const scores = x.map((other, j) => (leaveOut && i === j ? -Infinity : -((at - other) ** 2) / (2 * width ** 2)));
    return dot(softmax(scores), y);
  });
}
export function leftOutError(x, y, width) {
  const errors = smooth(x, y, width, true).map((estimate, i) => (estimate - y[i]) ** 2);
  return Math.sqrt(errors.reduce((a, b) => a + b, 0) / y.length);
}

/** Attention of one query with scaled dot products, that sees some of the keys. */
export function masked(query, keys, values, seen) {
  const scores = keys.map((key) => dot(query, key));
  const scaled = scores.map((score) => score / Math.sqrt(query.length));
  const weights = seen.some(Boolean) ? softmax(scaled.map((score, j) => (seen[j] ? score : -Infinity))) : scores.map(() => 0);
  return { scores, scaled, weights, output: mix(weights, values) };
}

/** Two questions over one-hot keys, asked by one head of width 2m or by two of width m. */
export function heads(asked, values, factor, count) {
  const m = values.length;
  const ask = (wanted, width) => softmax(values.map((_, j) => (factor * wanted.filter((i) => i === j).length) / Math.sqrt(width)));
  const weights = count === 1 ? [ask(asked, 2 * m)] : asked.map((one) => ask([one], m));
  return { weights, output: weights.map((row) => dot(row, values)) };
}

/** A vector whose pairs of components are turned by its position. */
export function rotary(x, position, base) {
  return x.map((_, i) => {
    const angle = position * base ** (-(i - (i % 2)) / x.length);
    return i % 2 ? x[i - 1] * Math.sin(angle) + x[i] * Math.cos(angle) : x[i] * Math.cos(angle) - x[i + 1] * Math.sin(angle);
  });
}

/** The three numbers of the online softmax after each tile of keys, how much of the old stays, and the output. */
export function online(scores, values, size) {
  const steps = [];
  let largest = -Infinity, total = 0, mixed = 0;
  for (let at = 0; at < scores.length; at += size) {
    const top = Math.max(largest, ...scores.slice(at, at + size));
    const fade = Math.exp(largest - top);
    const powers = scores.slice(at, at + size).map((score) => Math.exp(score - top));
    largest = top;
    total = total * fade + powers.reduce((a, b) => a + b, 0);
    mixed = mixed * fade + dot(powers, values.slice(at, at + size));
    steps.push({ largest, fade, total, mixed, output: mixed / total });
  }
  return steps;
}

/** A number of 16 bits. */
export function half(bits) {
  const power = (bits >> 10) & 31, rest = (bits & 1023) / 1024;
  return power ? 2 ** (power - 15) * (1 + rest) : 2 ** -14 * rest;
}

/** The rows of one of nine heads, of which a file holds the lower triangle, layer after layer. */
export function rowsOf(file, count, layer, head) {
  const all = new DataView(file), start = (9 * layer + head) * (count * (count + 1)) / 2;
  return Array.from({ length: count }, (_, i) => Array.from({ length: i + 1 }, (_, j) => half(all.getUint16(2 * (start + (i * (i + 1)) / 2 + j), true))));
}
