"""Running the tests of a library in Python, which need pytest, and parsing its output."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.differences import Verdict

from .suite import output_of

LISTED = re.compile(r"^(\S+::.+)$", re.MULTILINE)
RESULT = re.compile(r"^(\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", re.MULTILINE)
VERDICTS = {"PASSED": Verdict.PASSED, "SKIPPED": Verdict.SKIPPED}


@dataclass(frozen=True)
class Tests:
    """The tests of a library. `home`: where pytest runs; `under`: their folder there; `options`: of
    pytest; `logs`: where the output goes; `seconds`: for all of them."""

    home: Path
    under: str
    options: Sequence[str]
    logs: Path
    seconds: float

    def verdicts(self, only: str, env: Mapping[str, str]) -> dict[str, Verdict]:
        """Run those with `only` in their name, or all."""
        test = [sys.executable, "-m", "pytest", "-o", "addopts=", "-p", "no:cacheprovider"]
        test += [*self.options, *["-k", only] * bool(only)]
        listed = self._said([*test, "--collect-only", "-q"], "list.log", env)
        said = self._said([*test, "-v"], "tests.log", env)
        return parsed(listed, said, f"{self.under}/")

    def _said(self, command: Sequence[str], log: str, env: Mapping[str, str]) -> str:
        return output_of(command, self.home, self.logs / log, self.seconds, env)


def parsed(listed: str, said: str, under: str) -> dict[str, Verdict]:
    """Return the verdicts, parsed from pytest's list of tests and its line for each finished one.
    One that also fails at its end has failed. `under`: what their names begin with."""
    found = dict.fromkeys(LISTED.findall(listed), Verdict.UNFINISHED)
    for name, word in RESULT.findall(said):
        if found.get(name) != Verdict.FAILED:
            found[name] = VERDICTS.get(word, Verdict.FAILED)
    return {name.removeprefix(under): verdict for name, verdict in found.items()}
