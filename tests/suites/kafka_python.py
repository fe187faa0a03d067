"""kafka-python's own tests: its integration tests."""

import os
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tests.apache_kafka.broker import VERSION as KAFKA_VERSION
from tests.real.brokers.jars import Say, filled_once, run_tool
from tests.support.differences import Verdict

from .pytests import Tests
from .suite import Run, copied
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
        options = [TESTS, *(f"--ignore={TESTS}/{name}" for name in OWN_BROKERS)]
        return Tests(sources, TESTS, options, run.folder, SECONDS).verdicts(run.only, env)
