"""`python -m tests.suites`: runs the client libraries' own tests directly and through a gateway,
and prints their verdicts and differences.

Each way has a broker of its own. The exit status is 1 if a test
passes directly and fails through the gateway.
"""

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import FetchError, MissingToolError
from tests.real.configurations import PLAIN, configured
from tests.real.gateways import HOST, Gateway
from tests.support.differences import DIRECT, Results, Verdict
from tests.support.progress import say

from .aiokafka import Aiokafka
from .franz import Franz
from .go import Go
from .kafka_python import KafkaPython
from .librdkafka import Librdkafka
from .rust import Rust
from .suite import Addresses, Run, Suite

SUITES: Mapping[str, Suite] = {
    "rust": Rust(),
    "go": Go(),
    "franz": Franz(),
    "kafka-python": KafkaPython(),
    "librdkafka": Librdkafka(),
    "aiokafka": Aiokafka(),
}
BUILD = Path(__file__).resolve().parents[2] / "build" / "suites"
THROUGH = "through"
WAYS = (DIRECT, THROUGH)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    options = _options(arguments)
    artifacts = Artifacts()
    try:
        return max(_played(name, options, artifacts) for name in options.only or ["rust"])
    finally:
        artifacts.discard()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__)
    parser.add_argument("--only", action="append", choices=SUITES, help="these suites (rust)")
    parser.add_argument("--tests", default="", metavar="TEXT", help="whose name has this in it")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run them N times")
    parser.add_argument("--configuration", default=PLAIN, help="of the gateway, as mask+far")
    return parser.parse_args(arguments)


def _played(name: str, options: argparse.Namespace, artifacts: Artifacts) -> int:
    """Run one suite, and return its exit status; a suite without its tools is skipped."""
    suite, results = SUITES[name], Results(WAYS)
    try:
        suite.system.fetch(say)
        sources = suite.sources(say)
        for number in range(options.repeat):
            for way in WAYS:
                say(f"{suite.client}, {way}, run {number + 1} of {options.repeat}")
                for test, verdict in _run(suite, way, sources, options, artifacts).items():
                    results.add(test, way, verdict)
    except MissingToolError as missing:
        say(f"skipped {name}: {missing}")
        return 0
    except FetchError as error:
        say(f"{name}: {error}")
        return 1
    return _told(suite, results)


def _run(
    suite: Suite, way: str, sources: Path, options: argparse.Namespace, artifacts: Artifacts
) -> Mapping[str, Verdict]:
    """Run the suite once with a broker (and a gateway) of its own, and return the verdicts."""
    folder = BUILD / f"{suite.client.replace(' ', '-')}-{way}"
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        brokers = suite.system.serving(artifacts.directory(f"broker-{way}"), say)
        serving = running.enter_context(brokers)
        address = serving.broker.service_url.partition("://")[2]
        if way == THROUGH:
            plan = configured(options.configuration, None, suite.system.plan())
            gateway = Gateway(serving.broker, plan, artifacts.directory("gateway"))
            gateway.start()
            running.callback(shutil.copy, gateway.log, folder)
            running.callback(gateway.stop)
            address = f"{HOST}:{gateway.port}"
        return suite.run(sources, Run(Addresses(address, serving.web), folder, options.tests))


def _told(suite: Suite, results: Results) -> int:
    print(f"\n{results.table(results.tests)}\n\n{suite.client}\n{results.totals()}")
    differing = [test for test in results.tests if results.differ(test)]
    print(f"\ndifferences:\n{results.table(differing)}" if differing else "\nno differences")
    worse = results.worse(THROUGH)
    print("\n".join(f"passes directly, fails through the gateway: {test}" for test in worse))
    print(f"logs: {BUILD.relative_to(Path.cwd()) if BUILD.is_relative_to(Path.cwd()) else BUILD}")
    return 1 if worse or not results.tests else 0


if __name__ == "__main__":
    sys.exit(main())
