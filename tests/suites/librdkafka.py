"""librdkafka's own tests: those that need a broker. They come with the library's sources in a
package for Node.js, which binds to it."""

import os
import re
import tarfile
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.apache_kafka.broker import VERSION as KAFKA_VERSION
from tests.real.brokers.jars import Say, filled_once, run_tool, tool
from tests.support.differences import Verdict

from .suite import Run, output_of, rewritten
from .systems import ApacheKafka, System

PACKAGE, PACKAGE_VERSION = "@confluentinc/kafka-javascript", "1.10.1"
VERSION = "2.15.1"
"""Of the library in that package."""
CONFIGURE = ("--no-download", "--disable-gssapi", "--disable-curl")
"""What it does not need to meet a broker, so that no other library has to be there."""
OPTIONS = ("-L", "-p1")
"""No tests with brokers in memory alone; one after the other."""
SECONDS = 800
"""For the tests of one number; one takes eleven minutes, most less than one."""
AT_ONCE = 4
"""How many of these run; mostly they wait."""

BROKER = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
num.partitions=4
group.initial.rebalance.delay.ms=3000
group.share.min.record.lock.duration.ms=1000
"""
"""What tests count on; some set permissions."""
ONE_BROKER = {", 3, 5000)": ", 1, 5000)"}
"""The replicas of topics that tests of transactions create."""

TEST = re.compile(r"\b_TEST\((\d{4}\w+),((?:(?!_TEST\().)*)", re.DOTALL)
RESULT = re.compile(r"= Test (\w+) (PASSED|FAILED|SKIPPED) =")
FAILED = re.compile(r"### Test \"(\w+)[^\"]*\" failed at ")
VERDICTS = {"PASSED": Verdict.PASSED, "FAILED": Verdict.FAILED, "SKIPPED": Verdict.SKIPPED}
LEFT_OUT = re.compile(r"\bTEST_F_(?:LOCAL|MANUAL|KNOWN_ISSUE)\b|\.scenario = \"(?!default)")
"""What marks a test that the runner leaves out: it needs no broker, or another one than others, or
is known to fail."""


class Librdkafka:
    client = f"librdkafka {VERSION}"
    system: System = ApacheKafka(BROKER)

    def sources(self, say: Say) -> Path:
        """Fetch and build them."""
        npm, make = tool("npm"), tool("make")
        tool("g++")

        def fetch(into: Path) -> None:
            say("fetching librdkafka by npm, and building it and its tests (4 minutes) ...")
            run_tool("npm", [npm, "pack", "--silent", f"{PACKAGE}@{PACKAGE_VERSION}"], cwd=into)
            with tarfile.open(next(into.glob("*.tgz"))) as archive:
                archive.extractall(into / "unpacked", filter="data")
            found, library = into / "unpacked" / "package" / "deps", into / "library"
            rewritten(found / "librdkafka", library, ".c", ONE_BROKER)
            run_tool("configure", ["./configure", *CONFIGURE], cwd=library)
            run_tool("make", [make, f"-j{os.cpu_count()}", "libs"], cwd=library)
            run_tool("make", [make, f"-j{os.cpu_count()}", "build"], cwd=library / "tests")

        return filled_once(f"librdkafka-suite-{VERSION}", fetch) / "library"

    def run(self, sources: Path, run: Run) -> Mapping[str, Verdict]:
        settings = run.folder / "test.conf"
        settings.write_text(f"bootstrap.servers={run.at.broker}\ntest.timeout.multiplier=2\n")
        env = os.environ | {
            "RDKAFKA_TEST_CONF": str(settings),
            "TEST_KAFKA_VERSION": KAFKA_VERSION,
            "LD_LIBRARY_PATH": f"{sources / 'src'}:{sources / 'src-cpp'}",
        }
        tests = sources / "tests"

        def verdicts(number: str, names: Iterable[str]) -> Mapping[str, Verdict]:
            log = run.folder / f"{number}.log"
            command = [str(tests / "test-runner"), *OPTIONS]
            output_of(command, tests, log, SECONDS, env | {"TESTS": number})
            return parsed(names, log.with_suffix(".err").read_text(errors="replace"))

        chosen = numbered(needing((tests / "test.c").read_text()), run.only)
        with ThreadPoolExecutor(AT_ONCE) as workers:
            found = workers.map(verdicts, chosen, chosen.values())
            return dict(ChainMap(*map(dict, found)))


def needing(listing: str) -> list[str]:
    """Return the names of the tests that need a broker, from the source that lists all."""
    found = TEST.findall(listing)
    return [name for name, marks in found if not (LEFT_OUT.search(marks) or "_mock" in name)]


def numbered(names: Iterable[str], only: str) -> Mapping[str, list[str]]:
    """Return the tests with a text in their name by the number with which they begin: the runner
    runs all tests of a number, and one that hangs ends them all."""
    found = defaultdict(list)
    for name in names:
        if only in name:
            found[name[:4]].append(name)
    return found


def parsed(names: Iterable[str], said: str) -> dict[str, Verdict]:
    """Return the verdicts of these tests, parsed from what the runner says."""
    ended = {name: VERDICTS[word] for name, word in RESULT.findall(said)}
    ended |= dict.fromkeys(FAILED.findall(said), Verdict.FAILED)
    return {name: ended.get(name, Verdict.UNFINISHED) for name in names}
