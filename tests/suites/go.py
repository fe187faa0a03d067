"""The Go client's own tests: those of its package `pulsar`. Many of them need several brokers or a
broker in a container, and so fail directly, too."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real.brokers.jars import Say, filled_once, run_tool, tool
from tests.support.differences import Verdict

from .suite import Run, copied, output_of, rewritten

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
    broker: Mapping[str, Any] = {
        "max_message_size": 1024 * 1024,
        "extra": {
            "transactionCoordinatorEnabled": "true",
            "acknowledgmentAtBatchIndexLevelEnabled": "true",
            "systemTopicSchemaCompatibilityStrategy": "ALWAYS_COMPATIBLE",
        },
    }

    def sources(self, say: Say) -> Path:
        go = tool("go")

        def fetch(into: Path) -> None:
            say("fetching the Go client by go ...")
            command = [go, "mod", "download", "-json", f"{MODULE}@{VERSION}"]
            told = subprocess.run(command, cwd=into, check=True, capture_output=True, text=True)
            copied(Path(json.loads(told.stdout)["Dir"]), into / "module")
            run_tool("go", [go, "test", "-run", "^$", "./pulsar"], cwd=into / "module")

        return filled_once(f"go-suite-{VERSION}", fetch) / "module"

    def run(self, sources: Path, run: Run) -> Mapping[str, Verdict]:
        """Run each test in a process of its own, so that one that panics or hangs affects no
        other."""
        words = {BROKER: run.at.broker, WEB: run.at.web}
        module = rewritten(sources, run.folder / "module", ".go", words)
        tests, package, env = str(run.folder / "tests"), module / "pulsar", os.environ
        run_tool("go", [tool("go"), "test", "-c", "-o", tests, "./pulsar"], cwd=module)
        listing = [tests, "-test.list", run.only or "."]
        names = output_of(listing, package, run.folder / "list.log", SECONDS, env).split()
        found: dict[str, Verdict] = {}
        for name in names:
            test = [tests, "-test.v", "-test.run", f"^{name}$"]
            log = run.folder / f"{name}.log"
            found |= parsed(name, output_of(test, package, log, SECONDS, env))
        return found


def parsed(name: str, said: str) -> dict[str, Verdict]:
    """Return the verdicts of a test and its parts, parsed from its output."""
    ended = {part: VERDICTS[word] for word, part in RESULT.findall(said)}
    return {name: Verdict.UNFINISHED} | ended
