"""Results of tests run in several ways, a direct connection among them: a table and the
differences."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

DIRECT = "direct"
NOT_RUN = "-"


class Verdict(StrEnum):
    """The result of a test. UNFINISHED: it was still running when its time was over."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNFINISHED = "did not end"

    @property
    def is_failure(self) -> bool:
        return self in (Verdict.FAILED, Verdict.UNFINISHED)


@dataclass
class Results:
    """The verdicts of each test by the way it was run."""

    ways: Sequence[str]
    _verdicts: dict[str, dict[str, list[Verdict]]] = field(default_factory=dict)

    def add(self, test: str, way: str, verdict: Verdict) -> None:
        self._verdicts.setdefault(test, {}).setdefault(way, []).append(verdict)

    @property
    def tests(self) -> list[str]:
        return sorted(self._verdicts)

    def verdicts(self, test: str, way: str) -> list[Verdict]:
        return self._verdicts.get(test, {}).get(way, [])

    def differ(self, test: str) -> bool:
        """Return True if the verdicts differ between ways, beyond the number of runs."""
        run = (frozenset(self.verdicts(test, way)) - {Verdict.SKIPPED} for way in self.ways)
        return len(set(filter(None, run))) > 1

    def worse(self, way: str) -> list[str]:
        """Return the tests that failed this way at least once, and passed directly each time."""
        return [
            test
            for test in self.tests
            if set(self.verdicts(test, DIRECT)) == {Verdict.PASSED}
            and any(verdict.is_failure for verdict in self.verdicts(test, way))
        ]

    def table(self, tests: Iterable[str]) -> str:
        """Return a table with a row for each test and a column for each way."""
        rows = [["test", *self.ways]]
        rows += [[test, *(_cell(self.verdicts(test, way)) for way in self.ways)] for test in tests]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def totals(self) -> str:
        """Return a line for each way: how many tests passed each time, of those not skipped."""
        return "\n".join(f"{way}: {self._total(way)}" for way in self.ways)

    def _total(self, way: str) -> str:
        run = [set(self.verdicts(test, way)) - {Verdict.SKIPPED} for test in self.tests]
        passed = sum(found == {Verdict.PASSED} for found in run)
        return f"{passed} of {sum(map(bool, run))} tests passed"


def _cell(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return NOT_RUN
    if len(set(verdicts)) == 1 and len(verdicts) == 1:
        return verdicts[0]
    run = [verdict for verdict in verdicts if verdict != Verdict.SKIPPED]
    return f"{run.count(Verdict.PASSED)}/{len(run)}" if run else Verdict.SKIPPED
