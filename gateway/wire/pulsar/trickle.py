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
consumer with a queue of one asks after each message.

Permits count from the moment when a broker counts them. It ignores those of a consumer that it has
not opened, and a client that asked before it heard SUCCESS asks once more after it. So what comes
before SUCCESS is dropped here: passed on, it would be taken for a permit that the broker has, and
the consumer would wait for it for ever.

Permits die with their incarnation, but where a client subscribes again while its consumer is open:
there the broker goes on with the consumer that it has, and with its permits. Whether it has it
still is known by its answer, and until then all permits wait (*parked*).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from gateway.wire.contract import (
    DROP,
    ENDLESS,
    FORWARD,
    Account,
    Attend,
    Await,
    Direction,
    Drop,
    Effect,
    Effects,
    Inject,
    Later,
    Replace,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import encode
from gateway.wire.pulsar.ids import Handle, State
from gateway.wire.pulsar.late import FIRST_TOKEN

if TYPE_CHECKING:
    from gateway.wire.gate import Gate

LARGEST_BATCH = 1000
"""Messages of one batch, by the clients' defaults. Of a batch that was acknowledged in part brokers
charge less than is counted here; beyond this the difference is forgotten."""

MOST_PERMITS = 2**31 - 1
"""Of one FLOW: brokers read them as a signed number, and end the connection for less than 1."""

AT_ONCE = 64
"""Consumers that are looked at when messages were delivered, before others have their turn: each
takes 1 to 2 µs, and a connection may have 20,000. The next ones follow at once."""

NEXT_TOKEN = FIRST_TOKEN - 1
"""Of the `Later` by which the session goes on looking at consumers."""


class Trickle:
    """One incarnation. `wanted`: permits that wait here. `passed`: those that the broker got.
    `parked`: none may go now.
    """

    __slots__ = ("account", "id", "parked", "passed", "wanted")

    def __init__(self, id: int, account: Account) -> None:
        self.id = id
        self.account = account
        self.parked = False
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
        if self.parked:
            return 0
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

    __slots__ = ("_all", "_gate", "_hungry", "_is_going_on", "_left")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._all: dict[Account, Trickle] = {}
        # Whose permits wait here; who is to be looked at next comes first.
        self._hungry: OrderedDict[Account, Trickle] = OrderedDict()
        self._left = 0  # of these, since something was delivered
        self._is_going_on = False

    def ask(self, id: int, account: Account, permits: int) -> Effects:
        """The client's FLOW, for a consumer that the broker has open."""
        if account.is_endless and account not in self._all:
            return FORWARD
        trickle = self._wanting(id, account, permits)
        going, more = self._pass_on(trickle)
        if going == permits:
            return FORWARD
        verdict = Replace(flow(id, going)) if going else Drop()
        return (verdict, *more, Attend())

    def ask_early(self, handle: Handle, permits: int) -> Effects:
        """The client's FLOW before SUCCESS."""
        account = handle.account
        if handle.state in (State.REOPENING, State.RENEWING):
            self._wanting(handle.id, account, permits).parked = True
            return DROP
        return FORWARD if account.is_endless and account not in self._all else DROP

    def _wanting(self, id: int, account: Account, permits: int) -> Trickle:
        trickle = self._all.get(account)
        if trickle is None:
            trickle = self._all[account] = Trickle(id, account)
        trickle.wanted += permits
        self._hungry[account] = trickle
        return trickle

    def park(self, account: Account) -> None:
        """An open consumer is subscribed again: its permits wait for the answer."""
        trickle = self._all.get(account)
        if trickle is not None:
            trickle.parked = True

    def confirm(self, account: Account) -> Effects:
        """SUCCESS: what was parked may go."""
        trickle = self._all.get(account)
        if trickle is None or not trickle.parked:
            return ()
        trickle.parked = False
        going, more = self._pass_on(trickle)
        passed = (Inject(Direction.TO_BROKER, flow(trickle.id, going)),) if going else ()
        return (*passed, *more, Attend())

    def delivered(self) -> Effects | None:
        """Messages were delivered, or allowance was granted; None: nobody waits for that."""
        if not self._hungry:
            return None
        self._left = len(self._hungry)
        return self._look()

    def go_on(self) -> Effects:
        """Look at the consumers that `delivered` has left."""
        self._is_going_on = False
        return self._look()

    def _look(self) -> Effects:
        effects: list[Effect] = []
        self._left = min(self._left, len(self._hungry))
        for _ in range(min(self._left, AT_ONCE)):
            account, trickle = next(iter(self._hungry.items()))
            self._hungry.move_to_end(account)
            self._left -= 1
            going, more = self._pass_on(trickle)
            if going:
                effects.append(Inject(Direction.TO_BROKER, flow(trickle.id, going)))
            effects += more
        if self._left and not self._is_going_on:
            self._is_going_on = True
            effects.append(Later(NEXT_TOKEN, 0.0))
        return tuple(effects)

    def forget(self, account: Account) -> None:
        """The incarnation is over."""
        self._all.pop(account, None)
        self._hungry.pop(account, None)

    def _pass_on(self, trickle: Trickle) -> tuple[int, Effects]:
        """How many permits go on now, and for what the rest waits."""
        account = trickle.account
        if trickle.parked:
            return 0, ()
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
