"""Every formula is spoken by a speech rule engine, and all its letters and numbers are heard.

Collected where the engine is installed (../conftest.py): once a week, in the job "long".
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from scripts import notebooks  # noqa: F401, which finds what `_ext` imports

from _ext import katexmath  # isort: skip

pytestmark = pytest.mark.weekly
ENGINE = Path(__file__).parent / "speech/node_modules/speech-rule-engine"
SPEAK = """
const sre = require(process.argv[1]);
sre.setupEngine({locale: "en", domain: "mathspeak", modality: "speech"}).then(() => {
    const said = JSON.parse(require("fs").readFileSync(0, "utf8")).map((one) => sre.toSpeech(one));
    console.log(JSON.stringify(said));
});
"""
NAMES = {"squared": "2", "cubed": "3", "one half": "1 2", "one third": "1 3", "one fourth": "1 4"}


def spoken(formulas):
    """Return what is said of each formula."""
    command = ["node", "-e", SPEAK, str(ENGINE)]
    done = subprocess.run(command, input=json.dumps(formulas), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lost(formulas):
    """Return the tokens that are heard fewer times than they are there, and all that is heard."""
    rows = [BeautifulSoup(formula, "html.parser")(["mi", "mn", "mtext"]) for formula in formulas]
    tokens = [[str(t) for t in row if re.search(r"\w", t.get_text())] for row in rows]
    alone = sorted({token for row in tokens for token in row})
    names = dict(zip(alone, spoken([f"<math>{token}</math>" for token in alone]), strict=True))
    found = []
    for row, said in zip(tokens, spoken(formulas), strict=True):
        rest, missing = re.sub("|".join(NAMES), lambda word: NAMES[word[0]], said), []
        for name in sorted((names[token] for token in row), key=len, reverse=True):
            rest, heard = re.subn(rf"(?<!\w){re.escape(name)}(?!\w)", "", rest, count=1)
            missing += [] if name and heard else [name or "an empty token"]
        found.append((missing, said))
    return found


def test_no_letter_of_a_formula_is_lost(built):
    pages = [path.read_text("utf8") for path in built.rglob("*.html")]
    formulas = sorted({found[0] for page in pages for found in katexmath.MATHML.finditer(page)})
    assert len(formulas) > 300
    faults = [f"{missing} in {said!r}" for missing, said in lost(formulas) if missing]
    assert not faults, "lost, or a number under a name that NAMES lacks:\n" + "\n".join(faults)
