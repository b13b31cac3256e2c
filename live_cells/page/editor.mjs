// A plain text area over the page's own coloured code: it is as large as the code and has its font, its
// letters are transparent, and what is typed is coloured again below it.
const KEYWORDS = "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield".split(" ");
const CONSTANTS = ["True", "False", "None"];
const BUILTINS = "abs all any bool dict enumerate filter float getattr hasattr input int isinstance len list map max min next object open print range repr reversed round set sorted str sum super tuple type zip Exception ValueError TypeError".split(" ");
const WORD = /(#.*)|((?:[rbfu]{0,2})(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(@[\w.]+)|(\b\d[\w.]*(?:e[+-]\d+)?)|([A-Za-z_]\w*)/gi;
export const HINT = "Ctrl + Enter runs. Tab indents once you type, and leaves after Esc.";

/** Colour code as the rest of the page is coloured. */
export function colour(pre, code) {
  const parts = [];
  let rest = 0, before = "";
  const span = (kind, text) => Object.assign(document.createElement("span"), { className: kind, textContent: text });
  for (const found of code.matchAll(WORD)) {
    const [text, comment, string, decorator, number, word] = found;
    const kind = comment ? "c1" : string ? "s2" : decorator ? "nd" : number ? "mi"
      : CONSTANTS.includes(word) ? "kc" : KEYWORDS.includes(word) ? "k"
      : before === "def" ? "nf" : before === "class" ? "nc" : BUILTINS.includes(word) ? "nb" : "";
    if (word) before = word;
    if (!kind) continue;
    parts.push(code.slice(rest, found.index), span(kind, text));
    rest = found.index + text.length;
  }
  pre.replaceChildren(...parts, `${code.slice(rest)}\n`);
}

/** Put the editor over a block of code; return its text area. */
export function editor(pre, code, { name, explained, changed, run }) {
  const area = document.createElement("textarea");
  Object.assign(area, { value: code, rows: 1, spellcheck: false, wrap: "off", autocapitalize: "off", autocomplete: "off" });
  area.setAttribute("autocorrect", "off");
  area.setAttribute("aria-label", name);
  if (explained) area.setAttribute("aria-description", HINT);
  const box = pre.closest(".highlight");
  box.classList.add("live-code");
  pre.before(area);
  pre.setAttribute("aria-hidden", "true");
  pre.removeAttribute("tabindex");
  const copy = box.querySelector(".copybtn"); // a keyboard selects and copies in the field itself
  if (copy) copy.tabIndex = -1;
  let typing = false; // Tab moves on until something was typed, and again after Escape
  const insert = (text) => {
    // As if typed, so that it can be undone; an empty text would leave the caret elsewhere.
    if (!document.execCommand(text ? "insertText" : "delete", false, text)) area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input"));
  };
  const lines = () => {
    const { value, selectionStart: from, selectionEnd: to } = area;
    const start = value.lastIndexOf("\n", from - 1) + 1;
    return { value, from, to, start, line: value.slice(start, from) };
  };
  const indent = (back) => {
    const { value, from, to, start } = lines();
    if (from === to && !back) return insert(" ".repeat(4 - ((from - start) % 4)));
    const old = value.slice(start, to);
    const text = back ? old.replace(/^ {1,4}/gm, "") : old.replace(/^(?=.)/gm, "    ");
    if (text === old) return;
    area.setSelectionRange(start, to);
    insert(text);
    area.setSelectionRange(from === to ? Math.max(start, from + text.length - old.length) : start, start + text.length);
  };
  area.addEventListener("input", () => { typing = true; colour(pre, area.value); changed(); });
  area.addEventListener("focus", () => {
    box.classList.add("live-typed");
    const bar = document.querySelector(".bar"), under = area.getBoundingClientRect().top - 8;
    const below = bar && getComputedStyle(bar).position !== "static" ? bar.getBoundingClientRect().bottom : 0;
    if (!typing && under < below) scrollBy(0, under - below); // by keyboard: what it is begins in sight
  });
  area.addEventListener("pointerdown", () => { typing = true; });
  area.addEventListener("blur", () => { typing = false; });
  area.addEventListener("keydown", (event) => {
    const { line, from, to, start } = lines();
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key === "Enter" && !event.isComposing && (event.ctrlKey || event.metaKey || event.shiftKey)) run(event.shiftKey);
    else if (event.key === "Enter" && plain && !event.isComposing) {
      insert(`\n${line.match(/^ */)[0]}${/:\s*(#.*)?$/.test(line) ? "    " : ""}`);
    } else if (event.key === "Tab" && plain && typing) indent(event.shiftKey);
    else if (event.key === "Backspace" && plain && from === to && /^ +$/.test(line) && (from - start) % 4 === 0) {
      area.setSelectionRange(from - 4, from);
      insert("");
    } else {
      if (event.key === "Escape") typing = false;
      return;
    }
    event.preventDefault();
  });
  return area;
}
