// Puts the wall of heads in the place of its table; the numbers are those of wall.py.
for (const root of document.querySelectorAll(".d2lmini-wall:not([data-ready])")) {
  root.dataset.ready = "";
  const { shape: [layers, heads, n, m], shares, habits, queries, keys } = JSON.parse(root.dataset.wall);
  const bytes = Uint8Array.from(atob(shares), (c) => c.charCodeAt(0)), across = layers > heads ? layers : heads;
  const make = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  const all = Array.from({ length: layers * heads }, (_, at) => {
    const layer = Math.floor(at / heads), head = at % heads, name = `layer ${layer}, head ${head}`;
    const canvas = make("canvas", { width: m, height: n });
    return { at, name, canvas, share: (i, j) => bytes[(at * n + i) * m + j], button: make("button", { type: "button", tabindex: -1, "aria-label": name, title: name }, canvas),
      habit: Object.fromEntries(Object.entries(habits).map(([habit, table]) => [habit, table[layer][head]])) };
  });
  let now = all[0], asks = n - 1, kept = null;

  const wall = make("div", { class: "d2lmini-heads", role: "group", "aria-label": `${layers * heads} heads; arrow keys move`, style: `--across:${across}` });
  const told = make("p", {}), says = make("p", { role: "status" });
  const large = make("canvas", { width: m, height: n, "aria-hidden": "true" });
  const square = make("div", { class: "d2lmini-square", style: `--tall:${1 / n}` }, large);
  const tokens = make("p", { class: "d2lmini-tokens", "aria-hidden": "true" });
  const from = make("select", {}, ...queries.map((token, i) => make("option", { value: i }, `${i}: ${token}`)));
  from.value = asks;
  from.addEventListener("input", () => { asks = Number(from.value); show(now); });
  large.addEventListener("click", (event) => { asks = from.value = Math.min(n - 1, Math.floor((event.offsetY / large.clientHeight) * n)); show(now); });
  const sorts = ["by layer", ...Object.keys(habits)].map((habit, i) => {
    const one = make("button", { type: "button", "aria-pressed": !i }, i ? `look at ${habit}` : habit);
    one.addEventListener("click", () => sort(i ? habit : "", one));
    return one;
  });
  for (const one of all) {
    one.button.addEventListener("pointerenter", () => show(one));
    one.button.addEventListener("focus", () => show(one));
    one.button.addEventListener("click", () => { kept = kept === one ? null : one; show(one); });
  }
  wall.addEventListener("pointerleave", () => show(kept ?? now));
  wall.addEventListener("keydown", (event) => {
    const rows = [...wall.children], at = rows.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across, Home: -at, End: rows.length - 1 - at }[event.key];
    if (step === undefined || !rows[at + step]) return;
    event.preventDefault();
    rows[at + step].focus();
  });
  root.querySelector("table").replaceWith(make("div", { class: "d2lmini-controls" }, ...sorts), wall, told,
    make("div", { class: "d2lmini-head" }, square, make("div", {}, make("label", {}, "asked from ", from), tokens, says)));
  root.querySelector(".d2lmini-still")?.remove();
  sort("", sorts[0]);
  // JupyterLab takes the arrow keys of all that does not say this itself.
  for (const own of root.querySelectorAll("button, select")) own.dataset.lmSuppressShortcuts = "";
  paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  new MutationObserver(paint).observe(document.documentElement, { attributes: true });

  /** All pictures in the ramp of this page, which a probe tells. */
  function paint() {
    const probe = tokens.parentNode.appendChild(make("span", { class: "d2lmini-more" }));
    const colours = Array.from({ length: 101 }, (_, share) => { probe.style.setProperty("--w", share / 100); return getComputedStyle(probe).backgroundColor; });
    probe.remove();
    for (const one of all) {
      const pen = one.canvas.getContext("2d");
      pen.clearRect(0, 0, m, n);
      for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) {
        const colour = colours[one.share(i, j)];
        if (colour) { pen.fillStyle = colour; pen.fillRect(j, i, 1, 1); }
      }
    }
    show(now);
  }
  function sort(habit, pressed) {
    for (const one of sorts) one.setAttribute("aria-pressed", one === pressed);
    const turned = !habit && layers > heads; // then a column for each layer
    const order = [...all].sort((a, b) => (habit ? b.habit[habit] - a.habit[habit] : turned ? (a.at % heads) - (b.at % heads) : 0) || a.at - b.at);
    wall.append(...order.map((one) => one.button));
    for (const one of all) one.button.classList.toggle("d2lmini-faint", Boolean(habit) && one.habit[habit] <= 0.5);
    const count = all.filter((one) => one.habit[habit] > 0.5).length;
    told.textContent = habit ? `${count} of ${all.length} heads give ${habit} more than half; the others are pale.` : `A ${turned ? "column" : "row"} for each of ${layers} layers. Masked cells are hatched.`;
  }
  function show(one) {
    for (const other of [now, one]) { other.button.removeAttribute("aria-current"); other.button.tabIndex = -1; }
    now = one;
    one.button.setAttribute("aria-current", "true");
    one.button.tabIndex = 0;
    const pen = large.getContext("2d");
    pen.clearRect(0, 0, m, n);
    pen.drawImage(one.canvas, 0, 0);
    square.style.setProperty("--row", asks / n);
    const row = keys.map((_, j) => one.share(asks, j)), best = keys.map((_, j) => j).filter((j) => row[j] <= 100).sort((a, b) => row[b] - row[a]).slice(0, 3);
    tokens.replaceChildren(...keys.map((token, j) => make("span", row[j] <= 100 ? { class: "d2lmini-more", style: `--w:${row[j] / 100}` } : { class: "d2lmini-hidden" }, token)));
    if (n === m) tokens.children[asks].classList.add("d2lmini-asking");
    const word = one.name[0].toUpperCase() + one.name.slice(1);
    says.textContent = best.length ? `${word}: “${queries[asks]}” looks at ${best.map((j) => `“${keys[j]}” with ${(row[j] / 100).toFixed(2)}`).join(", ")}.` : `${word}: “${queries[asks]}” may see nothing.`;
  }
}
