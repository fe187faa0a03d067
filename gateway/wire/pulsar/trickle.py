"""Permits of consumers under a limit go on as their messages may come.

Theory of operation
===================
A consumer asks for messages by *permits* (FLOW), mostly for a thousand in advance, and the broker
sends as many. Under a limit the permits wait here and not the messages: what a broker has
dispatched to one consumer no other one can have.

The account of a consumer counts the messages that were delivered, and its allowance says how many
more may be. So at any time the broker should have as many permits as are allowed. What it has is
what was passed on less what was delivered; below zero, too, for it sends batches whole.

A broker's first read takes permits for entries, each of which may be a batch: a thousand permits
brought ten thousand messages. So the first permit goes alone; it goes without allowance, or idle
consumers would take up that of busy ones. Later the broker knows how large batches are.

When messages were delivered the session is asked whether more permits may go: at once, for a
consumer with a queue of one asks after each message. Permits die with their incarnation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.wire.contract import (
    ENDLESS,
    FORWARD,
    Account,
    Attend,
    Await,
    Direction,
    Drop,
    Effects,
    Inject,
    Replace,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import encode

if TYPE_CHECKING:
    from gateway.wire.gate import Gate

LARGEST_BATCH = 1000
"""Messages of one batch, by the clients' defaults. Of a batch that was acknowledged in part brokers
charge less than is counted here; beyond this the difference is forgotten."""

MOST_PERMITS = 2**31 - 1
"""Of one FLOW: brokers read them as a signed number."""


class Trickle:
    """One incarnation. `wanted`: permits that wait here. `passed`: those that the broker got."""

    __slots__ = ("account", "id", "passed", "wanted")

    def __init__(self, id: int, account: Account) -> None:
        self.id = id
        self.account = account
        self.wanted = 0
        # An account that came under a limit later has what it had; how much is not known.
        self.passed = account.messages

    def take(self) -> int:
        """As many permits as may go on now."""
        permits = min(self.wanted, self._due(), MOST_PERMITS)
        self.wanted -= permits
        self.passed += permits
        return permits

    def _due(self) -> int:
        delivered = self.account.messages
        if not delivered:
            return max(0, 1 - self.passed)
        self.passed = max(self.passed, delivered - LARGEST_BATCH)
        return 0 if self.account.held else max(0, _allowed(self.account) - self.passed + delivered)


def _allowed(account: Account) -> int:
    """How many more messages may come, if they are as large as those before; at least one."""
    left = account.messages_ceiling - account.messages
    if account.bytes_ceiling < ENDLESS:
        size = account.bytes // account.messages or 1
        left = min(left, (account.bytes_ceiling - account.bytes) // size)
    return max(1, left)


class Trickles:
    """Those of one pair. Made only where limits may hold."""

    __slots__ = ("_all", "_gate", "_hungry")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._all: dict[Account, Trickle] = {}
        self._hungry: dict[Account, Trickle] = {}  # whose permits wait here

    def ask(self, id: int, account: Account, permits: int) -> Effects:
        """The client's FLOW."""
        if account.is_endless and account not in self._all:
            return FORWARD
        trickle = self._all.get(account)
        if trickle is None:
            trickle = self._all[account] = Trickle(id, account)
        trickle.wanted += permits
        self._hungry[account] = trickle
        going, more = self._pass_on(trickle)
        if going == permits:
            return FORWARD
        verdict = Replace(flow(id, going)) if going else Drop()
        return (verdict, *more, Attend())

    def delivered(self) -> Effects | None:
        """Messages were delivered, or allowance was granted; None: nobody waits for that."""
        if not self._hungry:
            return None
        effects: Effects = ()
        for trickle in tuple(self._hungry.values()):
            going, more = self._pass_on(trickle)
            if going:
                effects += (Inject(Direction.TO_BROKER, flow(trickle.id, going)),)
            effects += more
        return effects

    def forget(self, account: Account) -> None:
        """The incarnation is over."""
        self._all.pop(account, None)
        self._hungry.pop(account, None)

    def _pass_on(self, trickle: Trickle) -> tuple[int, Effects]:
        """How many permits go on now, and for what the rest waits."""
        account = trickle.account
        waits = account.messages > 0 and account.held and not self._gate.wants(account)
        going = trickle.take()
        if not trickle.wanted:
            self._hungry.pop(account, None)
        return going, (Await(account),) if waits else ()


def flow(id: int, permits: int) -> bytes:
    """A FLOW of ours."""
    command = BaseCommand(type=BaseCommand.FLOW)
    command.flow.consumer_id = id
    command.flow.messagePermits = permits
    return encode(command)
