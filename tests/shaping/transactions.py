"""Producers in transactions under a limit: no message is lost or doubled, and no transaction fails
because of the limit."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.clients.builders import BUILDERS
from tests.clients.programs import Program
from tests.real.brokers.jars import Say, pulsar_jars
from tests.real.brokers.standalone import Standalone
from tests.real.clients import wait_until
from tests.real.fixtures import has_coordinators
from tests.real.metrics import scrape, total
from tests.shared.transactions import Taken, take_over

from .results import Trial
from .scenarios import Limit
from .ways import limited

RATES = (5.0, 50.0)
SECONDS = 20.0
OFFERED = 1.2
"""Multiple of the rate, and a third more for aborted messages: the surplus passes after the end."""
TARGET = "target*"
"""The topic to which transactions send."""


def measure(folder: Path, say: Say, *, short: bool) -> Iterator[Trial]:
    """Measure each client and limit in turn, on a broker with a transaction coordinator."""
    jars, programs = pulsar_jars(say), [build(say) for build in BUILDERS.values()]
    extra = {"transactionCoordinatorEnabled": "true"}
    broker = Standalone(jars, folder / "broker", extra=extra)
    broker.start()
    try:
        wait_until(lambda: has_coordinators(broker))
        for program in programs[:1] if short else programs:
            for rate in RATES[1:] if short else RATES:
                yield _trial(program, rate, broker, folder)
    finally:
        broker.stop()


def _trial(program: Program, rate: float, broker: Standalone, folder: Path) -> Trial:
    at = datetime.now(UTC)
    here = folder / f"{at:%H%M%S}-{program.name}"
    here.mkdir()
    limit = Limit(rate)
    with limited(broker, limit, here, TARGET) as gateway:
        began = time.monotonic()
        taken = take_over(
            program,
            broker,
            gateway.untapped_url,
            here,
            interval_ms=int(1000 / (OFFERED * rate)),
            meanwhile=lambda _source, _target: time.sleep(SECONDS),
        )
        took = time.monotonic() - began
        text = scrape(gateway.metrics_url)
        facts = _facts(taken, took) | {
            "ended": total(text, "gateway_connections_ended_total", reason="client_lost")
        }
    who = ("transactions", "in transactions", program.name, "gateway")
    stamp = at.isoformat(timespec="seconds")
    return Trial(*who, stamp, rate, limit.unit.value, elapsed=took, facts=facts)


def _facts(taken: Taken, took: float) -> dict[str, float]:
    """Return the facts. `passed`: messages a second of the target, from the start to the end of
    all."""
    done, received = taken.transacted, taken.received
    return {
        "moved": len(done.moved),
        "missing": len(taken.sent.acknowledged - taken.arrived),
        "doubled": received.stored_twice,
        "committed": done.committed,
        "aborted": done.aborted,
        "failed": done.failed,
        "longest": done.longest_ms / 1000,
        "took": took,
    }
