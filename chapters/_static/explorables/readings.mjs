// Chapter 7: any of the 270 heads of a language model beside one that looks back, on any of the stored texts, asked from any token.
import { fixed, rowsOf } from "./math.mjs";
import { askedOf } from "./asked.mjs";
import { brief, choice, frame, slider } from "./frame.mjs";

const name = (piece) => `“${piece.trim()}”`;

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(pieces, layer, head, asks, row) {
  const best = row.indexOf(Math.max(...row));
  const start = `In head ${layer + 1}.${head + 1}, ${name(pieces[asks])} takes ${fixed(row[best])} from ${name(pieces[best])}`;
  const before = pieces.slice(0, asks).lastIndexOf(pieces[asks]), again = pieces.some((one, i) => pieces.indexOf(one) < i);
  if (asks === 0) return `${start}, because it may see nothing else. Ask from a later token.`;
  if (row[best] < 0.3) return `${start}, so it mixes many tokens. Try another layer.`;
  if (before >= 0 && best === before + 1) return `${start}, the token that followed its earlier occurrence. Ask from another token${layer === 16 && head === 0 ? "" : ", or try head 17.1"}.`;
  if (best === 0 && asks > 1) return `${start}, the first token, on which a head rests that finds nothing. ${before >= 0 ? `Yet ${name(pieces[asks])} has occurred before: try another head.` : again ? "Ask from a token that has occurred before." : "No token of this text occurs twice. Choose another text."}`;
  if (best === asks - 1) return `${start}, the token just before it. Does it do so from every token?`;
  if (best === asks) return `${start}, that is, from itself. Ask from another token.`;
  return `${start}. Ask from other tokens: is there a rule?`;
}

export function mount(root, { texts, layer, head, beside, before, rows }) {
  const called = (l, h) => `head ${l + 1}.${h + 1}`, files = new Map(), asked = askedOf(() => update(), [called(...beside), ""]);
  const which = choice("text", texts.map(({ pieces }) => brief(pieces)), 0, () => begin());
  const place = (label, max, value) => slider({ label, min: 1, max, step: 1, value, usual: value, ends: ["1", `${max}`], show: String, input: () => update() });
  const layers = place("layer", 30, layer + 1), heads = place("head", 9, head + 1);
  const say = frame(root, asked.parts, which.box, layers.box, heads.box, asked.place);
  begin([before, rows]);

  function begin(first) {
    asked.begin(texts[which.value].pieces);
    update(first);
  }
  async function update(known) {
    const text = which.value, { file, pieces } = texts[text];
    if (!known && !files.has(text)) {
      files.set(text, fetch(new URL(file, import.meta.url)).then((answer) => { if (!answer.ok) throw new Error(`${file}: ${answer.status}`); return answer.arrayBuffer(); }));
    }
    try {
      const bytes = known ? null : await files.get(text);
      if (text === which.value) show(pieces, known ?? [beside, [layers.value - 1, heads.value - 1]].map((one) => rowsOf(bytes, pieces.length, ...one)));
    } catch {
      files.delete(text);
      say("The weights could not be loaded. What is drawn is what was there before; move a slider to try again.");
    }
  }
  function show(pieces, both) {
    const i = asked.row, row = both[1][i];
    asked.name(called(layers.value - 1, heads.value - 1));
    asked.show(...both);
    say(sentence(pieces, layers.value - 1, heads.value - 1, i, row), row.map((w, j) => [name(pieces[j]), fixed(w)]));
  }
}
