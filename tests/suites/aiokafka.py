"""aiokafka's own tests: those that need a broker, run with the aiokafka that is installed. No
package has them, so a checkout of the library is named by AIOKAFKA_CHECKOUT."""

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from tests.apache_kafka.broker import VERSION as KAFKA_VERSION
from tests.real.brokers.jars import MissingToolError, Say
from tests.support.differences import Verdict

from .pytests import Tests
from .suite import Run, copied
from .systems import ApacheKafka, System

VERSION = version("aiokafka")
"""The one that is installed, which the checkout has to be of too."""
SECONDS = 900
CHECKOUT = "AIOKAFKA_CHECKOUT"
TESTS = "tests"
FILES = (
    "admin",
    "client",
    "conn",
    "consumer",
    "coordinator",
    "pep492",
    "producer",
    "sender",
    "transactional_consumer",
    "transactional_producer",
)
"""Those whose tests need a broker, but that of SASL, which needs Kerberos too."""

SETTINGS = "[pytest]\nmarkers = ssl: needs TLS\n"
CONFTEST = '''\
"""In place of the library's own, which starts a broker in a container."""

import asyncio
import os
from pathlib import Path

import pytest

HOST, PORT = os.environ["SUITE_BROKER"].split(":")


@pytest.fixture(scope="class")
def loop():
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield made
    made.close()
    asyncio.set_event_loop(None)


@pytest.fixture(scope="class")
def setup_test_class(request, loop):
    tests = request.cls
    tests.loop, tests.ssl_folder = loop, Path()
    tests.kafka_host, tests.kafka_port = HOST, int(PORT)
    tests.hosts = [f"{HOST}:{PORT}"]
    tests.kafka_version = os.environ["SUITE_VERSION"]
'''


class Aiokafka:
    client = f"aiokafka {VERSION}"
    # A test connects to broker 0.
    system: System = ApacheKafka("num.partitions=2\n", id=0)

    def sources(self, say: Say) -> Path:
        checkout = Path(os.environ.get(CHECKOUT, ""))
        if not (checkout / TESTS / "_testutil.py").exists():
            raise MissingToolError(f"a checkout of aiokafka {VERSION}", f"is not in {CHECKOUT}")
        return checkout

    def run(self, sources: Path, run: Run) -> Mapping[str, Verdict]:
        tests = run.folder / TESTS
        copied(sources / TESTS, tests)
        (tests / "conftest.py").write_text(CONFTEST)
        settings = run.folder / "pytest.ini"
        settings.write_text(SETTINGS)
        env = os.environ | {"SUITE_BROKER": run.at.broker, "SUITE_VERSION": KAFKA_VERSION}
        options = ["-c", str(settings), "-m", "not ssl"]
        options += [f"{TESTS}/test_{name}.py" for name in FILES]
        return Tests(run.folder, TESTS, options, run.folder, SECONDS).verdicts(run.only, env)
