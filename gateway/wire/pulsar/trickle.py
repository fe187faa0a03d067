"""Permits of consumers under a limit go on as their messages may come.

Theory of operation
===================
A consumer asks for messages by *permits* (FLOW), mostly for a thousand in advance, and the broker
sends as many. Under a limit the permits wait here and not the messages: what a broker has
dispatched to one consumer no other one can have.

The account of a consumer counts the messages that were delivered, and its allowance says how many
more may be. So at any time the broker should have as many permits as are allowed. What it has is
what was passed on less what was delivered; below zero, too, for it sends batches whole.

Permits are for messages of any size. Under a limit of bytes their number follows from the sizes of
recent messages (`sizes`), and a consumer that gets far more than it may has its client's connection
stopped for a while (`brake`).

A broker's first read takes permits for entries, each of which may be a batch: a thousand permits
brought ten thousand messages. So the first permit goes alone; it goes without allowance, or idle
consumers would take up that of busy ones. Later the broker knows how large batches are.

When messages were delivered the session is asked whether more permits may go: at once, for a
consumer with a queue of one asks after each message.

Permits count from the moment when a broker counts them. It ignores those of a consumer that it has
not opened, and a client that asked before it heard SUCCESS asks once more after it. So what comes
before SUCCESS is dropped here: passed on, it would be taken for a permit that the broker has, and
the consumer would wait for it for ever.

The broker may have fewer permits than is thought here: whatever it charged and did not deliver, or
delivered and was not counted, is missing, and the consumer would wait for ever. So when nothing has
come for a while that should have, the broker gets a few permits more (`Trickle._doubted`).

Permits die with their incarnation, but where a client subscribes again while its consumer is open:
there the broker goes on with the consumer that it has, and with its permits. Whether it has it
still is known by its answer, and until then all permits wait (*parked*).
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING

from gateway.wire.account import ENDLESS, Account
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Attend,
    Await,
    Direction,
    Drop,
    Effect,
    Effects,
    Forward,
    Inject,
    Later,
    Replace,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.brake import Brake, is_far_beyond
from gateway.wire.pulsar.commands import encode
from gateway.wire.pulsar.counts import MOST
from gateway.wire.pulsar.ids import Handle
from gateway.wire.pulsar.sizes import Sizes
from gateway.wire.pulsar.states import REPLACING

if TYPE_CHECKING:
    from gateway.wire.services import Services

MOST_PERMITS = 2**31 - 1
"""Of one FLOW: brokers read them as a signed number, and end the connection for less than 1."""

AT_ONCE = 64
"""Consumers that are looked at when messages were delivered, before others have their turn: each
takes 1 to 2 µs, and a connection may have 20,000. The next ones follow at once."""

QUIET = 5.0
"""Seconds without a message after which it is doubted that the broker has permits. A broker that
has messages sends them within milliseconds, from its disks within a second or two."""


class Trickle:
    """One incarnation. `wanted`: permits that wait here. `passed`: those that the broker got.
    `parked`: none may go now. `queue`: the most that the client asked for at once, which is what
    it has room for. `quiet_since`: when something was delivered last, or could not be. `probed`:
    permits that went since then because nothing came. `braked_at`: see `brake`.
    """

    __slots__ = (
        "_sizes",
        "account",
        "braked_at",
        "id",
        "parked",
        "passed",
        "probed",
        "queue",
        "quiet_since",
        "wanted",
    )

    def __init__(self, id: int, account: Account) -> None:
        self.id = id
        self.account = account
        self.parked = False
        self.wanted = self.queue = self.probed = 0
        self.quiet_since = 0.0
        self.braked_at = -1
        # An account that came under a limit later has what it had; how much is not known.
        self.passed = account.messages
        self._sizes = Sizes()

    @property
    def outstanding(self) -> int:
        """How many permits the broker should have."""
        return self.passed - self.account.messages

    @property
    def is_first(self) -> bool:
        """Nothing was delivered yet, and the broker owes nothing."""
        return not self.account.messages and self.passed >= 0

    def want(self, permits: int) -> None:
        """The client asks for so many more."""
        self.wanted += permits
        self.queue = max(self.queue, permits)

    def see(self, now: float) -> None:
        """Look at what was delivered since the last time."""
        if self._sizes.see(self.account):
            self.quiet_since = now
            self.probed = 0

    def take(self, now: float) -> int:
        """As many permits as may go on now."""
        due = self._due()
        if not due and self.can_doubt and now >= self.quiet_since + QUIET:
            due = self._doubted(now)
        permits = min(self.wanted, due, MOST_PERMITS)
        self.wanted -= permits
        self.passed += permits
        return permits

    def _due(self) -> int:
        if self.parked:
            return 0
        if self.is_first:
            return 1 - min(1, self.passed)
        account = self.account
        # Of a batch that was acknowledged in part brokers charge less than is counted here. That
        # difference comes to no more than a batch at a time.
        self.passed = max(self.passed, account.messages - MOST)
        return 0 if account.held else max(0, self._allowed() - self.outstanding)

    def _allowed(self) -> int:
        """How many more messages may come; at least one."""
        account = self.account
        left = account.messages_ceiling - account.messages
        if account.bytes_ceiling < ENDLESS:
            # No more than came so far: at first they double with each round trip.
            left = min(left, self._sizes.fitting(account), account.messages)
        return max(1, left)

    @property
    def can_doubt(self) -> bool:
        """Permits wait here, the broker should have some, and there is a reason to doubt it."""
        if not self.wanted or self.parked or not self.account.messages or self.outstanding <= 0:
            return False
        return self._uncounted > 0 or self.probed < self.queue // 2

    @property
    def _uncounted(self) -> int:
        """How many messages more the client has got than were counted, by what it asks for: it asks
        again for what it has taken out of its queue."""
        return self.wanted + self.outstanding - self.queue

    def _doubted(self, now: float) -> int:
        """Return permits to go on though the broker should have some: one, then twice as many each
        time. A topic without messages looks the same, so they are bounded. Half a queue is enough:
        clients ask again when half of it is taken, and show so what was not counted. That the
        broker has charged, and so much has to go on before it has any permit again.
        """
        self.quiet_since = now
        uncounted = max(0, self._uncounted)
        permits = self.probed + max(1, min(uncounted, self.outstanding))
        permits = min(permits, max(uncounted, self.queue // 2 - self.probed))
        self.probed += permits
        self.passed -= min(uncounted, permits)
        return permits


class Trickles:
    """Those of one pair. Made only where limits may hold."""

    __slots__ = (
        "_all",
        "_brake",
        "_hungry",
        "_is_going_on",
        "_is_timed",
        "_left",
        "_sent",
        "_services",
    )

    def __init__(self, services: Services) -> None:
        self._services = services
        self._all: dict[Account, Trickle] = {}
        # Whose permits wait here; who is to be looked at next comes first.
        self._hungry: OrderedDict[Account, Trickle] = OrderedDict()
        # Who may be sent far more than it may have, in the same order.
        self._sent: OrderedDict[Account, Trickle] = OrderedDict()
        self._brake = Brake(services)
        self._left = 0  # of the hungry ones, since something was delivered
        self._is_going_on = False
        self._is_timed = False

    def ask(self, id: int, account: Account, permits: int, now: float) -> Effects:
        """The client's FLOW, for a consumer that the broker has open."""
        if account.is_endless and account not in self._all:
            return FORWARD
        trickle = self._wanting(id, account, permits)
        going, more = self._pass_on(trickle, now)
        if going == permits:
            return (Forward(), *more, Attend()) if more or account in self._sent else FORWARD
        verdict = Replace(flow(id, going)) if going else Drop()
        return (verdict, *more, Attend())

    def ask_early(self, handle: Handle, permits: int) -> Effects:
        """The client's FLOW before SUCCESS."""
        account = handle.account
        if handle.state in REPLACING:
            self._wanting(handle.id, account, permits).parked = True
            return DROP
        return FORWARD if account.is_endless and account not in self._all else DROP

    def _wanting(self, id: int, account: Account, permits: int) -> Trickle:
        trickle = self._all.get(account)
        if trickle is None:
            trickle = self._all[account] = Trickle(id, account)
        trickle.want(permits)
        self._hungry[account] = trickle
        return trickle

    def park(self, account: Account) -> None:
        """An open consumer is subscribed again: its permits wait for the answer."""
        trickle = self._all.get(account)
        if trickle is not None:
            trickle.parked = True

    def confirm(self, account: Account, now: float) -> Effects:
        """SUCCESS: what was parked may go."""
        trickle = self._all.get(account)
        if trickle is None or not trickle.parked:
            return ()
        trickle.parked = False
        going, more = self._pass_on(trickle, now)
        passed = (Inject(Direction.TO_BROKER, flow(trickle.id, going)),) if going else ()
        return (*passed, *more, Attend())

    def delivered(self, now: float) -> Effects | None:
        """Messages were delivered, or allowance was granted; None: nobody waits for that."""
        stopped = self._look_at_sent(now) if self._sent else ()
        if not self._hungry:
            return stopped if self._sent else None
        self._left = len(self._hungry)
        return (*stopped, *self._look(now))

    def _go_on(self, now: float) -> Effects:
        """Look at the consumers that `delivered` has left."""
        self._is_going_on = False
        return self._look(now)

    def _look_for_quiet(self, now: float) -> Effects:
        """Look at all consumers that want permits: to some of them nothing comes."""
        self._is_timed = False
        self._left = len(self._hungry)
        return self._look(now)

    def _look(self, now: float) -> Effects:
        effects: list[Effect] = []
        self._left = min(self._left, len(self._hungry))
        for _ in range(min(self._left, AT_ONCE)):
            account, trickle = next(iter(self._hungry.items()))
            self._hungry.move_to_end(account)
            self._left -= 1
            going, more = self._pass_on(trickle, now)
            if going:
                effects.append(Inject(Direction.TO_BROKER, flow(trickle.id, going)))
            effects += more
        if self._left and not self._is_going_on:
            self._is_going_on = True
            effects.append(Later(0.0, self._go_on))
        return tuple(effects)

    def forget(self, account: Account) -> None:
        """The incarnation is over."""
        self._all.pop(account, None)
        self._hungry.pop(account, None)
        self._sent.pop(account, None)

    def _pass_on(self, trickle: Trickle, now: float) -> tuple[int, Effects]:
        """How many permits go on now, and for what the rest waits."""
        account = trickle.account
        if trickle.parked:
            return 0, ()
        trickle.see(now)
        if self._waits(trickle):
            trickle.quiet_since = now
            return 0, (Await(account),)
        going = trickle.take(now)
        if not trickle.wanted:
            self._hungry.pop(account, None)
        self._watch(trickle)
        if self._is_timed or not trickle.can_doubt:
            return going, ()
        self._is_timed = True
        return going, (Later(now + QUIET, self._look_for_quiet),)

    def _waits(self, trickle: Trickle) -> bool:
        """Whether nothing may go on before there is allowance. The first permit needs none, while
        its limits owe little."""
        account = trickle.account
        if not trickle.is_first:
            return account.held and not self._services.wants(account)
        if trickle.passed:
            return False
        return self._services.is_in_debt(account) and not self._services.wants(account)

    # -- who gets far more than it may -------------------------------------------------------

    def _watch(self, trickle: Trickle) -> None:
        """One permit brings one frame, more than that may bring any number of bytes."""
        account = trickle.account
        if trickle.outstanding > 1 and not account.is_endless:
            self._sent[account] = trickle

    def _look_at_sent(self, now: float) -> Effects:
        """Look at some consumers, by turn. Flat: this runs once for each wake-up, and mostly there
        is nothing about any of them."""
        sent = self._sent
        found = []
        for account, trickle in islice(sent.items(), AT_ONCE):
            messages = account.messages
            if (
                trickle.passed - messages <= 1
                or account.bytes > account.bytes_ceiling
                or messages > account.messages_ceiling
            ):
                found.append(trickle)
        effects = self._look_closer(found, now) if found else ()
        if len(sent) > AT_ONCE:
            for account in tuple(islice(sent, AT_ONCE)):
                sent.move_to_end(account)
        return effects

    def _look_closer(self, found: list[Trickle], now: float) -> Effects:
        effects: list[Effect] = []
        for trickle in found:
            account = trickle.account
            if is_far_beyond(account):
                braked = self._brake.ask(account, trickle.braked_at, now)
                if braked:
                    trickle.braked_at = account.bytes
                effects += braked
            elif trickle.outstanding <= 1 and not account.held:
                del self._sent[account]
        return tuple(effects)


def flow(id: int, permits: int) -> bytes:
    """A FLOW of ours."""
    command = BaseCommand(type=BaseCommand.FLOW)
    command.flow.consumer_id = id
    command.flow.messagePermits = permits
    return encode(command)
