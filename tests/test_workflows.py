"""The workflows on the server: linted, pinned, with the least rights."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def test_the_linter_has_nothing_to_say_and_would_find_what_is_wrong(tmp_path):
    def said(folder):
        linter = str(Path(sys.executable).with_name("zizmor"))
        command = [linter, "--offline", "--no-progress", "--quiet", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    status, words = said(ROOT / ".github")  # and to dependabot.yml
    assert status == 0, words
    bad = tmp_path / ".github" / "workflows" / "bad.yml"
    bad.parent.mkdir(parents=True)
    bad.write_text(re.sub(r"checkout@\w+", "checkout@main", WORKFLOWS[0].read_text("utf8")))
    assert "unpinned-uses" in said(bad)[1]


@each
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


def load(name):
    workflow = yaml.safe_load((ROOT / ".github/workflows" / name).read_text("utf8"))
    return workflow, workflow[True]  # YAML 1.1 reads `on` as a yes


def run_step(script, folder, **environment):
    """Run a step's script as the server does: bash that stops at the first error."""
    (folder / "step.sh").write_text(script)
    command = ["bash", "--noprofile", "--norc", "-e", "step.sh"]
    ours = os.environ | environment
    done = subprocess.run(command, cwd=folder, env=ours, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def program(path, *lines):
    """Write a shell script that stands for a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


def test_a_change_is_tested_once():
    """Not for its push and for its pull request; main is tested by publish."""
    _, when = load("test.yml")
    assert set(when) == {"pull_request", "workflow_call", "workflow_dispatch"}
    publish, when = load("publish.yml")
    assert when["push"] == {"branches": ["main"], "tags": ["v*"]}
    assert publish["jobs"]["test"]["uses"].endswith("/test.yml")
    assert publish["jobs"]["build"]["needs"] == "test"
    assert publish["jobs"]["deploy"]["needs"] == "build"


FORMS = {
    'public: { address: "https://example.org/", repository: "x", branch: main }': "https://example.org/",
    "public:\n      address: https://example.org/ # here": "https://example.org/",
    'public: { address: "", repository: "", branch: main }': "",
    "public:\n      address:": "",
    "public:": "",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_address_is_read_however_it_is_written(tmp_path, form):
    (tmp_path / "_config.yml").write_text(f"sphinx:\n  config:\n    {form}\n    language: en\n")
    program(tmp_path / ".venv/bin/python", f'exec "{sys.executable}" "$@"')
    steps = load("publish.yml")[0]["jobs"]["build"]["steps"]
    (step,) = (step for step in steps if step.get("id") == "address")
    done = run_step(step["run"], tmp_path, GITHUB_OUTPUT=str(tmp_path / "output"))
    assert (tmp_path / "output").read_text() == f"address={FORMS[form]}\n"
    assert ("::notice::" in done.stderr) == (FORMS[form] == "")


@pytest.mark.parametrize("already", ["", "7"])
def test_a_failure_of_the_weekly_run_is_reported_once(tmp_path, already):
    jobs = load("weekly.yml")[0]["jobs"]
    report = jobs["report"]
    assert report["needs"] == [name for name in jobs if name != "report"]
    assert report["if"].startswith("always() && ")
    assert all(f"needs.*.result, '{r}'" in report["if"] for r in ("failure", "cancelled"))
    (step,) = report["steps"]
    results = dict(line.split(": ") for line in step["env"]["RESULTS"].splitlines())
    assert results == {name: f"${{{{ needs.{name}.result }}}}" for name in report["needs"]}

    # What GitHub would be asked:
    program(tmp_path / "gh", f'[ "$2" = list ] && echo {already} || printf "%s\\n" "$@" > asked')
    run_step(
        step["run"],
        tmp_path,
        PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        TITLE=step["env"]["TITLE"],
        RUN="https://example.org/runs/1",
        RESULTS="stable: success\nnewest: failure\nbook: skipped\nlinks: cancelled\n",
    )
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("issue\ncomment\n7\n" if already else "issue\ncreate\n--title\n")
    assert "https://example.org/runs/1\n\nnewest: failure\nlinks: cancelled\n" in asked
    assert "stable" not in asked
