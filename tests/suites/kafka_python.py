"""kafka-python's own tests: its integration tests."""

import os
import re
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tests.apache_kafka.broker import VERSION as KAFKA_VERSION
from tests.real.brokers.jars import Say, filled_once, run_tool
from tests.support.differences import Verdict

from .suite import Run, copied, output_of
from .systems import ApacheKafka, System

VERSION = "3.0.12"
SECONDS = 500
"""The tests take about a minute."""
TESTS = "test/integration"
OWN_BROKERS = ("test_sasl_integration.py", "test_ssl_integration.py")
"""Files whose tests start brokers by themselves."""

SERVICE = """\
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def dump_logs(self):
        pass


class SpawnedService:
    def __init__(self, args=None, env=None):
        raise NotImplementedError
"""
"""The module `test.service`, which the archive lacks: what stands for a broker of others."""

BROKER = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
group.min.session.timeout.ms=1000
"""
"""Some tests set permissions, and one has short sessions."""

LISTED = re.compile(rf"^{TESTS}/(\S+::.+)$", re.MULTILINE)
RESULT = re.compile(rf"^{TESTS}/(\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", re.MULTILINE)
VERDICTS = {"PASSED": Verdict.PASSED, "SKIPPED": Verdict.SKIPPED}


class KafkaPython:
    client = f"kafka-python {VERSION}"
    # A test writes replicas on broker 0.
    system: System = ApacheKafka(BROKER, id=0)

    def sources(self, say: Say) -> Path:
        def fetch(into: Path) -> None:
            say("fetching kafka-python by pip ...")
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            pip += ["--no-binary", "kafka-python", "--dest", str(into), f"kafka-python=={VERSION}"]
            run_tool("pip", pip)
            with tarfile.open(next(into.glob("*.tar.gz"))) as archive:
                archive.extractall(into / "unpacked", filter="data")
            copied(next((into / "unpacked").iterdir()), into / "library")
            (into / "library" / "test" / "__init__.py").touch()
            (into / "library" / "test" / "service.py").write_text(SERVICE)

        return filled_once(f"kafka-python-suite-{VERSION}", fetch) / "library"

    def run(self, sources: Path, run: Run) -> Mapping[str, Verdict]:
        env = os.environ | {
            "KAFKA_URI": f"kafka://{run.at.broker}",
            "KAFKA_VERSION": KAFKA_VERSION,
            "KAFKA_ROOT": str(sources),
            "PYTHONPATH": str(sources),
        }
        test = [sys.executable, "-m", "pytest", "-o", "addopts=", "-p", "no:cacheprovider", TESTS]
        test += [f"--ignore={TESTS}/{name}" for name in OWN_BROKERS]
        test += ["-k", run.only] * bool(run.only)
        listing = [*test, "--collect-only", "-q"]
        listed = output_of(listing, sources, run.folder / "list.log", SECONDS, env)
        said = output_of([*test, "-v"], sources, run.folder / "tests.log", SECONDS, env)
        return parsed(listed, said)


def parsed(listed: str, said: str) -> dict[str, Verdict]:
    """Return the verdicts, parsed from pytest's list of tests and its line for each finished one.
    One that also fails at its end has failed."""
    found = dict.fromkeys(LISTED.findall(listed), Verdict.UNFINISHED)
    for name, word in RESULT.findall(said):
        if found.get(name) != Verdict.FAILED:
            found[name] = VERDICTS.get(word, Verdict.FAILED)
    return found
