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
    """Scans the frames of a client. SENDs of open producers are counted and pass while their
    accounts have allowance; all other SENDs are stop frames. The permits of open consumers' FLOWs
    are counted unless FLOWs are stop frames.
    """

    def open_producer(self, producer_id: int, account: Account) -> None:
        """Let SENDs of this producer pass from now on, while its account has allowance."""

    def close_producer(self, producer_id: int) -> None:
        """Stop at SENDs of this producer from now on."""

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`."""

    def is_damaged(self, frame: bytes) -> bool:
        """Return whether a whole SEND has a wrong checksum; False if checksums are not verified."""


class ConsumerScanner(Scanner, Protocol):
    """Scans the frames of a broker: counts the MESSAGEs of open consumers and the receipts of open
    producers. Other MESSAGEs pass too, and count for the account of unknown consumers; other
    receipts pass uncounted.
    """

    def open_consumer(self, consumer_id: int, account: Account) -> None:
        """Count MESSAGEs of this consumer for its account from now on."""

    def close_consumer(self, consumer_id: int) -> None:
        """Count MESSAGEs of this consumer for the unknown account from now on."""

    def open_producer(self, producer_id: int, account: Account) -> None:
        """Count receipts of this producer for its account from now on."""

    def close_producer(self, producer_id: int) -> None:
        """Count no receipts of this producer from now on."""


Scanners = tuple[ProducerScanner, ConsumerScanner]


def load(*, verify: bool) -> None:
    """Import the modules that `scanners` needs before any connection: a connection that has the
    last file descriptor could not."""
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
    MESSAGEs of consumers that are not open. `command_bound`: most bytes of a command. `checks`:
    compares the counts of SENDs if a rule limits messages. `verify`: verify the checksums of
    messages.
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
