"""Passes a limited consumer's permits to the broker at the rate at which its messages may come.

Theory of operation
===================
A consumer requests messages by *permits* (FLOW), mostly a thousand in advance, and the broker sends
as many messages. Under a limit the gateway keeps permits back, not messages: no other consumer can
have a message that the broker has dispatched to this one.

The account of a consumer counts the messages that were delivered, and its allowance says how many
more may be. So the broker should always have as many permits as the allowance has messages. The
broker has the permits that were passed on less the messages that were delivered. This may be below
zero, because the broker sends batches whole.

A permit allows a message of any size. Under a limit of bytes the number of permits follows from the
sizes of recent messages (`Sizes`). If a consumer gets far more than it may, its client's connection
is paused for a while (`throttle`).

A broker's first read takes permits for entries, each of which may be a batch: a thousand permits
brought ten thousand messages. So the first permit goes alone. It goes without allowance, or idle
consumers would take up the allowance of busy ones. Later the broker knows how large batches are.

A topic that is not persistent is another matter: its broker drops messages while a consumer has no
permits, so a permit that waits here could lose a message that is within the limits. So such
a consumer's permits run *ahead*: as long as its limits have allowance, the broker has as many as
may come at once at a limit that nobody uses, its burst, and what comes is charged. Without
allowance they wait, and the broker drops what is above the limit. All consumers of a limit together
have no more ahead than the debt that the limit allows, so that the limit holds over time.

After each delivery of messages the session asks at once whether more permits may go, because a
consumer with a queue of one asks after each message.

The gateway counts permits only when the broker does. A broker ignores the permits of a consumer
that it has not opened, and a client that sends FLOW before SUCCESS sends another one after it. So a
FLOW before SUCCESS is dropped: if it were passed on, the gateway would think that the broker has
this permit, and the consumer would wait for ever.

The broker may have fewer permits than the gateway thinks: it may have charged permits for messages
that it did not deliver, or delivered messages that were not counted. Then the consumer would wait
for ever. So when no message has come for a while though some should have, the gateway passes on a
few more permits (`ConsumerPermits._doubted`).

Permits die with their incarnation, with one exception: if a client subscribes again while its
consumer is open, the broker goes on with that consumer and its permits. Only the broker's response
tells whether it still has the consumer, and until then all permits wait (*parked*).
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING

from gateway.wire.account import Account, Burst
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
from gateway.wire.counters import ENDLESS
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import encode
from gateway.wire.pulsar.counts import MOST
from gateway.wire.pulsar.handles import Handle
from gateway.wire.pulsar.states import REPLACING
from gateway.wire.pulsar.throttle import FAR_BYTES, Throttle, is_far_beyond
from gateway.wire.pulsar.topics import is_kept

if TYPE_CHECKING:
    from gateway.wire.services import Services

MOST_PERMITS = 2**31 - 1
"""Permits of one FLOW. Brokers read the number as signed, and close the connection if it is below
1."""

AT_ONCE = 64
"""Consumers to look at after a delivery before other work has its turn. Each takes 1 to 2 µs, and a
connection may have 20,000. The others follow at once."""

QUIET = 5.0
"""Seconds without a message after which the gateway doubts that the broker has permits. A broker
that has messages sends them within milliseconds, from its disks within a second or two."""

RECENT = 100
"""Messages over which sizes are averaged: older ones count half as much or less. A consumer of
small messages forgets a large one after some hundreds."""


LEAST_SIZE = 1024
"""Bytes of a message of a topic that is not persistent, as long as none has come, or only smaller
ones: a limit of bytes says by it how many may come at once."""


class Sizes:
    """Estimates the size of a consumer's next messages from its last ones.

    A limit of bytes becomes a limit of the number of messages, by two sizes. By the average size,
    the messages must fit into the allowance. By the largest recent size, they must not go far
    beyond the allowance. Each size is the average of the messages between two calls of `see`.
    """

    __slots__ = ("_average", "_bytes", "_largest", "_messages")

    def __init__(self) -> None:
        self._messages = self._bytes = 0  # seen so far
        self._average = self._largest = 0.0

    def see(self, account: Account) -> bool:
        """Learn the sizes of the messages delivered since the last call. Return whether messages
        were delivered since then."""
        messages = account.messages - self._messages
        if not messages:
            return False
        size = max(1.0, (account.bytes - self._bytes) / messages)
        self._messages, self._bytes = account.messages, account.bytes
        kept = RECENT / (RECENT + messages) if self._average else 0.0
        self._average = size + (self._average - size) * kept
        self._largest = max(size, self._largest * kept)
        return True

    @property
    def average(self) -> float:
        """Return the average size of recent messages, in bytes; 0 before the first message."""
        return self._average

    def fitting(self, account: Account) -> int:
        """Return how many messages fit into the account's allowance of bytes. Call `see` first."""
        left = account.bytes_ceiling - account.bytes
        return int(min(left / self._average, (left + FAR_BYTES) / self._largest))


class ConsumerPermits:
    """The permits of one incarnation of a consumer.

    `wanted`: permits that wait here. `passed`: permits that the broker got. `ahead`: how many it
    may have whatever the allowance, as long as there is any. `is_kept`: the topic's messages wait
    for permits. `parked`: no permit may go now. `queue`: the most permits of one FLOW, which is the
    size of the client's receiver queue. `quiet_since`: time of the last delivery, or of the last
    moment when none was possible. `probed`: permits passed on since then because nothing came.
    `throttled_at`: see `Throttle.ask`.
    """

    __slots__ = (
        "_sizes",
        "account",
        "ahead",
        "id",
        "is_kept",
        "parked",
        "passed",
        "probed",
        "queue",
        "quiet_since",
        "throttled_at",
        "wanted",
    )

    def __init__(self, id: int, account: Account) -> None:
        self.id = id
        self.account = account
        self.is_kept = is_kept(account.topic)
        self.ahead = 1
        self.parked = False
        self.wanted = self.queue = self.probed = 0
        self.quiet_since = 0.0
        self.throttled_at = -1
        # An account that came under a limit later has what it had; how much is not known.
        self.passed = account.messages
        self._sizes = Sizes()

    @property
    def outstanding(self) -> int:
        """Return how many permits the broker should have: those that were forwarded, less the
        messages delivered."""
        return self.passed - self.account.messages

    @property
    def is_first(self) -> bool:
        """Return whether no message of this consumer was counted yet; False also if the number of
        forwarded permits (`passed`) is below zero."""
        return not self.account.messages and self.passed >= 0

    def want(self, permits: int) -> None:
        """Add the permits of a client's FLOW to the permits that are not forwarded yet."""
        self.wanted += permits
        self.queue = max(self.queue, permits)

    def run_ahead(self, burst: Burst) -> None:
        """Set how many permits the broker may have beyond the allowance. `burst`: messages and
        bytes that may pass at once."""
        fitting = burst.bytes // max(LEAST_SIZE, round(self._sizes.average))
        self.ahead = max(1, min(burst.messages, fitting))

    def see(self, now: float) -> None:
        """Learn the sizes of the messages delivered since the last call, and when they came."""
        if self._sizes.see(self.account):
            self.quiet_since = now
            self.probed = 0

    def take(self, now: float) -> int:
        """Return how many permits may be forwarded to the broker now, and count them as
        forwarded."""
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
            return max(0, self.ahead - self.passed)
        account = self.account
        # For a batch that was acknowledged in part brokers charge less than the gateway counts. The
        # difference is no more than one batch at a time.
        self.passed = max(self.passed, account.messages - MOST)
        return 0 if account.held else max(0, self._allowed() - self.outstanding)

    def _allowed(self) -> int:
        """Return how many more messages may come; at least `ahead`."""
        account = self.account
        left = account.messages_ceiling - account.messages
        if account.bytes_ceiling < ENDLESS:
            # No more than came so far: at first the number doubles with each round trip.
            left = min(left, self._sizes.fitting(account), account.messages)
        return max(self.ahead, left)

    @property
    def can_doubt(self) -> bool:
        """Return whether permits wait here while the broker may have none left, although the
        broker has some by the gateway's count."""
        if not self.wanted or self.parked or not self.account.messages or self.outstanding <= 0:
            return False
        return self._uncounted > 0 or self.probed < self.queue // 2

    @property
    def _uncounted(self) -> int:
        """Return how many messages the client got beyond those counted. Its FLOWs show them: it
        sends a permit for each message that it has taken out of its queue."""
        return self.wanted + self.outstanding - self.queue

    def _doubted(self, now: float) -> int:
        """Return how many permits to pass on although the broker should have some.

        One at first, then twice as many each time. A topic without messages looks the same, so they
        are bounded by half a queue. That is enough: a client sends FLOW when half of its queue is
        taken, which shows the uncounted messages. The broker has charged permits for these, and has
        none until as many were passed on.
        """
        self.quiet_since = now
        uncounted = max(0, self._uncounted)
        permits = self.probed + max(1, min(uncounted, self.outstanding))
        permits = min(permits, max(uncounted, self.queue // 2 - self.probed))
        self.probed += permits
        self.passed -= min(uncounted, permits)
        return permits


class Permits:
    """The permits of all consumers of one pair; used if rules may limit consumers."""

    __slots__ = (
        "_all",
        "_is_going_on",
        "_is_timed",
        "_left",
        "_services",
        "_throttle",
        "_waiting",
        "_watched",
    )

    def __init__(self, services: Services) -> None:
        self._services = services
        self._all: dict[Account, ConsumerPermits] = {}
        # Consumers with permits that wait here, the next one to look at first.
        self._waiting: OrderedDict[Account, ConsumerPermits] = OrderedDict()
        # Consumers that may get far more than their allowance, in the same order.
        self._watched: OrderedDict[Account, ConsumerPermits] = OrderedDict()
        self._throttle = Throttle(services)
        self._left = 0  # waiting consumers to look at yet since the last delivery
        self._is_going_on = False
        self._is_timed = False

    def ask(self, id: int, account: Account, permits: int, now: float) -> Effects:
        """Return what to do with the client's FLOW of `permits` for a consumer that is open at the
        broker."""
        if account.is_endless and account not in self._all:
            return FORWARD
        consumer = self._wanting(id, account, permits)
        going, more = self._pass_on(consumer, now)
        if going == permits:
            return (Forward(), *more, Attend()) if more or account in self._watched else FORWARD
        verdict = Replace(flow(id, going)) if going else Drop()
        return (verdict, *more, Attend())

    def ask_early(self, handle: Handle, permits: int) -> Effects:
        """Return what to do with the client's FLOW of `permits` for a consumer whose SUBSCRIBE has
        no response yet."""
        account = handle.account
        if handle.state in REPLACING:
            self._wanting(handle.id, account, permits).parked = True
            return DROP
        return FORWARD if account.is_endless and account not in self._all else DROP

    def _wanting(self, id: int, account: Account, permits: int) -> ConsumerPermits:
        consumer = self._all.get(account)
        if consumer is None:
            consumer = self._all[account] = ConsumerPermits(id, account)
        consumer.want(permits)
        self._waiting[account] = consumer
        return consumer

    def park(self, account: Account) -> None:
        """Forward no permits of an open consumer until the broker responds to the consumer's new
        SUBSCRIBE."""
        consumer = self._all.get(account)
        if consumer is not None:
            consumer.parked = True

    def confirm(self, account: Account, now: float) -> Effects:
        """Return the effects that forward a consumer's parked permits, because the broker has
        responded to its SUBSCRIBE."""
        consumer = self._all.get(account)
        if consumer is None or not consumer.parked:
            return ()
        consumer.parked = False
        going, more = self._pass_on(consumer, now)
        passed = (Inject(Direction.TO_BROKER, flow(consumer.id, going)),) if going else ()
        return (*passed, *more, Attend())

    def delivered(self, now: float) -> Effects | None:
        """Return the effects after messages were delivered or allowance was granted: FLOWs with the
        permits that may now go to the broker, and pauses of reading from the broker. None: no
        consumer needs a call after these events."""
        stopped = self._look_at_watched(now) if self._watched else ()
        if not self._waiting:
            return stopped if self._watched else None
        self._left = len(self._waiting)
        return (*stopped, *self._look(now))

    def _go_on(self, now: float) -> Effects:
        """Look at the consumers that `delivered` left for later."""
        self._is_going_on = False
        return self._look(now)

    def _look_for_quiet(self, now: float) -> Effects:
        """Look at all waiting consumers, because some of them get no messages."""
        self._is_timed = False
        self._left = len(self._waiting)
        return self._look(now)

    def _look(self, now: float) -> Effects:
        """Pass on the permits of the next few waiting consumers."""
        effects: list[Effect] = []
        self._left = min(self._left, len(self._waiting))
        for _ in range(min(self._left, AT_ONCE)):
            account, consumer = next(iter(self._waiting.items()))
            self._waiting.move_to_end(account)
            self._left -= 1
            going, more = self._pass_on(consumer, now)
            if going:
                effects.append(Inject(Direction.TO_BROKER, flow(consumer.id, going)))
            effects += more
        if self._left and not self._is_going_on:
            self._is_going_on = True
            effects.append(Later(0.0, self._go_on))
        return tuple(effects)

    def forget(self, account: Account) -> None:
        """Forget the permits of a consumer that is closed."""
        self._all.pop(account, None)
        self._waiting.pop(account, None)
        self._watched.pop(account, None)

    def _pass_on(self, consumer: ConsumerPermits, now: float) -> tuple[int, Effects]:
        """Return how many permits to pass on now, and the effects that await the rest."""
        account = consumer.account
        if consumer.parked:
            return 0, ()
        consumer.see(now)
        if not consumer.is_kept:
            consumer.run_ahead(self._services.burst(account))
        if self._waits(consumer):
            consumer.quiet_since = now
            return 0, (Await(account),)
        going = consumer.take(now)
        if not consumer.wanted:
            self._waiting.pop(account, None)
        self._watch(consumer)
        if self._is_timed or not consumer.can_doubt:
            return going, ()
        self._is_timed = True
        return going, (Later(now + QUIET, self._look_for_quiet),)

    def _waits(self, consumer: ConsumerPermits) -> bool:
        """Return whether no permit may go before a grant. The first permit needs no allowance while
        its limits owe little."""
        account = consumer.account
        if not consumer.is_first:
            # A permit brings a whole batch, which has to be paid for before another consumer's.
            account.needs = account.bytes // max(1, account.frames)
            return account.is_short and not self._services.wants(account)
        if consumer.passed and consumer.is_kept:
            return False
        return self._services.is_in_debt(account) and not self._services.wants(account)

    # -- consumers that get far more than their allowance ------------------------------------

    def _watch(self, consumer: ConsumerPermits) -> None:
        """Watch a consumer that has several permits: they may bring any number of bytes."""
        account = consumer.account
        if consumer.outstanding > 1 and not account.is_endless:
            self._watched[account] = consumer

    def _look_at_watched(self, now: float) -> Effects:
        """Look at the next few watched consumers. Flat, because this runs at each wake-up and
        mostly finds nothing."""
        sent = self._watched
        to_check = []
        for account, consumer in islice(sent.items(), AT_ONCE):
            messages = account.messages
            if (
                consumer.passed - messages <= 1
                or account.bytes > account.bytes_ceiling
                or messages > account.messages_ceiling
            ):
                to_check.append(consumer)
        effects = self._look_closer(to_check, now) if to_check else ()
        if len(sent) > AT_ONCE:
            for account in tuple(islice(sent, AT_ONCE)):
                sent.move_to_end(account)
        return effects

    def _look_closer(self, consumers: list[ConsumerPermits], now: float) -> Effects:
        effects: list[Effect] = []
        for consumer in consumers:
            account = consumer.account
            if is_far_beyond(account):
                pause = self._throttle.ask(account, consumer.throttled_at, now)
                if pause:
                    consumer.throttled_at = account.bytes
                effects += pause
            elif consumer.outstanding <= 1 and not account.held:
                del self._watched[account]
        return tuple(effects)


def flow(id: int, permits: int) -> bytes:
    """Return a FLOW of `permits`, made by the gateway, for the consumer with this id."""
    command = BaseCommand(type=BaseCommand.FLOW)
    command.flow.consumer_id = id
    command.flow.messagePermits = permits
    return encode(command)
