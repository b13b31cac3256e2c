"""What is taken from others says which version it is, and how old."""

from datetime import UTC, datetime, timedelta

import pytest

from scripts import vendored

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("what", vendored.ALL, ids=lambda what: what.name)
def test_everything_says_its_version(what):
    assert what.here()[0].isdigit()


@pytest.mark.parametrize(
    ("ages", "said", "waiting"),
    [
        ({"1.0": 900}, "900 days old      the newest", 0),
        ({"1.0": 900, "1.1": 300, "2.0": 5}, "2.0 is out, and newer ones for 300 days", 300),
        ({"2.0": 5}, "2.0 is out", 5),  # the one that is here was withdrawn
        ({"1.0": None, "1.1": None}, "1.1 is out", 0),  # a registry that says no days
    ],
)
def test_a_line_says_the_age_and_what_is_newer(monkeypatch, ages, said, waiting):
    days = {v: age if age is None else NOW - timedelta(age) for v, age in ages.items()}
    monkeypatch.setattr(vendored, "releases", lambda what: days)
    monkeypatch.setattr(vendored.Vendored, "here", lambda self: "1.0")
    line, late = vendored.row(vendored.ALL[0], NOW)
    assert said in line and late == waiting


def test_what_has_waited_too_long_is_the_status(monkeypatch, capsys):
    monkeypatch.setattr(vendored, "row", lambda what, now: ("a line", 200))
    assert (vendored.main([]), vendored.main(["--days", "365"])) == (1, 0)
    assert capsys.readouterr().out.count("take it") == len(vendored.ALL)
