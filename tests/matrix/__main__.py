"""`python -m tests.matrix`: runs the clients' scenes directly and in each configuration of the
gateway, and prints where they differ.

Each way is a run of pytest, with brokers of its own. Verdicts are appended to a file of JSON lines,
so that several runs add up. The exit status is 1 if a scene always passes directly and fails
through the gateway.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

from tests.real.configurations import PLAIN, features
from tests.support.differences import DIRECT, Results, Verdict
from tests.support.progress import say
from tests.support.results import append, lines_of

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = CHECKOUT / "build" / "matrix"
SCENES = ("tests/shared", "tests/real/test_transactions.py", "tests/real/test_terminations.py")
NONE = ""
CONFIGURATIONS = tuple(
    "+".join(filter(None, chosen)) or PLAIN
    for chosen in product(
        (NONE, "far", "near"),
        (NONE, "mask"),
        (NONE, "workers"),
        (NONE, "verify"),
        (NONE, "checksums"),
    )
)
"""All possible configurations."""


@dataclass(frozen=True)
class Line:
    """The verdict of one run of a scene."""

    scene: str
    way: str
    verdict: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    options = _options(arguments)
    ways = options.only or [DIRECT, *CONFIGURATIONS]
    if not options.table:
        for way in ways:
            say(way)
            for line in _run(way, options):
                append(line, options.results)
    return _told(options.results)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("--only", action="append", metavar="WAY", type=_way, help="as mask+far")
    parser.add_argument("--scenes", default="", metavar="EXPRESSION", help="as of pytest -k")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="only what depends on timing, N times"
    )
    parser.add_argument("--results", type=Path, default=BUILD / "results.jsonl", metavar="FILE")
    parser.add_argument("--table", action="store_true", help="show what there is, run nothing")
    return parser.parse_args(arguments)


def _way(name: str) -> str:
    if name != DIRECT:
        features(name)
    return name


def _run(way: str, options: argparse.Namespace) -> Iterator[Line]:
    """Run all scenes one way. An interrupted run has no verdicts."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="broker-gateway-matrix-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", *SCENES, f"--junitxml={report}"]
        command += ["-o", "junit_family=xunit1", "-k", options.scenes or "test"]
        command += ["--direct"] if way == DIRECT else []
        command += ["--configuration", PLAIN if way == DIRECT else way]
        command += ["-m", "scene and timing" if options.repeat > 1 else "scene"]
        command += ["--repeat", str(options.repeat)]
        with (BUILD / f"{way}.log").open("w") as log:
            subprocess.run(command, cwd=CHECKOUT, stdout=log, check=False)
        if report.exists():
            yield from parsed(report.read_text(), way)


def _scene(case: ElementTree.Element) -> str:
    """Return a test without the number of its run."""
    name = re.sub(r"-?\brun\d+\b", "", case.attrib["name"]).replace("[]", "").replace("[-", "[")
    return f"{Path(case.attrib['file']).stem}::{name}"


def parsed(report: str, way: str) -> Iterator[Line]:
    """Yield the verdicts of a pytest report in JUnit format."""
    for case in ElementTree.fromstring(report).iter("testcase"):
        kinds = {child.tag for child in case}
        verdict = Verdict.PASSED
        if kinds & {"failure", "error"}:
            verdict = Verdict.FAILED
        elif "skipped" in kinds:
            verdict = Verdict.SKIPPED
        yield Line(_scene(case), way, verdict)


def _told(file: Path) -> int:
    lines = [Line(**found) for found in lines_of(file)]
    results = Results([way for way in (DIRECT, *CONFIGURATIONS) if way in {it.way for it in lines}])
    for line in lines:
        results.add(line.scene, line.way, Verdict(line.verdict))
    differing = [test for test in results.tests if results.differ(test)]
    print(results.table(differing) if differing else "no scene differs")
    print(f"\n{results.totals()}")
    return 1 if any(results.worse(way) for way in results.ways) else 0


if __name__ == "__main__":
    sys.exit(main())
