// Brings each table of weights to life: temperature, scaling, causal mask, and a remark in words.
// The numbers and the sentences are those of explorer.py; a test compares them.
for (const root of document.querySelectorAll(".d2lmini-explorer:not([data-ready])")) {
  root.dataset.ready = "";
  root.querySelector(".d2lmini-still")?.remove();
  const { scores, visible, queries, keys, dimension, sequence, query } = JSON.parse(root.dataset.explorer);
  const cells = [...root.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")]);
  // The remark is seen at once, and heard when the reader rests.
  const remark = root.querySelector(".d2lmini-remark"), heard = document.createElement("p");
  heard.className = "d2lmini-heard";
  heard.setAttribute("role", "status");
  remark.after(heard);
  let waiting;
  const two = (weight) => { // as Python: a tie goes to the even digit
    const x = Number(weight.toFixed(9));
    return (Math.abs((8 * x) % 2) === 1 ? Math.round(50 * x) / 50 : x).toFixed(2);
  };

  const controls = document.createElement("div");
  controls.className = "d2lmini-controls";
  const control = (type, text, settings) => {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type, ...settings });
    label.append(...(type === "range" ? [text, input] : [input, text]));
    controls.append(label);
    input.addEventListener("input", update);
    return input;
  };
  const shown = document.createElement("span");
  const slider = control("range", "temperature", { min: -1, max: 1, step: 0.05, value: 0 });
  slider.after(shown);
  slider.setAttribute("aria-label", "temperature"); // its value is said by itself
  const scaled = dimension && control("checkbox", `divide by √${dimension}`, { checked: true });
  const causal = sequence && control("checkbox", "causal mask", {});
  remark.before(controls);
  // JupyterLab takes the arrow keys of all that does not say this itself.
  for (const own of root.querySelectorAll("input, [tabindex]")) own.dataset.lmSuppressShortcuts = "";
  update();

  function update(event) {
    const temperature = 10 ** slider.valueAsNumber;
    const divisor = temperature * (scaled?.checked ? Math.sqrt(dimension) : 1);
    shown.textContent = two(temperature);
    slider.setAttribute("aria-valuetext", two(temperature));
    let best = [-1, 0, 0];
    let oneHot = true;
    let even = true;
    scores.forEach((row, i) => {
      const may = row.map((_, j) => visible[i][j] && (!causal?.checked || j - i <= keys.length - queries.length));
      const top = Math.max(...row.filter((_, j) => may[j]));
      const powers = row.map((score, j) => (may[j] ? Math.exp((score - top) / divisor) : 0));
      const sum = powers.reduce((a, b) => a + b, 0);
      const weights = powers.map((power) => (sum ? power / sum : 0));
      const count = may.filter(Boolean).length;
      if (count > 1 && (query ?? i) === i) {
        const largest = Math.max(...weights);
        oneHot &&= largest >= 0.99;
        even &&= largest <= 1.1 / count;
        weights.forEach((weight, j) => { if (weight > best[0] + 1e-9) best = [weight, i, j]; });
      }
      weights.forEach((weight, j) => {
        const cell = cells[i][j];
        cell.textContent = may[j] ? two(weight) : "–";
        cell.className = may[j] ? "d2lmini-more" : "d2lmini-hidden";
        cell.style.setProperty("--w", two(weight));
      });
    });
    const said = [];
    if (best[0] >= 0) {
      said.push(`Largest weight ${two(best[0])}: “${queries[best[1]]}” → “${keys[best[2]]}”.`);
      if (oneHot) said.push("Nearly one-hot: the slope of the softmax is close to 0, and gradients vanish.");
      else if (even) said.push("Nearly uniform: each output is close to the plain average of the values.");
    }
    remark.textContent = said.join(" ") || "No query has a choice.";
    clearTimeout(waiting);
    if (event) waiting = setTimeout(() => { heard.textContent = remark.textContent; }, 800);
  }
}
