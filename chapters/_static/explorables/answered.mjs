// Chapters 1 and 10, and the first page: what is said of a name that is typed.
import { fixed } from "./math.mjs";

/** What a reader sees, in words, and what it was by trigrams; the build writes the first of these sentences. */
export function sentence(asked, names, scores, weights, output, before) {
  const most = Math.max(...weights), best = weights.indexOf(most), tied = names.filter((_, i) => most - weights[i] < 1e-9);
  const was = before ? ` (by letters in a row ${fixed(before[best])})` : "";
  const out = fixed(output, 1);
  if (Math.max(...scores) === 0) return `${asked.trim() ? before ? `“${asked}” has no letters` : `No three letters in a row of “${asked}” occur in a stored name` : "Nothing is typed"}, so all eight weigh the same and the answer is the plain average, ${out}. Type a part of a name.`;
  if (most - Math.min(...weights) < 0.05) return `At this temperature all eight weigh nearly the same, ${tied.join(" and ")} a little more with ${fixed(most)}, and the answer, ${out}, is nearly the plain average. Lower the temperature, and see who gains.`;
  if (tied.length > 1) return `“${asked}” fits ${tied.join(" and ")} equally well, each gets ${fixed(most)} of the weight, and the answer is ${out}. Which letter decides between them?`;
  if (most > 0.95) return `“${asked}” is answered by ${names[best]}, with ${fixed(most)} of the weight${was}, and the answer is ${out}. Leave out letters until a second name joins in, or raise the temperature.`;
  return `“${asked}” fits ${names[best]} best, with ${fixed(most)} of the weight${was}, and the answer is ${out}. ${asked.trim().toLowerCase() === names[best].toLowerCase() ? "It is the whole name: lower the temperature" : "Type on"}, and see who gains.`;
}
