"""The workflows on the server: linted, pinned, with the least rights; and the check of links."""

import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from scripts import links

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def linted(*paths):
    linter = str(Path(sys.executable).with_name("zizmor"))
    command = [linter, "--offline", "--no-progress", "--quiet", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_linter_has_nothing_to_say():
    done = linted(*WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_finds_what_is_wrong(tmp_path):
    text = WORKFLOWS[0].read_text("utf8")
    bad = tmp_path / ".github" / "workflows" / "bad.yml"
    bad.parent.mkdir(parents=True)
    bad.write_text(re.sub(r"checkout@\w+", "checkout@main", text))
    assert "unpinned-uses" in linted(bad).stdout


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
        assert "uses" in job or job["timeout-minutes"] <= 40, name


class Answers(BaseHTTPRequestHandler):
    """A server on which one page is gone, one is forbidden and one has moved."""

    def do_GET(self):
        status = {"/gone": 404, "/forbidden": 403, "/broken": 503}.get(self.path, 200)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def elsewhere():
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_only_what_is_gone_is_reported(elsewhere):
    assert links.fault(f"{elsewhere}/there", pause=0) == ""
    assert links.fault(f"{elsewhere}/forbidden", pause=0) == ""
    assert links.fault(f"{elsewhere}/gone", pause=0).startswith("404")
    assert links.fault(f"{elsewhere}/broken", pause=0).startswith("503")
    assert links.fault("http://127.0.0.1:9/", pause=0) != ""  # the discard port: closed


def test_links_are_found_once(tmp_path):
    addresses = ("https://example.org/a#b", "https://example.org/a", "z.html", "#here")
    page = "".join(f'<a href="{address}">x</a>' for address in addresses)
    (tmp_path / "one.html").write_text(page)
    assert links.external_links(tmp_path) == {"https://example.org/a": "one.html"}
