"""What a check of attention found: which invariants are broken, and the smallest input for each."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from d2lmini.testing.museum import Exhibit

__all__ = ["Finding", "Report"]


@dataclass(frozen=True)
class Finding:
    """An invariant that does not hold.

    Attributes
    ----------
    name : str
        The invariant.
    says : str
        The same as a sentence.
    case : str
        Which rule was in force.
    inputs : mapping
        The smallest input that shows it.
    expected, got : array or str
    """

    name: str
    says: str
    case: str
    inputs: Mapping[str, Any]
    expected: Any
    got: Any

    def __repr__(self) -> str:
        return f"<Finding {self.name}: {self.case}>"

    def __str__(self) -> str:
        """Say what is broken, with the input that shows it."""
        differ = _until_they_differ(self.expected, self.got)
        rows = [*self.inputs.items(), ("expected", self.expected), ("got", self.got)]
        return "\n".join(
            [
                f"  ✗ {self.name}",
                f"      {self.says} ({self.case})",
                *(f"      {name:8} {_shown(x, differ)}" for name, x in rows),
            ]
        )


@dataclass(frozen=True)
class Report(Sequence[Finding]):
    """What was found. It is empty, and so false, if every invariant holds.

    Attributes
    ----------
    subject : str
        The function's name.
    findings : tuple of Finding
    held : tuple of str
        The names of the invariants that hold.
    idle : tuple of str
        Those that the function gives no occasion to try: it returns no weights, for example.
    conventions : mapping of str to str
        What was asked for or found out.
    exhibit : Exhibit or None
        The mistake of the museum that does exactly the same.
    advice : str
        If another convention would explain what is broken, which.
    """

    subject: str
    findings: tuple[Finding, ...]
    held: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    conventions: Mapping[str, str] = field(default_factory=dict)
    exhibit: Exhibit | None = None
    advice: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the invariants that are broken."""
        return [finding.name for finding in self.findings]

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, index: Any) -> Any:
        return self.findings[index]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        tried = len(self.findings) + len(self.held)
        if not self:
            yield f"✓ {self.subject}: all {tried} invariants hold."
        elif self.names == ["it_can_be_called"]:
            yield f"✗ {self.subject} could not be called."
        else:
            yield f"✗ {self.subject} breaks {len(self)} of {tried} invariants."
        yield from map(str, self.findings)
        if self.exhibit:
            yield f"  {self.exhibit}"
        if self.advice:
            yield f"  {self.advice}"
        if self.idle:
            yield f"  Not tried: {', '.join(self.idle)}."
        if self.conventions:
            yield "  Found: " + "; ".join(
                f"{name} {said}" for name, said in self.conventions.items()
            )

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(
            {
                "subject": self.subject,
                "holds": not self,
                "broken": [
                    {
                        "invariant": finding.name,
                        "says": finding.says,
                        "case": finding.case,
                        "inputs": {name: _plain(x) for name, x in finding.inputs.items()},
                        "expected": _plain(finding.expected),
                        "got": _plain(finding.got),
                    }
                    for finding in self.findings
                ],
                "held": list(self.held),
                "not_tried": list(self.idle),
                "exhibit": self.exhibit and {
                    "name": self.exhibit.name,
                    "shows": self.exhibit.shows,
                    "where": self.exhibit.where,
                },
                "advice": self.advice,
                "conventions": dict(self.conventions),
            },
            ensure_ascii=False,
        )  # fmt: skip


def _until_they_differ(expected: Any, got: Any) -> int:
    """Return how many decimals show that two arrays differ; four, unless that is too few."""
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        for decimals in range(4, 12):
            if _shown(expected, decimals) != _shown(got, decimals):
                return decimals
    return 4


def _shown(x: Any, decimals: int = 4) -> str:
    """Write a value in one line if it is small, and its shape if it is not."""
    if not isinstance(x, np.ndarray):
        return str(x)
    if x.size > 24:
        return f"an array of shape {x.shape}"
    x = x.astype(int) if x.dtype == bool else x
    text = np.array2string(x, precision=decimals, separator=", ", max_line_width=10_000)
    return "".join(line.strip() + " " for line in text.splitlines()).strip()


def _plain(x: Any) -> Any:
    """Return what JSON knows: numbers that are none become words."""
    if isinstance(x, np.ndarray):
        return _plain(x.tolist())
    if isinstance(x, list | tuple):
        return [_plain(one) for one in x]
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)
    return x if isinstance(x, bool | int | float | str | None) else str(x)
