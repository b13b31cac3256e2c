// What is printed, as a notebook shows it: a carriage return writes over its line, a backspace takes a
// letter back, and the signs for colours are colours. Other signs of a terminal are left out: those that
// move about a screen, the address of a link, the title of a window, a bell.
const SIGN = /\x1b(?:\[([0-9;:?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[@-Z\\^_])/y;
const BEGUN = /\x1b(?:\[[0-9;:?]*|\][^\x07\x1b]{0,2000}\x1b?|[ -/]+)?$/y;
const SILENT = /[\0-\x08\x0b\x0c\x0e-\x1f]/;

/** A line that is being written: its letters, each with its look, and where the next one goes. */
export function emptyLine() { return { cells: [], at: 0, look: "", left: "" }; }

/** Write a text; return the lines that it ends, as lists of letters with their looks. */
export function written(line, text) {
  const done = [];
  const all = line.left + text;
  line.left = "";
  for (let place = 0; place < all.length;) {
    const letter = String.fromCodePoint(all.codePointAt(place));
    if (letter === "\x1b") {
      SIGN.lastIndex = BEGUN.lastIndex = place;
      if (BEGUN.test(all)) { // its end comes with the next piece
        line.left = all.slice(place);
        break;
      }
      const sign = SIGN.exec(all);
      if (sign?.[2] === "m") line.look = looks(line.look, sign[1]);
      else if (sign?.[2] === "K") line.cells.length = Math.min(line.at, line.cells.length);
      place += sign ? sign[0].length : 1;
      continue;
    }
    place += letter.length;
    if (letter === "\n") {
      done.push(line.cells);
      line.cells = [];
      line.at = 0;
    } else if (letter === "\r") line.at = 0;
    else if (letter === "\b") {
      if (line.at) line.cells.splice(--line.at, 1);
    } else if (!SILENT.test(letter)) line.cells[line.at++] = [letter, line.look];
  }
  return done;
}

/** Return a look, as classes, after the numbers of a sign: bold, underlined, one of eight colours, as the ground. */
function looks(look, numbers) {
  let [bold, line, colour, on] = ["bold", "underlined", "c", "on"].map((name) => look.match(`ansi-${name}\\d?`)?.[0]);
  const given = numbers.split(";").map(Number);
  for (let i = 0; i < given.length; i++) {
    const one = given[i];
    if (one === 0) bold = line = colour = on = "";
    else if (one === 1) bold = "ansi-bold";
    else if (one === 21 || one === 22) bold = "";
    else if (one === 4) line = "ansi-underlined";
    else if (one === 24) line = "";
    else if (one === 7) on = "ansi-on";
    else if (one === 27) on = "";
    else if (one === 39) colour = "";
    else if (one === 49) on = colour = "";
    else if (one === 38 || one === 48) {
      colour = nearest(...given.slice(i + 1, i + 5));
      if (one === 48) on = "ansi-on";
      i += given[i + 1] === 5 ? 2 : 4;
    } else if ((one > 29 && one < 48) || (one > 89 && one < 108)) {
      colour = `ansi-c${one % 10}`;
      if (one > 39 && one < 90 || one > 99) on = "ansi-on";
    }
  }
  return [bold, line, colour, on].filter(Boolean).join(" ");
}

/** Return which of the eight is nearest to one of 256 colours, or of millions. */
function nearest(kind, ...parts) {
  if (kind === 5) {
    const n = parts[0];
    if (n < 16) return `ansi-c${n % 8}`;
    parts = n > 231 ? [0] : [36, 6, 1].map((size) => 51 * (Math.floor((n - 16) / size) % 6));
  }
  const most = Math.max(...parts), least = Math.min(...parts);
  const bits = parts.map((part, place) => (2 * part > most + least ? 1 << place : 0));
  return most - least < 50 ? "" : `ansi-c${bits.reduce((sum, bit) => sum + bit)}`;
}
