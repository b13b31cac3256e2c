"""Several modules as one do what they do apart."""

import sys

import pytest
import quickjs

from tests.book.building import ROOT

sys.path.append(str(ROOT / "_ext"))
from joining import joined

MODULES = {
    "one": 'import { two } from "./two.mjs";\nconst own = 1;\nexport const sum = () => own + two;',
    "two": "const own = 10;\nexport const two = own;\nexport function three() { return 3; }",
}
ENTRY = 'import * as one from "./one.mjs";\nimport { two, three } from "./two.mjs";\n'


def test_each_module_keeps_its_own_names(tmp_path):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.mjs").write_text(text)
    text = joined(tmp_path, f"{ENTRY}found = [one.sum(), two, three()].join();")
    assert quickjs.Context().eval(f"var found; {text} found") == "11,10,3"
    assert text.count("const own = 10") == 1


def test_a_module_may_be_made_by_the_build(tmp_path):
    text = joined(tmp_path, f"{ENTRY}found = one.sum();", MODULES)
    assert quickjs.Context().eval(f"var found; {text} found") == 11


@pytest.mark.parametrize("line", ["export default 1;", 'import a from "./two.mjs";'])
def test_another_form_is_refused(tmp_path, line):
    with pytest.raises(ValueError, match="cannot join: "):
        joined(tmp_path, line)


def test_comments_stay_behind(tmp_path):
    text = joined(tmp_path, '// said\n/** So. */\n  const a = "// kept";\n\nb; // kept too\n')
    assert text == 'const a = "// kept";\nb; // kept too\n'
