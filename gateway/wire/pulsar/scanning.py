"""Makes the scanners of a connection. Only this module knows which implementation scans.

Sessions use the protocols here. An implementation may replace another one if `tests/conformance`
cannot tell them apart.
"""

from __future__ import annotations

from typing import Protocol

from gateway.compiled import COMPILED
from gateway.wire.account import Account
from gateway.wire.contract import Scanner
from gateway.wire.pulsar.counts import CountChecks
from gateway.wire.pulsar.idtable import IdTable
from gateway.wire.pulsar.scan import ToBrokerScanner, ToClientScanner

if COMPILED:
    from gateway.wire.pulsar.compiled import compiled_scanners


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
        import gateway.wire.pulsar.checksums  # noqa: F401


def scanners(
    actions: tuple[tuple[int, ...], tuple[int, ...]],
    unknown: Account,
    command_bound: int,
    checks: CountChecks | None,
    *,
    verify: bool,
) -> Scanners:
    """Return the scanners of a new connection.

    `actions`: the action for each command type, by direction. `unknown`: the account that counts
    MESSAGEs of consumers that are not open. `command_bound`: the most bytes of a command. `checks`:
    compares the message counts that SENDs state with the real ones; None: they are not compared.
    `verify`: verify the checksums of messages.
    """
    to_broker, to_client = actions
    if COMPILED and not verify:
        return compiled_scanners(actions, unknown, command_bound, checks)
    consumers: IdTable[Account] = IdTable()  # one asks, the other gets
    if not verify:
        return (
            ToBrokerScanner(to_broker, command_bound, checks, consumers),
            ToClientScanner(to_client, unknown, command_bound, consumers),
        )
    # Needs a library of its own, so it is imported only if it is used; see `load`.
    from gateway.wire.pulsar.checksums import VerifyingToBrokerScanner, VerifyingToClientScanner

    return (
        VerifyingToBrokerScanner(to_broker, command_bound, checks, consumers),
        VerifyingToClientScanner(to_client, unknown, command_bound, consumers),
    )
