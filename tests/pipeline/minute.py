"""A minute of real traffic of three tenants through a gateway to a cluster, one of them noisy.

What is planted:

- a flood of `NOISY` by many producers, so that acme gets less than it sends of a limit that all
  share; globex sends so little that it has its part of the limit all the time;
- a subscription that has read a part of a topic and is left, and one that never read it;
- a network that guesses credentials until it comes in, and one that never does;
- clients at home whose token has expired, which is a mistake.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.clients.programs import Program
from tests.real.brokers.cluster import Cluster
from tests.real.brokers.tokens import Authority, forged
from tests.real.clients import (
    EARLIEST,
    RECEIVE_MS,
    Client,
    Consumer,
    Producer,
    close_client,
    open_client,
    receive_until_silent,
)
from tests.real.frames import Connection, Kind

NOISY, HELD, SMALL = TENANTS = ("initech", "acme", "globex")

ORDERS = {it: f"persistent://{it}/web/orders" for it in TENANTS}
"""A topic of each tenant; that of acme has partitions."""

PARTITIONS = 2

ARCHIVE = "persistent://acme/web/archive"
LEFT, UNREAD = "left behind", "never read"

RULES = """\
version: 1
rules:
  - id: everybody
    limit: {publish: {bytes: 400kB/s}}
"""

CALM_S, FLOOD_S, AFTER_S = 24.0, 9.0, 3.0

SLOT_S = 3
"""In which neighbours are compared: eight are calm."""

EACH_S = 0.05
"""Between messages. With `BYTES` of each a tenant sends 20 kB/s."""

COUNT = round((CALM_S + FLOOD_S + AFTER_S) / EACH_S)
"""Messages of a tenant, besides the flood."""

BYTES, LOUD_BYTES = 1_000, 4_000
"""Of a message, and of one of the flood."""

LOUD = 60
"""Producers of the flood. A limit is divided evenly, so that each producer gets 6 kB/s."""

ARCHIVED, READ = 200, 50
"""Messages of the archive, and those that are read of it."""

GUESSERS, SPRAYERS = "127.0.66.0/24", "127.0.67.0/24"
HOME = "127.0.0.0/24"
"""Networks of those who fail. All clients of the traffic are at home."""

TRIES = 10
"""From one address. After these a gateway lets it wait for ever longer."""

GUESSED = "initech-import"
"""The principal of the token that the guessers have in the end."""

FAILURES = {SPRAYERS: 50, GUESSERS: 40, HOME: 120}


@dataclass(frozen=True)
class Ways:
    """How clients reach a gateway. `url`: through a tap. `own_url`: its own, for those whose
    address it must see. `program`: a client in another language."""

    url: str
    own_url: str
    authority: Authority
    program: Program
    logs: Path

    def opened(self, principal: str) -> Client:
        return open_client(self.url, self.authority.token(principal))


def prepare(cluster: Cluster) -> None:
    """Create the tenants. What is acknowledged is kept."""
    keep = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    for tenant in TENANTS:
        cluster.admin.create_tenant(tenant)
        cluster.admin.create_namespace(f"{tenant}/web")
        cluster.admin.request("POST", f"admin/v2/namespaces/{tenant}/web/retention", keep)
    cluster.admin.create_partitioned_topic(ORDERS[HELD], PARTITIONS)


def run(ways: Ways) -> None:
    """Do all of it. Every message of `ORDERS` is received."""
    with ExitStack() as running:
        acme, reports, initech = (
            _closed_by(running, ways.opened(it)) for it in ("acme-web", "reports", GUESSED)
        )
        consumers = [
            _subscribed(reports, ORDERS[HELD], "reports"),
            _subscribed(reports, ORDERS[NOISY], "reports"),
            _subscribed(initech, ORDERS[NOISY], "import"),
        ]
        with _in_another_language(ways, ORDERS[SMALL]):
            _leave_behind(acme)
            _send_all(acme, initech)
        for consumer in consumers:
            receive_until_silent(consumer)
    _attack(ways)


def _closed_by(running: ExitStack, client: Client) -> Client:
    running.callback(close_client, client)
    return client


def _subscribed(client: Client, topic: str, name: str) -> Consumer:
    return client.subscribe(topic, name, initial_position=EARLIEST)


def _leave_behind(client: Client) -> None:
    left = _subscribed(client, ARCHIVE, LEFT)
    _subscribed(client, ARCHIVE, UNREAD).close()
    producer = client.create_producer(ARCHIVE)
    for _ in range(ARCHIVED):
        producer.send(b"x" * BYTES)
    # All of it, as a message that crosses the consumer's close is counted by nobody.
    for message in [left.receive(RECEIVE_MS) for _ in range(ARCHIVED)][:READ]:
        left.acknowledge(message)
    left.close()


@contextmanager
def _in_another_language(ways: Ways, topic: str) -> Iterator[None]:
    """Send and receive by programs, and see that everything arrives."""
    program, token = ways.program, ways.authority.token("globex-batch")
    to, by = ways.logs / "consumer.log", ways.logs / "producer.log"
    each = round(EACH_S * 1000)
    with (
        program.consuming(ways.url, topic, "batch", COUNT, to, token=token) as consumer,
        program.producing(ways.url, topic, COUNT, by, interval_ms=each, token=token) as producer,
    ):
        consumer.await_ready()
        producer.await_ready()
        yield
        assert producer.sent().acknowledged == set(range(COUNT))
        assert consumer.received().received == set(range(COUNT))


def _send_all(acme: Client, initech: Client) -> None:
    """Send at a steady rate, and meanwhile for some seconds as much as passes."""
    steady = (
        acme.create_producer(ORDERS[HELD]),
        initech.create_producer(
            ORDERS[NOISY], batching_enabled=True, batching_max_publish_delay_ms=200
        ),
    )
    threads = [threading.Thread(target=_paced, args=(it,)) for it in steady]
    for it in threads:
        it.start()
    time.sleep(CALM_S)
    loud = [
        initech.create_producer(ORDERS[NOISY], max_pending_messages=2, block_if_queue_full=True)
        for _ in range(LOUD)
    ]
    _flood(loud, time.monotonic() + FLOOD_S)
    for it in threads:
        it.join()


def _paced(producer: Producer) -> None:
    began = time.monotonic()
    for number in range(COUNT):
        time.sleep(max(0.0, began + number * EACH_S - time.monotonic()))
        producer.send_async(b"x" * BYTES, None)
    producer.flush()


def _flood(producers: list[Producer], ends: float) -> None:
    while time.monotonic() < ends:
        for it in producers:
            it.send_async(b"x" * LOUD_BYTES, None)
    for it in producers:
        it.flush()
        it.close()


# -- who fails ---------------------------------------------------------------------------------


def _attack(ways: Ways) -> None:
    guess, old = forged(GUESSED, b"a guess"), ways.authority.expired("acme-web")
    for network, token in ((SPRAYERS, guess), (GUESSERS, guess), (HOME, old)):
        for number in range(FAILURES[network]):
            assert _answer(ways, _address(network, number), token) == Kind.ERROR
    right = ways.authority.token(GUESSED)
    assert _answer(ways, _address(GUESSERS, FAILURES[GUESSERS]), right) == Kind.CONNECTED


def _address(network: str, number: int) -> str:
    """Return whence that try is made; the first address is left to the clients of the traffic."""
    return network.replace(".0/24", f".{2 + number // TRIES}")


def _answer(ways: Ways, source: str, token: str) -> int | None:
    with Connection(ways.own_url, source=source) as connection:
        answer = connection.connect(token)
        return None if answer is None else answer.kind
