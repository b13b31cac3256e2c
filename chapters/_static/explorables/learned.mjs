// Chapter 10: the eight names of chapter 1 once more, compared by trigrams or by the learned encoder.
import * as chapter1 from "./names.mjs";
import { encoded, folded, matrices } from "./encoder.mjs";
import { dot } from "./math.mjs";

export function mount(root, { file, shapes, ...settings }) {
  let loading;
  const load = async () => {
    const answer = await fetch(new URL(file, import.meta.url));
    if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
    const w = matrices(await answer.arrayBuffer(), shapes);
    return { w, keys: settings.names.map((name) => encoded(w, folded(name))) };
  };
  chapter1.mount(root, settings, async (typed) => {
    const { w, keys } = await (loading ??= load().catch((error) => { loading = null; throw error; }));
    const words = folded(typed);
    if (!words) return null;
    const query = encoded(w, words);
    return keys.map((key) => dot(query, key));
  });
}
