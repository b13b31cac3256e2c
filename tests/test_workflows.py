"""The workflows on the server: linted, pinned, with the least rights."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_linter_has_nothing_to_say():
    linter = str(Path(sys.executable).with_name("zizmor"))
    command = [linter, "--offline", "--no-progress", "--quiet", str(ROOT / ".github")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_rights_are_least(path):
    text = path.read_text("utf8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for action in re.findall(r"uses: (\S.*)", text):
        assert re.fullmatch(r"\./\S+( # .*)?|\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action
    assert "secrets." not in text
    assert "pull_request_target" not in text and "workflow_run" not in text
    for name, job in workflow["jobs"].items():
        assert "uses" in job or job["timeout-minutes"] <= 40, f"{name}: what hangs is to end"
    if path.name == "publish.yml":
        assert workflow["jobs"]["build"]["needs"] == "test", "what is published is tested"
