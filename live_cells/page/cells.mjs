// Brings the cells of a page to life: Run, Edit, Stop, Reset. Nothing is loaded before the first Run.
// What the reader writes, and which exercises are solved, stays on this device (see kept.mjs).
import { colour, editor, HINT } from "./editor.mjs";
import { forget, hasRun, kept, keep, keptAnything, keptCode, lasts, noteRun } from "./kept.mjs";
import { settings } from "./settings.mjs";

const here = (address) => new URL(address, import.meta.url).href;
const sent = { ...settings, pyodide: here(settings.pyodide), archive: here(settings.archive), data: here(settings.data) };
const RUN_THE_CHAPTER = '<a href="#run-this-chapter">run this chapter as a notebook</a>';
const make = (tag, properties, ...inside) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...inside);
  return made;
};

// What shows an output comes with the first Run, as Python does; without it there are plain words.
const plainly = { show: (out, piece) => out.append(piece.text ?? ""), settle() {} };
let shower = null;
const withShow = (use) => { (shower ??= import(here("output.mjs")).catch(() => plainly)).then(use); };

let worker = null;
let told = false; // how one leaves an editor, said when somebody types for the first time
let current = null; // the cell that runs, which may be one that another needs
const waiting = []; // the cells that were asked for, the first of them running

class Cell {
  constructor(root) {
    this.root = root;
    this.id = root.id.slice(5);
    this.pre = root.querySelector(".cell_input pre");
    this.original = this.pre.textContent.replace(/\n$/, "");
    this.pieces = [];
  }
  get code() { return this.area ? this.area.value : this.written ?? this.original; }
  get edited() { return this.code !== this.original; }

  enliven(number) {
    const { root } = this, task = this.exercise && (root.closest("section").querySelector("h3")?.firstChild.nextSibling?.textContent ?? "");
    const button = (name, label, action) => {
      const made = make("button", { type: "button", className: `live-${name}`, onclick: action }, label);
      made.setAttribute("aria-label", `${label} ${this.exercise ? `your answer: ${task}` : `cell ${number}`}`);
      return made;
    };
    this.buttons = {
      run: button("run", "Run", () => this.run()),
      edit: button("edit", "Edit", () => this.edit()),
      stop: button("stop", "Stop", stop),
      reset: button("reset", "Reset", () => this.reset()),
    };
    this.status = make("span", { className: "live-status" });
    this.status.setAttribute("role", "status");
    this.bar = root.querySelector(".live-bar");
    this.bar.classList.remove("live-said");
    this.bar.replaceChildren(make("div", { className: "live-tools" }, ...Object.values(this.buttons)), this.status);
    const named = this.exercise ? `Your answer: ${task}` : `Cell ${number}`;
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", named);
    this.name = this.exercise ? named : `Code of cell ${number}`;
    this.out = make("div", { className: "live-output" });
    this.out.dataset.liveOutput = "";
    if (!this.exercise) this.out.setAttribute("aria-live", "polite"); // its verdict is the status
    this.outputIs = `Output of cell ${number}`;
    root.querySelector(".cell_output[role]")?.setAttribute("aria-label", this.outputIs);
    const caption = root.querySelector("figcaption");
    if (caption) caption.before(this.out); else this.bar.after(this.out);
    for (let part = this.out.parentElement; part !== root; part = part.parentElement) part.classList.add("live-place");
    this.state = "idle";
    root.dataset.live = "";
    const code = kept().code[this.id];
    if (code !== undefined && code !== this.original) this.write(code);
    this.changed(false);
  }
  /** Put the editor over the code. */
  open() {
    this.area ??= editor(this.pre, this.code, {
      name: this.name,
      explained: this.exercise || live.filter((cell) => !cell.pre.closest("details")).indexOf(this) < 2,
      changed: () => { this.changed(); if (!told) { told = true; this.say(HINT); } },
      run: (next) => { this.run(); if (next) this.next?.edit(); },
    });
    if (!this.area.closest("details")) { // the field is the stop before it, and says what it is
      this.buttons.edit.tabIndex = -1;
      this.buttons.edit.setAttribute("aria-hidden", "true");
    }
  }
  get state() { return this.out.dataset.state; }
  set state(state) {
    this.out.dataset.state = state;
    this.root.classList.toggle("live-failed", state === "error");
    const busy = waiting.includes(this), { run, stop, reset } = this.buttons;
    this.root.classList.toggle("live-busy", busy);
    run.setAttribute("aria-disabled", busy); // it keeps the focus
    if (!busy && document.activeElement === stop) run.focus();
    stop.hidden = !busy;
    if (this.edited || state !== "idle") reset.hidden = false;
    else if (document.activeElement !== reset) reset.hidden = true;
  }
  write(code) {
    this.written = code;
    if (this.area) this.area.value = code;
    colour(this.pre, code);
  }
  changed(store = true) {
    if (store) keep((page) => { if (this.edited) page.code[this.id] = this.code; else delete page.code[this.id]; });
    this.root.classList.toggle("live-edited", this.edited);
    this.state = this.state;
    sayWhatIsKept();
  }
  edit() {
    const fold = this.root.querySelector("details.hide");
    if (fold) fold.open = true;
    this.open();
    this.area.focus();
  }
  reset() {
    if (waiting.includes(this)) stop();
    this.area.parentElement.classList.remove("live-typed");
    this.write(this.original);
    this.clear();
    this.state = "idle";
    this.say("");
    this.buttons.run.focus();
    this.changed();
  }
  clear() {
    this.pieces = [];
    this.out.replaceChildren();
    for (const name of ["role", "aria-label"]) this.out.removeAttribute(name);
    this.root.classList.remove("live-shown");
  }
  say(text) { if (this.status.innerHTML !== text) this.status.innerHTML = text; }
  /** Say what is loaded, and show how much of it there is; said once, for those who hear it. */
  load(text, share) {
    const bar = this.status.querySelector("progress");
    if (bar && share !== undefined && this.status.textContent === text) { bar.value = share; return; }
    this.say(text);
    if (share !== undefined) this.status.append(make("progress", { max: 1, value: share, ariaLabel: "of the download" }));
  }

  run() {
    if (waiting.includes(this)) return;
    waiting.push(this);
    this.clear();
    this.state = "loading";
    this.say(waiting.length > 1 ? "Waiting …" : "Starting …");
    worker ??= start();
    const page = cells.map(({ id, code }) => ({ id, code }));
    worker.postMessage({ id: this.id, page, kept: keptCode(), settings: sent });
  }
  put(piece) {
    this.root.classList.add("live-shown");
    if (!this.exercise) Object.assign(this.out, { role: "group", ariaLabel: this.outputIs });
    withShow(({ show }) => show(this.out, piece, cellOf));
  }
  /** What the card of an exercise says, in a line. */
  verdict() {
    const card = this.out.querySelector(".d2l-check")?.cloneNode(true);
    for (const more of card?.querySelectorAll("dl, p, [aria-hidden]") ?? []) more.remove();
    return card && make("i", {}, card.textContent.trim()).innerHTML;
  }
  end(state, text) {
    withShow(({ settle }) => settle());
    this.state = state;
    const [place, message] = [".live-error p:last-of-type", ".live-message"].map((part) => this.out.querySelector(part)?.textContent);
    const error = this.exercise && state === "error" && (message ? `${place ?? ""} ${message}` : this.out.textContent).trim().split("\n").at(-1);
    this.say(this.verdict() ?? (error ? make("i", {}, error).innerHTML : text));
    if (state === "done") noteRun();
    if (this.exercise && this.out.querySelector(".d2l-pass")) {
      keep((page) => { page.solved = [...new Set([...page.solved, this.id])]; });
      markSolved();
      sayWhatIsKept();
    }
  }
}

const cells = [...document.querySelectorAll("div.cell[id^=cell-]")].map((root) => new Cell(root));
const cellOf = (id) => cells.find((cell) => cell.id === id);

function start() {
  const made = new Worker(here("worker.mjs"), { type: "module" });
  made.onmessage = ({ data }) => withShow(() => { if (made === worker) hear(data); });
  made.onerror = (event) => {
    event.preventDefault();
    if (made === worker) hear({ state: "broken", id: waiting[0]?.id, fatal: true, text: event.message || "" });
  };
  return made;
}

function hear({ id, state, text, share, piece, finished, fatal }) {
  const target = waiting[0];
  if (!target) return;
  if (piece) {
    // What another cell needs runs in silence, unless the reader has changed it, or it fails.
    if (current === target || (current.edited && current.out)) current.put(piece); else current.pieces.push(piece);
  } else if (state === "loading") {
    target.state = "loading";
    target.load(text, share);
  } else if (state === "running") {
    current = cellOf(id);
    current.pieces = [];
    if (current === target) target.state = "running";
    else if (current.edited && current.out) { current.clear(); current.state = "running"; }
    target.say(current === target ? "Running …" : "Running what it needs …");
  } else if (state === "done" || state === "error") {
    const failed = state === "error";
    if (current === target) target.end(state, failed ? "Error" : "Done");
    else if (failed || (current.edited && current.out)) {
      if (failed) for (const one of current.pieces) (current.out ? current : target).put(one);
      if (current.out) { current.state = state; current.say(failed ? "Error" : "Done"); }
    }
    if (failed && current !== target) {
      if (current.out) target.put({ kind: "note", text: "A cell above that this one needs has stopped with an error: ", cell: current.id });
      target.end("error", "Error");
    }
  } else if (state === "broken") {
    if (fatal) { give_up(`Python broke down${text ? ` (${text})` : ""}. The next Run starts it again.`); return; }
    target.put({ kind: "note", text: `Python could not be loaded (${text}). What the page shows still holds, and you can `, more: `${RUN_THE_CHAPTER}.` });
    target.root.classList.remove("live-shown"); // the stored output stays
    target.end("error", "Not loaded");
  }
  if (finished !== undefined) next();
}

function next() {
  const [done] = waiting.splice(0, 1);
  done.state = done.state === "loading" || done.state === "running" ? "error" : done.state;
}

function give_up(text) {
  worker?.terminate();
  worker = null;
  const [stopped, ...others] = waiting.splice(0);
  for (const cell of others) cell.end("idle", "Not run"); // what was stored for them stays in view
  stopped.put({ kind: "note", text });
  stopped.end("error", text.split(/[ .]/)[0] === "Stopped" ? "Stopped" : "Error");
  for (const cell of cells) if (cell.out && cell.state === "running") cell.state = "idle";
  current = null;
}
function stop() { give_up("Stopped. The next Run starts Python again; what you typed is still there."); }

function markSolved() {
  const { solved } = kept();
  const all = cells.filter((cell) => cell.exercise);
  const done = all.filter((cell) => solved.includes(cell.id));
  for (const cell of all) {
    cell.root.closest("section")?.classList.toggle("live-solved", done.includes(cell));
  }
  for (const link of document.querySelectorAll('.page-toc a[href="#exercises"]')) {
    link.querySelector(".live-count")?.remove();
    if (done.length) link.append(make("span", { className: "live-count" }, ` ${done.length} of ${all.length}`));
  }
}

const whereKept = make("span", {});
const forgetting = make("span", { className: "live-kept" }, whereKept,
  make("button", { type: "button", onclick: forgetAll }, "Forget it"));
function sayWhatIsKept() {
  const line = document.querySelector("#run-this-chapter");
  if (!line) return;
  whereKept.textContent = ` What you change here is kept ${lasts() ? "on this device" : "until you leave the page"}. `;
  if (keptAnything()) line.append(forgetting); else forgetting.remove();
}
function forgetAll() {
  if (!confirm("Forget all that you have written and solved in this book?")) return;
  forget();
  for (const cell of live) cell.reset();
  markSolved();
  sayWhatIsKept();
}

for (const out of document.querySelectorAll(".cell:not(.shows-figure) > .cell_output:not(:has(details))")) Object.assign(out, { role: "group", ariaLabel: "Output" });
for (const { root } of cells.filter((cell) => cell.root.querySelector(".live-not"))) Object.assign(root, { role: "group", ariaLabel: "Code that needs PyTorch" });
const live = cells.filter((cell) => cell.root.querySelector(".live-bar:not(.live-not)"));
live.forEach((cell, place) => {
  cell.exercise = cell.root.querySelector(".d2l-todo") !== null;
  cell.next = live[place + 1];
  cell.enliven(place + 1);
  for (const kind of ["pointerenter", "focusin"]) cell.root.addEventListener(kind, comeNear, { passive: true });
});
// Who has run cells of this book before will do so again: Python starts when the page is at rest, or when a
// hand comes near a cell.
function comeNear() {
  if (worker || !hasRun()) return;
  worker = start();
  worker.postMessage({ boot: sent });
}
if (!document.hidden && !navigator.connection?.saveData) (self.requestIdleCallback ?? setTimeout)(comeNear);
// A browser looks around each new field for what it could fill in, and would lay out all that a phone
// has left for later (theme.mjs) at once.
const openAll = () => { for (const cell of live) cell.open(); };
if ("laidOut" in document.documentElement.dataset || matchMedia("(min-width: 980px)").matches) openAll();
else addEventListener("laidout", openAll, { once: true });
markSolved();
addEventListener("storage", markSolved); // solved in another window
