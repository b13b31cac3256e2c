// The search: section by section while one types, and marks on the page to which a hit leads.
// A plain script: a browser loads no module from a folder on a disk.
{
  const HERE = document.documentElement.dataset.content_root ?? "./";
  const AT_ONCE = 8, IN_ALL = 60; // hits below a field that is open, and on the page of the search
  // A chapter explains, an exercise asks, the reference lists.
  const KINDS = { chapter: 1, part: .8, exercise: .5, term: .4, section: .35, name: .35 };

  // Words as the index has them: √d is "sqrt d", causal_mask is itself, "causal" and "mask".
  const words = (text) => (text.replaceAll("√", " sqrt ").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [])
    .flatMap((word) => [word, ...word.split("_").filter((part) => part && part !== word)]);
  const wanted = (text) => [...new Set(text.replaceAll("√", " sqrt ").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [])];
  // Nobody looks for these.
  const SMALL = new Set("a an and are as at be by do does for from how in is it of on or that the to what when which with you your".split(" "));

  const singular = (word) => word.length > 3 && /[^su]s$/.test(word) ? word.slice(0, -1) : word;

  let book;
  const load = () => book ??= new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = `${HERE}_static/search-book.mjs`;
    script.onerror = fail;
    script.onload = async () => {
      const index = new MiniSearch({
        fields: ["title", "text", "code"], idField: "id", tokenize: words,
        processTerm: (word) => SMALL.has(word) ? null : singular(word),
      });
      const rows = THE_BOOK.rows.map(([page, anchor, title, kind, text, code], id) =>
        ({ id, page, anchor, title, kind, text, code }));
      await index.addAllAsync(rows, { chunkSize: 20 }); // the page answers meanwhile
      done({ index, rows, known: new Set(rows.flatMap((row) => [...words(row.title), ...words(row.text)])) });
    };
    document.head.append(script);
  });

  const hits = ({ index, rows }, text) => index.search(text, {
    combineWith: "AND",
    tokenize: wanted,
    prefix: (word) => word.length > 2,
    boost: { title: 3, text: 1, code: .2 },
    weights: { prefix: .6, fuzzy: .3 },
    boostDocument: (id) => KINDS[rows[id].kind],
  }).map((hit) => rows[hit.id]);

  // Chapter 1: the word that has the most trigrams in common.
  const trigrams = (word) => {
    const whole = `  ${word}  `;
    return new Set(Array.from({ length: whole.length - 2 }, (_, at) => whole.slice(at, at + 3)));
  };
  const likeness = (a, b) => [...a].filter((one) => b.has(one)).length / Math.sqrt(a.size * b.size);
  const nearest = (word, known) => {
    const asked = trigrams(word);
    let best = [.35, null]; // less in common is no misspelling
    for (const one of known) {
      const like = one.length > 2 ? likeness(asked, trigrams(one)) : 0;
      if (like > best[0]) best = [like, one];
    }
    return best[1];
  };
  const meant = ({ known }, text) => {
    const starts = (word) => known.has(word) || [...known].some((one) => one.startsWith(word));
    const better = wanted(text).map((word) => SMALL.has(word) || starts(word) ? word : nearest(word, known));
    const said = better.filter(Boolean).join(" ");
    return said === wanted(text).join(" ") ? "" : said;
  };

  const element = (name, attributes = {}, ...children) => {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...children);
    return made;
  };

  // Whole words, and their plurals; a single letter is everywhere.
  const EDGE = "[\\p{L}\\p{N}_]";
  const pattern = (text) => {
    const some = wanted(text).filter((word) => word.length > 1 && !SMALL.has(word)).map(singular);
    const root = some.includes("sqrt") ? "|√" : "";
    return some.length && new RegExp(`(?<!${EDGE})(?:${some.join("|")})(?:e?s)?(?!${EDGE})${root}`, "giu");
  };

  const excerpt = ({ text: from }, asked) => {
    const found = pattern(asked);
    const at = found ? Math.max(0, from.search(found)) : 0;
    const start = at < 60 ? 0 : from.indexOf(" ", at - 60) + 1;
    const piece = (start ? "… " : "") + from.slice(start, start + 150).replace(/\s+\S*$/, "") + (start + 150 < from.length ? " …" : "");
    const line = element("p", { className: "context" });
    let last = 0;
    for (const one of found ? piece.matchAll(found) : []) {
      line.append(piece.slice(last, one.index), element("mark", {}, one[0]));
      last = one.index + one[0].length;
    }
    line.append(piece.slice(last));
    return line;
  };

  const row = (hit, text) => {
    const [address, title] = THE_BOOK.pages[hit.page];
    const link = element("a", {
      href: `${HERE}${address}?q=${encodeURIComponent(text)}${hit.anchor && `#${hit.anchor}`}`,
    }, element("span", { className: "found-title" }, hit.title));
    if (hit.anchor) link.append(" ", element("span", { className: "found-page" }, title));
    return element("li", {}, link, excerpt(hit, text));
  };

  // Show below a field what is found for what stands in it.
  const answer = (field, most) => {
    const says = element("p", { className: "found-says" });
    const heard = element("p", { className: "found-heard" }); // a listener hears it when nobody types any more
    heard.role = "status";
    const list = element("ol", { className: "found" });
    const below = element("div", { className: "found-box", hidden: true }, says, heard, list);
    let asked, waiting;
    const show = async () => {
      const text = field.value.trim();
      if (text === asked) return;
      asked = text;
      below.hidden = !text;
      if (!text) return says.replaceChildren(), list.replaceChildren();
      const all = await load().catch(() => null);
      if (text !== asked) return;
      if (!all) return says.replaceChildren("The index of the book could not be loaded.");
      let found = hits(all, text), about = text;
      says.replaceChildren();
      if (!found.length && (about = meant(all, text))) {
        found = hits(all, about);
        const other = element("button", { type: "button" }, about);
        other.onclick = () => { field.value = about; field.focus(); show(); };
        says.append(`Nothing has “${text}” in it. Did you mean `, other, "?");
      } else if (!found.length) {
        says.append(`Nothing has “${text}” in it.`);
      } else {
        const rest = found.length > most ? `, the best ${most} of them here` : "";
        says.append(`${found.length} ${found.length === 1 ? "place" : "places"}${rest}`);
      }
      list.replaceChildren(...found.slice(0, most).map((hit) => row(hit, about)));
      clearTimeout(waiting);
      waiting = setTimeout(() => { heard.textContent = says.textContent; }, 700);
    };
    field.addEventListener("input", show);
    field.addEventListener("focus", () => load().catch(() => {}));
    // The arrow keys lead through what is found.
    const step = (event) => {
      const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!move) return;
      const stops = [field, ...list.querySelectorAll("a")];
      const next = stops[stops.indexOf(document.activeElement) + move];
      if (next) event.preventDefault(), next.focus();
    };
    field.addEventListener("keydown", step);
    list.addEventListener("keydown", step);
    return { below, show };
  };

  const asked = new URLSearchParams(location.search).get("q") ?? "";
  const dialog = document.getElementById("search-dialog");
  const dialogField = dialog?.querySelector("input");
  if (dialogField) dialog.append(answer(dialogField, AT_ONCE).below);
  // One Escape closes it: a field of the type "search" would be emptied by the first.
  dialogField?.addEventListener("keydown", (event) => {
    if (event.key === "Escape") event.preventDefault(), dialog.close();
  });
  const results = document.getElementById("search-results");
  if (results) {
    const field = document.querySelector("main .search-field input");
    const { below, show } = answer(field, IN_ALL);
    field.value = asked;
    results.append(below);
    show();
  }

  // On the page of a hit: mark the words in its text, until one no longer wants it.
  const marked = !results && asked && self.Highlight && pattern(asked);
  const article = marked && document.querySelector("article");
  if (article) {
    const OUT = "pre, .katex, script, style, textarea, button, .headerlink";
    const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    const marks = new Highlight();
    for (let node; (node = texts.nextNode());) {
      if (node.parentElement.closest(OUT)) continue;
      for (const one of node.data.matchAll(marked)) {
        const range = new StaticRange({
          startContainer: node, startOffset: one.index, endContainer: node, endOffset: one.index + one[0].length,
        });
        marks.add(range);
      }
    }
    if (marks.size) {
      CSS.highlights.set("found", marks);
      const button = element("button", { type: "button", className: "unmark" },
        marks.size === 1 ? "Remove the mark" : `Remove ${marks.size} marks`);
      button.onclick = () => {
        CSS.highlights.delete("found");
        button.remove();
        if (location.protocol !== "file:") history.replaceState(null, "", location.pathname + location.hash);
      };
      document.body.append(button);
    }
  }
}
