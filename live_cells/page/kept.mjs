// What is kept on this device, for each copy of the book by itself: {page: {code: {cell: text}, solved: [cell]}}.
// Where the browser stores nothing it is kept while the page is open (see theme.mjs). What has another form was
// written by another version, or by somebody else: it counts as nothing kept.
const ROOT = new URL(document.documentElement.dataset.content_root ?? ".", location.href).pathname;
const NAME = `live-cells ${ROOT}`;
const RAN = `live-cells-ran ${ROOT}`;
const PAGE = location.pathname.slice(ROOT.length);

const isObject = (one) => typeof one === "object" && one !== null && !Array.isArray(one);
const isText = (one) => typeof one === "string";

function whole() {
  let all;
  try {
    all = JSON.parse(localStorage.getItem(NAME));
  } catch {
    all = null;
  }
  return Object.fromEntries(Object.entries(isObject(all) ? all : {}).filter(([, page]) => isObject(page)));
}

function sound(page) {
  const code = Object.entries(isObject(page?.code) ? page.code : {}).filter(([, text]) => isText(text));
  return { code: Object.fromEntries(code), solved: Array.isArray(page?.solved) ? page.solved.filter(isText) : [] };
}

/** Return what is kept of this page. */
export function kept() {
  return sound(whole()[PAGE]);
}

/** Return the code that is kept of all pages: a cell may use what was written on another one. */
export function keptCode() {
  return Object.values(whole()).flatMap((page) => Object.values(sound(page).code));
}

/** Change what is kept of this page; another page may have written in the meantime. */
export function keep(change) {
  const all = whole();
  const page = sound(all[PAGE]);
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

/** Note that cells of this book have run here, or tell whether they have. */
export function noteRun() { localStorage.setItem(RAN, "yes"); }
export function hasRun() { return localStorage.getItem(RAN) === "yes"; }

/** Forget all of it. */
export function forget() {
  localStorage.removeItem(NAME);
  localStorage.removeItem(RAN);
}
