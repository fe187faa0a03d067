"""The Go client's own tests: those of its package `pulsar`. Many of them need several brokers or a
broker in a container, and so fail directly, too."""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.real.brokers.jars import Say, filled_once, run_tool, tool
from tests.support.differences import Verdict

from .suite import Run, copied, output_of, rewritten
from .systems import Pulsar, System

MODULE, VERSION = "github.com/apache/pulsar-client-go", "v0.19.0"
SECONDS = 60
"""For one test; few take more than ten."""
BROKER, WEB = "localhost:6650", "localhost:8080"
"""Where its tests expect them."""
RESULT = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
VERDICTS = {"PASS": Verdict.PASSED, "FAIL": Verdict.FAILED, "SKIP": Verdict.SKIPPED}


class Go:
    client = f"pulsar-client-go {VERSION}"
    # Like the configuration of the broker that comes with the library, but without TLS and tokens.
    system: System = Pulsar(
        {
            "max_message_size": 1024 * 1024,
            "extra": {
                "transactionCoordinatorEnabled": "true",
                "acknowledgmentAtBatchIndexLevelEnabled": "true",
                "systemTopicSchemaCompatibilityStrategy": "ALWAYS_COMPATIBLE",
            },
        }
    )

    def sources(self, say: Say) -> Path:
        go = tool("go")

        def fetch(into: Path) -> None:
            say("fetching the Go client by go ...")
            fetched(MODULE, VERSION, into / "module")
            run_tool("go", [go, "test", "-run", "^$", "./pulsar"], cwd=into / "module")

        return filled_once(f"go-suite-{VERSION}", fetch) / "module"

    def run(self, sources: Path, run: Run) -> Mapping[str, Verdict]:
        words = {BROKER: run.at.broker, WEB: run.at.web}
        module = rewritten(sources, run.folder / "module", ".go", words)
        tests = Tests(run.folder / "tests", module / "pulsar", run.folder, os.environ)
        run_tool("go", [tool("go"), "test", "-c", "-o", str(tests.program), "./pulsar"], cwd=module)
        return tests.verdicts(tests.names(run.only or "."), SECONDS)


def fetched(module: str, version: str, into: Path) -> None:
    """Copy a module that go fetches, with its tests."""
    command = [tool("go"), "mod", "download", "-json", f"{module}@{version}"]
    told = subprocess.run(command, cwd=into.parent, check=True, capture_output=True, text=True)
    copied(Path(json.loads(told.stdout)["Dir"]), into)


@dataclass(frozen=True)
class Tests:
    """The tests of a package. `program`: what `go test -c` has built; `package`: the folder of its
    sources; `logs`: where the output goes, by test."""

    program: Path
    package: Path
    logs: Path
    env: Mapping[str, str]

    def names(self, pattern: str) -> list[str]:
        """Return the tests whose names match."""
        listing = [str(self.program), "-test.list", pattern]
        return output_of(listing, self.package, self.logs / "list.log", SECONDS, self.env).split()

    def verdicts(self, names: Iterable[str], seconds: float) -> dict[str, Verdict]:
        """Run each test in a process of its own, so that one that panics or hangs affects no other.
        `seconds`: for one of them."""
        found: dict[str, Verdict] = {}
        for name in names:
            test = [str(self.program), "-test.v", "-test.run", f"^{name}$"]
            log = self.logs / f"{name}.log"
            found |= parsed(name, output_of(test, self.package, log, seconds, self.env))
        return found


def parsed(name: str, said: str) -> dict[str, Verdict]:
    """Return the verdicts of a test and its parts, parsed from its output."""
    ended = {part: VERDICTS[word] for word, part in RESULT.findall(said)}
    return {name: Verdict.UNFINISHED} | ended
