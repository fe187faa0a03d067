"""franz-go's own tests: those of its package `kgo` that need a broker."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tests.real.brokers.jars import Say, filled_once, run_tool, tool
from tests.support.differences import Verdict

from .go import Tests, fetched
from .suite import Run
from .systems import ApacheKafka, System

MODULE, VERSION = "github.com/twmb/franz-go", "v1.22.3"
PACKAGE = "pkg/kgo"
SECONDS = 300
"""For one test; the chains of groups take up to two minutes, all others up to 30 s."""
SETTINGS = {"KGO_TEST_RF": "1", "KGO_TEST_RECORDS": "2000", "KGO_TEST_UNSAFE": "1"}
"""One broker; few records for each chain; transactions that begin while another one ends."""

DELIVERIES = 10
"""How often a share group gives a record out before it archives it, the most that brokers allow.
Consumers of TestShareGroupETL release what they have got, and are ended with what they have
buffered: up to five times, the default, so that the test would miss records, however it connects.
"""

TEST = re.compile(r"^func (Test\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"\b(?:newTestClient|testClientOpts|getSeedBrokers|tmpTopic\w*|adm)\(")
"""What a test calls that needs a broker."""


class Franz:
    client = f"franz-go {VERSION}"
    system: System = ApacheKafka(f"group.share.delivery.count.limit={DELIVERIES}\n")

    def sources(self, say: Say) -> Path:
        """Fetch and build them."""
        go = tool("go")

        def fetch(into: Path) -> None:
            say("fetching franz-go by go, and building its tests ...")
            fetched(MODULE, VERSION, into / "module")
            build = [go, "test", "-c", "-o", str(into / "tests"), f"./{PACKAGE}"]
            run_tool("go", build, cwd=into / "module")

        return filled_once(f"franz-suite-{VERSION}", fetch)

    def run(self, sources: Path, run: Run) -> Mapping[str, Verdict]:
        package = sources / "module" / PACKAGE
        needing = {name for file in package.glob("*_test.go") for name in needs(file.read_text())}
        env = os.environ | SETTINGS | {"KGO_SEEDS": run.at.broker}
        tests = Tests(sources / "tests", package, run.folder, env)
        chosen = (name for name in tests.names(run.only or ".") if name in needing)
        return tests.verdicts(chosen, SECONDS)


def needs(source: str) -> list[str]:
    """Return the names of a file's tests that need a broker."""
    return [test[1] for test in TEST.finditer(source) if NEEDS.search(test[0])]
