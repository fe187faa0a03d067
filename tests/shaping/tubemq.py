"""Limits of what clients of TubeMQ send and receive: how exact they are.

Clients in Java take all that they get, behind a gateway, a real master and two real brokers.
"""

import math
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.apache_kafka.greedy import READ, SENT
from tests.apache_kafka.limiting import ACTIONS, passed, rules_of
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.clients import Tube, produce
from tests.apache_tubemq.gateways import in_front_of
from tests.real.brokers.jars import Say
from tests.real.gateways import HOST, Gateway

from .results import Trial
from .scenarios import Unit

RATES, SHORT = (100.0, 500.0, 2000.0), (500.0,)
SECONDS = 10.0
STORED_SECONDS = 26
"""Seconds for which stored messages last, behind those of a burst."""

STORING_S = 120
"""Seconds that storing may take: the client waits for each of its messages."""

REPLY = 327_680
"""Bytes of messages that a broker reads for a reply."""

REPLIES = 300
"""Replies with what a limit lets pass in `SECONDS`: stored messages are so large that it takes as
many. A reply passes whole, so fewer would be a coarse measure."""

STARTING_S = 10.0
"""Seconds until several clients are at work, on two cores, and have used up what a limit lets pass
at once to those who sent less before."""

EACH, MOST_CLIENTS = 250.0, 4
"""Messages in a second that one client takes easily: it waits for each reply, so that one alone
comes to 1,500 or so. Eight are more than two cores bear beside the servers."""

ENDLESS = 10_000_000
"""Messages that no client comes to the end of."""


def measure(folder: Path, say: Say, *, short: bool) -> Iterator[Trial]:
    """Measure on real servers, one limit after the other."""
    rates = SHORT if short else RATES
    names = [_topic(kind, rate) for kind in ACTIONS for rate in rates]
    servers = TubeMQ(folder, say, topics=names)
    servers.start()
    try:
        for rate in rates:
            here = folder / f"{rate:.0f}"
            here.mkdir()
            yield from _limited(servers, rate, here)
    finally:
        servers.stop()


def _topic(kind: str, rate: float) -> str:
    return f"{kind}_{rate:.0f}"


def _limited(servers: TubeMQ, rate: float, folder: Path) -> Iterator[Trial]:
    gateway = Gateway(servers, in_front_of(servers, rules=rules_of(rate, folder)), folder)
    gateway.start()
    try:
        for kind in ACTIONS:
            yield _trial(servers, gateway, rate, kind)
    finally:
        gateway.stop()


def _trial(servers: TubeMQ, gateway: Gateway, rate: float, kind: str) -> Trial:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    topic, tube = _topic(kind, rate), Tube(servers.classpath)
    if kind == READ:
        size = int(REPLIES * REPLY / (rate * SECONDS))
        left = int(rate * STORED_SECONDS)
        while left > 0:  # a broker refuses what it cannot write fast enough
            sent = produce(tube, servers.master, topic, left, size, seconds=STORING_S).sent
            assert sent, "nothing is stored"
            left -= sent
    clients = min(MOST_CLIENTS, math.ceil(rate / EACH))
    with ExitStack() as stack:
        for _ in range(clients):
            stack.enter_context(_at_work(tube, kind, f"{HOST}:{gateway.port}", topic))
        time.sleep(STARTING_S if clients > 1 else 0)
        first, last = passed(gateway, [topic], SECONDS)
    found = (last.messages[topic] - first.messages[topic]) / (last.began - first.began)
    facts = {"passed": found, "off": found / rate - 1}
    return Trial("tubemq", kind, "java", "gateway", at, rate, Unit.MESSAGES.value, facts=facts)


@contextmanager
def _at_work(tube: Tube, kind: str, address: str, topic: str) -> Iterator[None]:
    """Have a client work until the block ends."""
    what = ["produce", address, topic] if kind == SENT else ["pull", address, topic, f"g_{topic}"]
    with subprocess.Popen(
        tube.command(*what, ENDLESS, receiving=ENDLESS),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as client:
        try:
            yield
        finally:
            client.kill()
