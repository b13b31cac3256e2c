"""A plugin of pytest: ``--attention MODULE:FUNCTION``, and the fixture ``check_attention``."""

import argparse
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from d2lmini.testing import FURTHER, INVARIANTS, Report, check_attention
from d2lmini.testing.__main__ import conventions, found

__all__ = ["AttentionInvariant"]


def pytest_addoption(parser: Any) -> None:
    """Add the option."""
    parser.getgroup("attention").addoption(
        "--attention",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="run the invariants of attention on this function, a test for each; conventions may "
        'follow, as in "MODULE:FUNCTION --mask hidden"',
    )


class AttentionInvariant(pytest.Item):
    """One invariant of one function, as a test."""

    def __init__(self, *, report: Report, **options: Any) -> None:
        super().__init__(**options)
        self.report = report

    def runtest(self) -> None:
        """Fail with what was found, or skip what could not be tried."""
        name = self.name.partition("[")[0]
        if name in self.report.idle:
            pytest.skip("the function gives no occasion to try it")
        for finding in self.report:
            if finding.name == name:
                words = [str(finding), str(self.report.exhibit or ""), self.report.advice]
                raise AssertionError("\n".join(filter(None, words)))

    def repr_failure(self, excinfo: Any, style: Any = None) -> str:
        """Show what was found, and no traceback."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Say where the test comes from."""
        return self.path, None, self.name


class _Said(argparse.ArgumentParser):
    """What follows ``--attention``: a function, and its conventions."""

    def __init__(self) -> None:
        super().__init__(prog="--attention", add_help=False)
        self.add_argument("function")
        conventions(self)

    def error(self, message: str) -> Any:
        """Leave it to pytest to end."""
        raise ValueError(f"--attention: {message}")


class _Functions(pytest.Collector):
    def collect(self) -> Iterator[AttentionInvariant]:
        for name in self.config.getoption("--attention"):
            try:
                said = vars(_Said().parse_args(shlex.split(name)))
                report = check_attention(found(said.pop("function")), **said)
            except ValueError as error:
                raise pytest.UsageError(str(error)) from error
            asked = {*report.names, *report.held, *report.idle}
            listed = [invariant.__name__ for invariant in (*INVARIANTS, *FURTHER.values())]
            for one in ["it_can_be_called", *listed]:
                if one in asked:
                    yield AttentionInvariant.from_parent(self, name=f"{one}[{name}]", report=report)


def pytest_collection_modifyitems(session: Any, config: Any, items: list[Any]) -> None:
    """Put the invariants before all other tests."""
    if config.getoption("--attention"):
        functions = _Functions.from_parent(session, name="attention", nodeid="attention")
        items[:0] = list(functions.collect())


@pytest.fixture(name="check_attention")
def _check_attention() -> Callable[..., None]:
    """Return a function that fails a test if an attention breaks an invariant."""

    def check(attend: Callable[..., Any], **said: Any) -> None:
        __tracebackhide__ = True
        if report := check_attention(attend, **said):
            raise AssertionError(str(report))  # the whole of it, which assert would shorten

    return check
