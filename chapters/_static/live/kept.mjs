// What is kept on this device, under one name for the whole book: {page: {code: {cell: text}, solved: [cell]}}.
// Where the browser stores nothing it is kept while the page is open (see theme.mjs).
const NAME = "live-cells";
const PAGE = location.pathname.split("/").pop();

function whole() {
  try {
    return JSON.parse(localStorage.getItem(NAME)) ?? {};
  } catch {
    return {};
  }
}

/** Return what is kept of this page. */
export function kept() {
  return { code: {}, solved: [], ...whole()[PAGE] };
}

/** Change what is kept of this page; another page may have written in the meantime. */
export function keep(change) {
  const all = whole();
  const page = { code: {}, solved: [], ...all[PAGE] };
  change(page);
  if (Object.keys(page.code).length || page.solved.length) all[PAGE] = page; else delete all[PAGE];
  if (Object.keys(all).length) localStorage.setItem(NAME, JSON.stringify(all)); else localStorage.removeItem(NAME);
}

/** Tell whether anything of the book is kept. */
export function keptAnything() {
  return Object.keys(whole()).length > 0;
}

/** Tell whether it outlives the page (see theme.mjs). */
export function lasts() {
  return localStorage.lasts;
}

/** Forget all of it. */
export function forget() {
  localStorage.removeItem(NAME);
}
