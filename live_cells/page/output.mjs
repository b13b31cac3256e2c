// Shows what a cell puts out, as the page shows what was stored. HTML that comes from the worker may have
// been made by whatever ran there: nothing in it acts, and nothing of it is loaded from elsewhere.
import { emptyLine, written } from "./terminal.mjs";

const FORBIDDEN = "script, style, link, meta, base, iframe, object, embed, form, input, button, textarea, select, template";
const DARK = /--dark:\s*url\(([^)]*)\)/;

function clean(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  for (const part of body.querySelectorAll(FORBIDDEN)) part.remove();
  for (const part of body.querySelectorAll("*")) {
    for (const { name, value } of [...part.attributes]) {
      const address = ["href", "src", "xlink:href", "action", "srcset", "data"].includes(name);
      if (name.startsWith("on") || name === "id" || (address && !/^(data:image\/|#)/.test(value))) part.removeAttribute(name);
    }
  }
  return body;
}

/** Return a figure of the library as a page has it: a drawing for each theme. */
function figure(found) {
  const drawn = found.querySelector(".d2lmini-drawing");
  if (!drawn) return;
  const light = drawn.querySelector("img");
  const address = drawn.style.cssText.match(DARK)?.[1].replace(/^["']|["']$/g, "");
  drawn.replaceWith(light);
  const wide = light.width > 520 || Number(light.getAttribute("width")) > 520;
  light.removeAttribute("style");
  const holder = document.createElement("div");
  light.before(holder);
  if (wide) {
    holder.className = "d2lmini-wide";
    holder.tabIndex = 0;
    holder.setAttribute("role", "group");
    holder.setAttribute("aria-label", "Wide figure");
    holder.style.setProperty("--least", `${Math.round(0.8 * light.getAttribute("width"))}px`);
  }
  found.style.setProperty("--wide", `${Math.min(640, Math.round(1.3 * light.getAttribute("width")))}px`);
  holder.append(light);
  if (address?.startsWith("data:image/")) {
    const dark = light.cloneNode();
    light.className = "only-light";
    dark.className = "only-dark";
    dark.src = address;
    holder.append(dark);
  }
}

function shown(data) {
  const box = document.createElement("div");
  box.className = "output";
  if (data["text/html"]) {
    box.append(...clean(data["text/html"]).childNodes);
    for (const card of box.querySelectorAll(".d2l-check")) card.removeAttribute("role"); // the cell says it
    for (const found of box.querySelectorAll(".d2lmini-figure")) figure(found);
  } else if (data["image/svg+xml"] || data["image/png"] || data["image/jpeg"]) {
    const image = new Image(), kind = data["image/png"] ? "png" : "jpeg";
    image.alt = data["text/plain"] || "What the code has drawn";
    image.src = data["image/svg+xml"]
      ? `data:image/svg+xml;charset=utf-8,${encodeURIComponent(data["image/svg+xml"])}`
      : `data:image/${kind};base64,${data[`image/${kind}`]}`;
    box.append(image);
  } else {
    box.append(text(data["text/markdown"] ?? data["text/latex"] ?? data["text/plain"] ?? ""));
  }
  return box;
}

function text(words, kind = "") {
  const pre = document.createElement("pre");
  pre.className = kind;
  pre.textContent = words;
  return pre;
}

const EVERY = 30; // milliseconds: a flood of prints is drawn in heaps
const held = { stream: null, words: "", timer: 0 };

/** Add what is printed to a stream, soon: nothing waits longer than EVERY. */
function print(stream, words) {
  if (held.stream !== stream) settle();
  held.stream = stream;
  held.words += words;
  held.timer ||= setTimeout(settle, EVERY);
}

/** Draw what was printed; the last line of it may still change. */
export function settle() {
  const { stream, words } = held;
  clearTimeout(held.timer);
  Object.assign(held, { stream: null, words: "", timer: 0 });
  if (!words) return;
  stream.line ??= emptyLine();
  stream.open ??= stream.appendChild(document.createElement("span"));
  for (const line of written(stream.line, words)) stream.open.before(...inLooks(line), "\n");
  stream.open.replaceChildren(...inLooks(stream.line.cells));
}

function inLooks(cells) {
  const parts = [];
  for (const [letter, look] of cells) {
    const same = parts.at(-1)?.look === look;
    if (same) parts.at(-1).words += letter; else parts.push({ look, words: letter });
  }
  return parts.map(({ look, words }) => look ? Object.assign(document.createElement("span"), { className: look, textContent: words }) : words);
}

function error({ name, says, lines }, link) {
  const box = document.createElement("div");
  box.className = "output live-error";
  for (const { line, code, where, cell } of lines) {
    const place = document.createElement("p");
    if (!line) place.textContent = "…";
    else {
      const other = link(cell);
      place.append(`Line ${line}`, ...(other ? [" of ", other] : []), where ? ` in ${where}` : "", ":");
    }
    box.append(place);
    if (line) box.append(text(code));
  }
  const message = text(`${name}${says ? `: ${says}` : ""}`, "live-message");
  box.append(message);
  return box;
}

/** Add a piece of output: printed text, something displayed, an error, a remark of the page. */
export function show(out, piece, cellOf) {
  const link = (id) => {
    if (!id || cellOf(id)?.out === out) return null;
    return Object.assign(document.createElement("a"), { href: `#cell-${id}`, textContent: "another cell" });
  };
  if (piece.kind !== "stream") settle();
  const last = out.lastElementChild;
  if (piece.kind === "clear") out.replaceChildren();
  else if (piece.kind === "stream") {
    const stream = last?.classList.contains("live-stream") ? last : text("", "live-stream");
    if (stream !== last) out.append(stream);
    print(stream, piece.text);
  } else if (piece.kind === "cut" && last?.classList.contains("live-cut")) {
    last.textContent = piece.text; // said when it began; now with its number
  } else if (piece.kind === "cut") {
    out.append(Object.assign(document.createElement("p"), { className: "live-note live-cut", textContent: piece.text }));
  } else if (piece.kind === "note") {
    const note = Object.assign(document.createElement("p"), { className: "live-note", textContent: piece.text });
    if (piece.cell) note.append(link(piece.cell) ?? "");
    if (piece.more) note.insertAdjacentHTML("beforeend", piece.more); // the page's own words
    out.append(note);
  } else if (piece.kind === "error") {
    out.append(error(piece, link));
  } else {
    const box = shown(piece.data), old = piece.update && document.querySelectorAll(`[data-display="${CSS.escape(piece.display_id)}"]`);
    if (piece.display_id) box.dataset.display = piece.display_id;
    if (old) for (const one of old) one.replaceWith(box.cloneNode(true));
    else out.append(box);
    out.querySelectorAll(".d2lmini-still").forEach((line) => line.remove()); // for where scripts are taken away
    if (out.querySelector(".d2lmini-explorer")) revive();
  }
}

/** Let the script of the page's explorers find one that a cell has made. */
function revive() {
  const script = document.querySelector('script[src*="explorer.mjs"]');
  if (script) document.head.append(Object.assign(document.createElement("script"), { src: script.src }));
}
