// Python in a worker of its own: it cannot reach the page, and ending it ends whatever runs in it.
// Every file is compared with the hash that the build has pinned; the wheels with those in the lock.
import { hashes } from "./hashes.mjs";
import { sizes } from "./sizes.mjs";

const MEMORY = 1 << 30; // bytes that Python may take
let booting;

async function boot({ pyodide, archive }, say) {
  const grow = WebAssembly.Memory.prototype.grow;
  WebAssembly.Memory.prototype.grow = function (pages) {
    if (this.buffer.byteLength + pages * 65536 > MEMORY) throw new RangeError("full");
    return grow.call(this, pages);
  };
  // How much of it is there: a file counts when it has come and is the one that was pinned.
  const all = Object.values(sizes).reduce((sum, size) => sum + size);
  let there = 0;
  const come = (size = 0) => say("Loading Python (about 10 MB, once) …", (there += size) / all);
  come();
  // All that Pyodide will ask for, one thing after the other, is asked for now.
  const load = self.fetch;
  const ahead = new Map();
  for (const [name, integrity] of Object.entries(hashes)) {
    const answer = load(pyodide + name, { integrity });
    answer.then(() => come(sizes[name]), () => {}); // what fails is said where it is waited for
    ahead.set(pyodide + name, answer);
  }
  self.fetch = (address, options) => {
    const url = String(address.url ?? address), answer = ahead.get(url);
    ahead.delete(url);
    return answer ?? load(address, options);
  };
  const library = load(archive).then((answer) => {
    if (!answer.ok) throw new Error(`the library of the book: ${answer.status}`);
    return answer.arrayBuffer();
  });
  library.catch(() => {});
  const module = async (name) => {
    const answer = await self.fetch(pyodide + name);
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    const address = URL.createObjectURL(new Blob([await answer.text()], { type: "text/javascript" }));
    const found = await import(address);
    URL.revokeObjectURL(address);
    return found;
  };
  const [{ loadPyodide }] = await Promise.all([module("pyodide.mjs"), module("pyodide.asm.js")]);
  const py = await loadPyodide({ indexURL: pyodide, packages: ["numpy"], env: { MPLBACKEND: "agg" } });
  py.unpackArchive(await library, "zip", { extractDir: "/home/pyodide" });
  self.fetch = load;
  say("Starting Python …");
  // array_api_compat takes in all that NumPy lists, which imports f2py and unittest: half a second for nothing.
  py.runPython("import numpy; numpy.__all__ = [name for name in numpy.__all__ if name in vars(numpy)]; del numpy.__dir__");
  const runner = py.pyimport("live_cells.runner").Runner((piece) => self.postMessage({ piece: JSON.parse(piece) }));
  return { py, runner, loaded: new Set() };
}

async function run({ id, page, kept, settings }) {
  const say = (text, share) => self.postMessage({ state: "loading", id, text, share });
  booting ??= boot(settings, say);
  const { py, runner, loaded } = await booting.catch((error) => { booting = null; throw error; });
  const { steps, libraries } = JSON.parse(whole(() => runner.prepare(JSON.stringify(page), id, JSON.stringify(kept))));
  for (const name of libraries) {
    if (loaded.has(name)) continue;
    if (name === "data") {
      say("Loading the weights of the models (about 5 MB, once) …");
      const answer = await fetch(settings.data);
      if (!answer.ok) throw new Error(`the weights of the models: ${answer.status}`);
      py.unpackArchive(await answer.arrayBuffer(), "zip", { extractDir: "/home/pyodide" });
      loaded.add(name);
      continue;
    }
    say(`Loading ${name} (about 10 MB, once) …`);
    await py.loadPackage(name, { messageCallback() {} });
    if (!py.loadedPackages[name]) throw new Error(`${name} is missing`);
    loaded.add(name);
  }
  for (const step of steps) {
    self.postMessage({ state: "running", id: step });
    const good = whole(() => runner.run(step));
    self.postMessage({ state: good ? "done" : "error", id: step });
    if (!good) return;
  }
}

// What Python itself cannot catch, such as a stack that is full, leaves it in no state to go on.
function whole(call) {
  try {
    return call();
  } catch (error) {
    throw Object.assign(new Error(String(error?.message || error)), { fatal: true });
  }
}

let last = Promise.resolve();
self.onmessage = ({ data }) => {
  if (data.boot) { // what fails is said by the Run that needs it
    booting ??= boot(data.boot, () => {}).catch((error) => { booting = null; throw error; });
    booting.catch(() => {});
    return;
  }
  last = last.then(() => run(data)).catch((error) => {
    const text = String(error?.message || error).slice(0, 300);
    self.postMessage({ state: "broken", id: data.id, fatal: Boolean(error?.fatal), text });
  }).finally(() => self.postMessage({ finished: data.id }));
};
