"""The Go client's own tests: those of its package `pulsar`, of which many want more than one broker
or a broker in a container. Such a test fails directly, too.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real.brokers.jars import Say, filled_once, run_tool, tool
from tests.support.differences import Verdict

from .suite import Run, copied, output_of, rewritten

MODULE, VERSION = "github.com/apache/pulsar-client-go", "v0.19.0"
SECONDS = 1500
BROKER, WEB = "localhost:6650", "localhost:8080"
"""Where its tests look for them."""
VERDICTS = {"pass": Verdict.PASSED, "fail": Verdict.FAILED, "skip": Verdict.SKIPPED}


class Go:
    client = f"pulsar-client-go {VERSION}"
    # As the configuration of the broker that the library brings along, but for TLS and tokens.
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
        words = {BROKER: run.at.broker, WEB: run.at.web}
        module = rewritten(sources, run.folder / "module", "_test.go", words)
        limit = ["-timeout", f"{SECONDS}s", "-run", run.only or "."]
        test = [tool("go"), "test", "-json", "-count", "1", *limit, "./pulsar"]
        env = os.environ | {"GOFLAGS": "-mod=readonly -buildvcs=false"}
        return parsed(output_of(test, module, run.folder / "tests.log", SECONDS, env))


def parsed(said: str) -> dict[str, Verdict]:
    """The verdicts by what `go test -json` printed: a line for each event. Parts of a test count
    for themselves; one that ends the process has not ended.
    """
    found: dict[str, Verdict] = {}
    for line in said.splitlines():
        event = json.loads(line) if line.startswith("{") and line.endswith("}") else {}
        if (name := event.get("Test")) is None:
            continue
        if event["Action"] == "run":
            found[name] = Verdict.UNFINISHED
        elif event["Action"] in VERDICTS:
            found[name] = VERDICTS[event["Action"]]
    return found
