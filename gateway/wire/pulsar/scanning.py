"""Makes the scanners of a connection, and says what sessions use of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gateway.wire.account import Account
from gateway.wire.contract import Scanner
from gateway.wire.pulsar.counts import CountChecks
from gateway.wire.pulsar.idtable import Key
from gateway.wire.pulsar.to_broker import ToBrokerScanner
from gateway.wire.pulsar.to_client import ToClientScanner


class ProducerScanner(Scanner, Protocol):
    """Scans the frames of a client. SENDs of open producers are counted, and forwarded while the
    producer's account has allowance; all other SENDs are stop frames. The permits in FLOWs of open
    consumers are counted, unless FLOWs are stop frames."""

    def open_producer(self, producer_id: int, account: Account) -> None:
        """From now on forward SENDs of this producer, while its account has allowance."""

    def close_producer(self, producer_id: int) -> None:
        """From now on treat each SEND of this producer as a stop frame."""

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`."""

    @property
    def damaged(self) -> bytes:
        """Return the head of a SEND whose checksum was wrong at its end; empty if there is none.
        The connection ends because of it."""

    def compared(self) -> None:
        """The session has compared the count of a SEND that stopped."""

    def go_on(self, head: bytes, account: Account | None) -> None:
        """Let the rest of a large SEND pass, whose `head` stopped. `account`: of its producer; None
        if the rest is dropped."""

    def is_damaged(self, frame: bytes) -> bool:
        """Return whether a whole SEND has a wrong checksum; False if checksums are not verified."""


class ConsumerScanner(Scanner, Protocol):
    """Scans the frames of a broker: counts the MESSAGEs of open consumers and the receipts of open
    producers. MESSAGEs of unknown consumers are forwarded too, and counted together in one account;
    receipts of unknown producers are forwarded and not counted."""

    def open_consumer(self, consumer_id: int, account: Account) -> None:
        """From now on count MESSAGEs of this consumer in its account."""

    def close_consumer(self, consumer_id: int) -> None:
        """From now on count MESSAGEs of this consumer in the account of unknown consumers."""

    def open_producer(self, producer_id: int, account: Account) -> None:
        """From now on count receipts of this producer in its account."""

    def close_producer(self, producer_id: int) -> None:
        """From now on do not count receipts of this producer."""


Scanners = tuple[ProducerScanner, ConsumerScanner]


def load(*, verify: bool) -> None:
    """Import the modules that `scanners` needs, before the first connection: an import later would
    fail if a connection has taken the process's last file descriptor. `verify`: see `scanners`."""
    if verify:
        import crc32c  # noqa: F401


def scanners(
    actions: tuple[bytes, bytes],
    unknown: Account,
    command_bound: int,
    checks: CountChecks | None,
    *,
    collected: int,
    verify: bool,
) -> Scanners:
    """Return the scanners of a new connection.

    `actions`: the action for each command type, by direction. `unknown`: the account that counts
    MESSAGEs of consumers that are not open. `command_bound`: most bytes of a command. `checks`:
    compares the counts of SENDs with those of their batches; None if no rule limits messages.
    `collected`: bytes of the largest SEND that is collected whole if it stops. `verify`: verify the
    checksums of messages.
    """
    to_broker, to_client = actions
    consumers: dict[Key, Account] = {}  # one asks, the other gets
    sums: Callable[..., int] | None = None
    if verify:
        from crc32c import crc32c as sums  # a library of its own, so imported only if used
    return (
        ToBrokerScanner(to_broker, command_bound, checks, consumers, sums, collected),
        ToClientScanner(to_client, unknown, command_bound, consumers, sums),
    )
