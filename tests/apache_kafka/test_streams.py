"""Kafka Streams through the gateway: counts are exact, whatever happens to it."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.gateways import TAP, KafkaPlan, Tap
from tests.apache_kafka.traffic import Traffic
from tests.apache_kafka.working import PATIENCE_S
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say, digest, filled_once, java, run_tool, tool
from tests.real.brokers.processes import tail
from tests.real.fixtures import StartGateway, or_skip
from tests.real.gateways import Gateway

pytestmark = pytest.mark.real

SOURCE = Path(__file__).with_name("Counting.java")
SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
LOGGED = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)
REMAINDERS = 7
QUICK = """\
group.streams.initial.rebalance.delay.ms=0
group.streams.min.heartbeat.interval.ms=500
group.streams.heartbeat.interval.ms=500
"""


@pytest.fixture(scope="module")
def broker(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    made = or_skip(lambda say: Kafka(artifacts.directory("kafka-streams"), say, QUICK), say)
    made.start()
    yield made
    made.stop()


def _classes(broker: Kafka) -> Path:
    """Raises MissingToolError without Java's compiler, FetchError."""

    def compile_into(into: Path) -> None:
        command = [tool("javac"), "-d", str(into), "-cp", f"{broker.jars}/*", str(SOURCE)]
        run_tool("javac", command)

    return filled_once(f"kafka-counting-{digest(SOURCE.read_bytes())}", compile_into)


class Counting:
    """A context in which an application runs, see `Counting.java`."""

    def __init__(self, broker: Kafka, folder: Path, say: Say, *arguments: str) -> None:
        classes = or_skip(lambda _: _classes(broker), say)
        command = [java(), *SMALL, *LOGGED, "-cp", f"{broker.jars}/*:{classes}", "Counting"]
        self._log = folder / "counting.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, *arguments, str(REMAINDERS), str(folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
            )  # fmt: skip

    def __enter__(self) -> Self:
        self._await_running()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _await_running(self) -> None:
        assert self._process.stdout
        assert self._process.stdout.readline() == "running\n", tail(self._log)

    def again(self) -> None:
        """End it, and return when another one counts, which has its counts from their changelog."""
        assert self._process.stdin
        self._process.stdin.write("again\n")
        self._await_running()

    def end(self) -> None:
        """End it in good order."""
        self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0, tail(self._log)


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_counts_are_exact_and_no_broker_is_seen(
    broker: Kafka, gateway: StartGateway, tmp_path: Path, say: Say, protocol: str
) -> None:
    """`streams`: the group's protocol in which brokers assign tasks and make topics (KIP-1071)."""
    plan = KafkaPlan(host=TAP)
    started = gateway(broker, plan)
    tap, address = Tap(started, plan), f"{TAP}:{started.port}"
    name = f"s-{uuid.uuid4().hex[:8]}"
    topics = (f"{name}-numbers", f"{name}-counts")
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(it, 3, 1) for it in topics]).values():
        made.result(PATIENCE_S)
    with (
        Counting(broker, tmp_path, say, address, name, protocol, *topics) as counting,
        Traffic(address, *topics) as traffic,
    ):
        traffic.go_on()
        _restart(started, started.stop)
        traffic.go_on()
        _restart(started, started.kill)
        traffic.go_on()
        counting.again()
        traffic.go_on()
        assert name in _groups(broker, address, protocol)
        traffic.end()
        counting.end()
    tap.close()
    assert traffic.failed == []
    assert traffic.lost_and_doubled == (0, 0)
    assert set(traffic.received) == _counts(traffic.sent)
    assert broker.traces[0].encode() not in tap.told


def _groups(broker: Kafka, address: str, protocol: str) -> list[str]:
    """Return the groups of a protocol, as Kafka's own tool lists them."""
    lists = "org.apache.kafka.tools.GroupsCommand"
    command = [java(), *SMALL, "-cp", f"{broker.jars}/*", lists]
    command += ["--bootstrap-server", address, "--list", "--group-type", protocol]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return [line.split(" ")[0] for line in done.stdout.splitlines()]


def _restart(gateway: Gateway, ends: Callable[[], None]) -> None:
    ends()
    gateway.start()


def _counts(sent: int) -> set[bytes]:
    """Return what an application says in all of the numbers up to this one."""
    return {
        b"%d %d" % (remainder, count)
        for remainder in range(REMAINDERS)
        for count in range(1, len(range(remainder, sent, REMAINDERS)) + 1)
    }
