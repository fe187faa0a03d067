"""Makes the scanners of a connection: the one place that knows which implementation scans.

What a session needs of them are the protocols here. An implementation is as good as another one if
`tests/conformance` cannot tell them apart.
"""

from __future__ import annotations

from typing import Protocol

from gateway.wire.account import Account
from gateway.wire.contract import Scanner
from gateway.wire.pulsar.counts import CountChecks
from gateway.wire.pulsar.scan import ToBrokerScanner, ToClientScanner


class ProducerScanner(Scanner, Protocol):
    """Scans what a client sends. SENDs of open producers pass, and count, while their accounts
    have allowance; all others stop.
    """

    def open_producer(self, producer_id: int, account: Account) -> None:
        """From now on SENDs of this producer pass while its account allows."""

    def close_producer(self, producer_id: int) -> None:
        """From now on SENDs of this producer are stop frames."""

    def following(self, account: Account, chunk: bytearray, start: int, end: int) -> int:
        """See `contract.Holding`."""

    def is_damaged(self, frame: bytes) -> bool:
        """Return whether the checksum of a whole SEND is wrong, where it is verified."""


class ConsumerScanner(Scanner, Protocol):
    """Scans what a broker sends: counts the MESSAGEs of open consumers and the receipts of open
    producers. Those of others pass too, and count for the account of unknown ones, or nobody.
    """

    def open_consumer(self, consumer_id: int, account: Account) -> None:
        """From now on MESSAGEs of this consumer count for its account."""

    def close_consumer(self, consumer_id: int) -> None:
        """From now on MESSAGEs of this consumer are of an unknown one."""

    def open_producer(self, producer_id: int, account: Account) -> None:
        """From now on receipts of this producer count for its account."""

    def close_producer(self, producer_id: int) -> None:
        """From now on receipts of this producer count for nobody."""


Scanners = tuple[ProducerScanner, ConsumerScanner]


def scanners(
    actions: tuple[tuple[int, ...], tuple[int, ...]],
    unknown: Account,
    command_bound: int,
    checks: CountChecks | None,
    *,
    verify: bool,
) -> Scanners:
    """Return the scanners of a new connection.

    `actions`: what each does with each command type, by direction. `unknown`: whose account counts
    MESSAGEs of consumers that are not open. `command_bound`: bytes of a command. `checks`: compares
    the counts of SENDs, where a rule limits messages. `verify`: checksums of messages are verified.
    """
    to_broker, to_client = actions
    if not verify:
        return (
            ToBrokerScanner(to_broker, command_bound, checks),
            ToClientScanner(to_client, unknown, command_bound),
        )
    # Imported where it is wanted: it needs a library of its own.
    from gateway.wire.pulsar.checksums import VerifyingToBrokerScanner, VerifyingToClientScanner

    return (
        VerifyingToBrokerScanner(to_broker, command_bound, checks),
        VerifyingToClientScanner(to_client, unknown, command_bound),
    )
