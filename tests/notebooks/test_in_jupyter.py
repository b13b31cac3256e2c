"""What a kernel does for a reader: answers stay folded, names are listed and described."""

import pytest
from jupyter_client.manager import start_new_kernel

DRAWN = (
    "from d2lmini.plotting import show_heatmaps\nprint('secret')\nshow_heatmaps([[1.0]], '', '')"
)


@pytest.fixture(scope="module")
def run():
    """Run code as JupyterLab sends it, with the metadata of its cell; return what comes out."""
    manager, client = start_new_kernel(extra_arguments=["--IPKernelApp.log_level=ERROR"])

    def ask(code, *tags):
        content = {"code": code, "silent": False, "store_history": True, "stop_on_error": False}
        sent = client.session.msg("execute_request", content, metadata={"tags": list(tags)})
        client.shell_channel.send(sent)
        found = []
        while True:
            got = client.get_iopub_msg(timeout=60)
            if got["parent_header"].get("msg_id") != sent["header"]["msg_id"]:
                continue
            if got["msg_type"] == "status" and got["content"]["execution_state"] == "idle":
                return found
            if got["msg_type"] in ("stream", "display_data", "execute_result", "error"):
                found.append((got["msg_type"], got["content"]))

    ask("import d2lmini")
    ask.client = client
    yield ask
    client.stop_channels()
    manager.shutdown_kernel(now=True)


LOADED = "import sys; print(sorted({'torch', 'matplotlib', 'IPython'} & set(sys.modules)))"


def test_names_are_listed_at_once_and_nothing_is_loaded(run):
    """The first Tab asks for the kind of each name, too; it was 3 s, with all that was loaded."""
    found = run.client.complete("d2lmini.", reply=True, timeout=60)["content"]
    assert {"attention", "MultiHeadAttention"} <= {*found["matches"]}
    assert run(LOADED)[0][1]["text"] == "['IPython']\n"


def test_a_hidden_cell_puts_out_a_fold(run):
    for code, shown in (("print('secret < 1')", "secret &lt; 1"), (DRAWN, "d2lmini-figure")):
        content = dict(run(code, "hide-cell"))["display_data"]
        text = content["data"]["text/html"]
        assert text.startswith("<details") and shown in text and text.endswith("</details>")
        assert "secret" not in content["data"]["text/plain"]


def test_an_error_is_seen_and_what_follows_is_as_ever(run):
    assert "error" in [kind for kind, _ in run("print('secret'); 1 / 0", "hide-cell")]
    assert run("print('open')", "hide-input") == [("stream", {"name": "stdout", "text": "open\n"})]
    assert run("1 + 1")[0][1]["data"]["text/plain"] == "2"
    assert run("x = 1", "hide-cell") == []


def test_help_can_be_read(run):
    said = run.client.inspect("d2lmini.attention", reply=True, timeout=60)["content"]["data"]
    text = said["text/plain"]
    assert "query: array" in text and " at 0x" not in text and "~A" not in text
