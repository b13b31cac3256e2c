// Pyodide itself, in Node, turns into bytecode what a first Run imports (see bytecode.py):
// node bytecode.mjs FOLDER LIBRARY, the folder of Pyodide and the archive of the library.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, library] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")));
const packages = ["numpy", "matplotlib"];
const py = await loadPyodide({ indexURL: folder, packages, env: { MPLBACKEND: "agg" }, stdout() {} });
py.unpackArchive(new Uint8Array(readFileSync(library)), "zip", { extractDir: "/home/pyodide" });
py.mountNodeFS("/pyodide", folder);
py.runPython(readFileSync(new URL("bytecode.py", import.meta.url), "utf8"));
