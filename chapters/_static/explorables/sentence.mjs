// The atlas: a sentence that the reader types, in the twelve heads of MiniLM's first layer.
import { askedOf } from "./asked.mjs";
import { firstLayer, matrices } from "./encoder.mjs";
import { trigramScores } from "./math.mjs";
import { frame, make, slider } from "./frame.mjs";

const [START, END] = ["[CLS]", "[SEP]"];
const wordsOf = (typed) => typed.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** What a reader sees, in words; the build writes the first of these sentences. */
export function sentence(pieces, head, asks, row, { typed, turned }) {
  if (pieces.length < 3) return `${START} and ${END} mark the start and the end, and nothing is typed between them. Type a word.`;
  const order = row.map((_, j) => j).sort((a, b) => row[b] - row[a]), [best, second] = order;
  const next = !typed ? (turned ? "Now change a word." : "Change a word, or try another head.") : !turned ? "Now try another head."
    : head === 2 ? "This head looks one back in any sentence: ask from another token." : "Head 1.3 looks one back in any sentence. Has this one a habit, too?";
  const named = (j) => (j === asks ? "itself" : `“${pieces[j]}”`);
  return `In head 1.${head + 1}, “${pieces[asks]}” takes ${row[best].toFixed(2)} from ${named(best)} and ${row[second].toFixed(2)} from ${named(second)}. ${next}`;
}

export function mount(root, { typed, words, file, shapes, head, asks, rows, most }) {
  const tried = { typed: false, turned: false };
  let last = false; // whether the last word asks, whatever it is: after an empty field, until another is chosen
  let loading, pieces = [START, ...wordsOf(typed), END];
  const load = async () => {
    const answer = await fetch(new URL(file, import.meta.url));
    if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
    return matrices(await answer.arrayBuffer(), shapes);
  };
  const asked = askedOf(() => { last = false; update(); });
  const line = make("input", { type: "text", value: typed, maxlength: 120, spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
  line.addEventListener("input", retyped);
  const box = make("label", { class: "ex-text" }, make("span", {}, "a sentence"), line);
  const heads = slider({ label: "head", min: 1, max: 12, step: 1, value: head + 1, usual: head + 1, ends: ["1", "12"], show: (h) => `1.${h}`, input: () => { tried.turned = true; update(); } });
  const say = frame(root, asked.parts, box, heads.box, asked.place);
  asked.begin(pieces, asks);
  show(rows);

  function retyped() {
    const said = wordsOf(line.value), strange = said.find((word) => !words.includes(word));
    if (strange) {
      const scores = trigramScores(strange, words), near = words.map((word, i) => [scores[i], word]).filter(([score]) => score > 0).sort(([a], [b]) => b - a);
      return say(`“${strange}” is not among the ${words.length - 2} words of this file. ${near.length ? `By the trigrams of chapter 1, “${near[0][1]}” is nearest.` : "They are listed below."}`);
    }
    if (said.length > most) return say(`That is ${said.length} words, and the file has places for ${most}.`);
    last ||= said.length === 0;
    const again = last ? -1 : said.lastIndexOf(pieces[asked.row]);
    tried.typed = true;
    pieces = [START, ...said, END];
    asked.begin(pieces, again < 0 ? said.length : again + 1); // the same word asks on, or else the last one
    update();
  }
  async function update() {
    const now = pieces;
    try {
      const layer = await (loading ??= load().catch((error) => { loading = null; throw error; }));
      if (now === pieces) show(firstLayer(layer, pieces.map((piece) => words.indexOf(piece)), 12)[heads.value - 1]);
    } catch {
      say("The numbers could not be loaded. Type on to try again.");
    }
  }
  function show(weights) {
    const row = weights[asked.row];
    asked.show(weights);
    say(sentence(pieces, heads.value - 1, asked.row, row, tried), row.map((w, j) => [pieces[j], w.toFixed(2)]));
  }
}
