"""Handlers of the commands that concern the producers and consumers of one pair.

docs/protocols/states.md has the tables: effects and next state for each state and event. Each
method here handles one event: it changes states, keeps both scanners and the accounts in step with
them, and returns effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.admission import NO_ROOM
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Attend,
    Await,
    Denial,
    Direction,
    Discard,
    Drop,
    Effects,
    End,
    EndReason,
    Hold,
    Inject,
    Later,
    Postpone,
    Refuse,
    Replace,
    Resume,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandTopicMigrated
from gateway.wire.pulsar.closing import PATIENCE, LateReceipts, Leaving
from gateway.wire.pulsar.commands import (
    BROKERS_OWN,
    BUSY,
    IN_USE,
    MIGRATED,
    close_command,
    decode,
    encode,
    error,
    refused,
    text,
)
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.frames import HEAD, Kind
from gateway.wire.pulsar.handles import Handle, Handles, Purpose, bytes_kept
from gateway.wire.pulsar.permits import MOST_PERMITS, Permits
from gateway.wire.pulsar.scanning import Scanners
from gateway.wire.pulsar.send_errors import is_refused, refusal
from gateway.wire.pulsar.states import (
    ENDING,
    PENDING,
    REPLACING,
    RESETTABLE,
    SETTLED,
    Event,
    State,
)
from gateway.wire.pulsar.topics import is_brokers_own
from gateway.wire.stopwatch import Stopwatch
from gateway.wire.subject import Subject

CLOSED_AT_ONCE = 256
"""Incarnations that `close` ends in one step, 10 µs each: a connection may have 20,000, and
thousands of connections may end at once."""

LEFT_AT_ONCE = 256
"""Incarnations that take a step of leaving in one call of `leave`."""

REVOKED_AGAIN = 0.1
"""Seconds until the next look at a revoked producer or consumer that is still being opened. The
broker's response takes milliseconds."""

LONGEST_WAIT = 20.0
"""The most seconds for which a large SEND waits for allowance, and all that its client sends behind
it; then the connection ends, and the client sends again. Clients give a SEND up after 30."""

LOOK = 1.0
"""Seconds until a large SEND that waits is decided again, if nothing happens before: its producer
may have been closed meanwhile."""

FEW_STRAYS = 1024 * 1024
"""Bytes of SENDs that one connection may send to producers that are not open, though neither broker
nor gateway has closed any. Brokers end the connection at the first."""

MOST_STRAYS = 64 * 1024 * 1024
"""The same after such a close, until the client has read it. Java's clients keep so many bytes
without receipts by default (`memoryLimit`)."""

UNANSWERED = 16
"""In-flight requests about one producer or consumer. Each is kept until its response comes. A
client repeats a request after 30 s."""


class Request(Protocol):
    """A command to which the broker responds under the same request id."""

    request_id: int


class Incarnations:
    """The producers and consumers of one pair. `broker`: the broker of this pair; None if an
    upstream gateway chose the broker.

    A method that takes a command and its frame returns what to do with that stop frame.
    """

    __slots__ = (
        "_broker",
        "_client",
        "_large",
        "_large_since",
        "_late",
        "_leaving",
        "_listener",
        "_permits",
        "_stopwatch",
        "_strays",
        "_to_broker",
        "_to_client",
        "_to_leave",
        "handles",
    )

    def __init__(
        self,
        listener: ListenerContext,
        client: Client,
        broker: Address | None,
        scanners: Scanners,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self.handles = Handles(listener.first_request(), client.quota)
        self._listener = listener
        self._client = client
        self._broker = broker
        self._stopwatch = stopwatch
        self._to_broker, self._to_client = scanners
        self._permits = Permits(listener.services) if listener.limited else None
        self._leaving: Leaving | None = None  # made when it is needed: idle pairs are many
        # The account of the large SEND that is postponed, and when this began to wait.
        self._large: Account | None = None
        self._large_since = 0.0
        self._strays = FEW_STRAYS  # bytes of SENDs that may yet come of producers not open
        self._late: LateReceipts | None = None
        self._to_leave: Iterator[Handle] | None = None  # those left in this round of steps

    # -- opening -----------------------------------------------------------------------------

    def producer(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's PRODUCER: admit the producer and forward the command,
        or refuse it."""
        request = command.producer
        subject = self._client.about(text(request.topic))
        return self._open(Action.PRODUCE, subject, request.producer_id, command, request, now)

    def subscribe(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's SUBSCRIBE: admit the consumer and forward the
        command, or refuse it."""
        request = command.subscribe
        subscription = text(request.subscription)
        subject = self._client.about(text(request.topic), subscription)
        return self._open(Action.CONSUME, subject, request.consumer_id, command, request, now)

    def _open(
        self,
        action: Action,
        subject: Subject,
        id: int,
        command: BaseCommand,
        request: Request,
        now: float,
    ) -> Effects:
        before = self.handles.table(action).get(id)
        if before is not None and _is_taken(before, subject):
            return (Drop(), Inject(Direction.TO_CLIENT, error(request.request_id, IN_USE)))
        if before is not None and before.state in PENDING:
            return self._open_again(before, command, request)
        if before is not None and before.state is State.OPEN and action is Action.CONSUME:
            return self._renew(before, command, request)
        ended = self._ended(before)
        account = self._admitted(action, subject, again=before is not None)
        if isinstance(account, Denial):
            return (*ended, *refused(action, id, request.request_id, account))
        is_new = before is None or before.state is State.CLOSED
        state = State.OPENING if is_new else State.REOPENING
        handle = Handle(action, id, account, state)
        self.handles.put(handle)
        if action is Action.CONSUME:
            self._to_client.open_consumer(id, account)
            if self._stopwatch is not None:
                ask = self._listener.services.latencies
                latencies = partial(ask, account.subject, proven=True)
                self._stopwatch.subscribed(account, latencies, now)
        return (*ended, self._forward(handle, Purpose.OPEN, command, request))

    def _forward(
        self, handle: Handle, purpose: Purpose, command: BaseCommand, request: Request
    ) -> Replace:
        """Send the client's request on, under a request id of the gateway's own."""
        request.request_id = self.handles.awaits(handle, request.request_id, purpose)
        return Replace(encode(command))

    def _passes(self, command: BaseCommand, request: Request) -> Replace:
        """Send on a client's request about a producer or consumer that is not open here."""
        request.request_id = self.handles.passes(request.request_id)
        return Replace(encode(command))

    def _open_again(self, handle: Handle, command: BaseCommand, request: Request) -> Effects:
        """Decide another opening request while one has no response. The broker refuses it while it
        is still opening, or has responded to the first request before this one comes."""
        if len(handle.requests) >= UNANSWERED:
            return (Drop(), Inject(Direction.TO_CLIENT, error(request.request_id, BUSY)))
        return (self._forward(handle, Purpose.OPEN, command, request),)

    def _renew(self, handle: Handle, command: BaseCommand, request: Request) -> Effects:
        """Decide a SUBSCRIBE for an open consumer. Whatever its response, the broker goes on with
        the consumer that it has. So account and permits stay; new permits wait for the response.
        """
        handle.follow(Event.SUBSCRIBED_AGAIN)
        handle.confirmed = False
        if self._permits is not None:
            self._permits.park(handle.account)
        return (self._forward(handle, Purpose.OPEN, command, request),)

    def _admitted(self, action: Action, subject: Subject, *, again: bool) -> Account | Denial:
        bounds = self._listener.bounds
        if len(self.handles) >= bounds.handles or self.handles.names >= bounds.handle_names:
            return BUSY
        if not self._client.quota.fits(bytes_kept(subject)):
            return NO_ROOM
        if subject.topic is not None and is_brokers_own(subject.topic.name):
            return BROKERS_OWN
        return self._listener.services.admit(action, subject, again=again)

    def producer_success(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's PRODUCER_SUCCESS: forward it. The producer is open
        now, or waits for exclusive access."""
        response = command.producer_success
        # A producer that is not ready gets another response later: ready, or an error.
        awaited = self.handles.answered(response.request_id, more=not response.producer_ready)
        if awaited is None:
            return self._unawaited(command, response) or FORWARD
        response.request_id = awaited.request_id
        awaited.handle.confirmed = True
        event = Event.OPENED if response.producer_ready else Event.QUEUED
        self._opened(awaited.handle, Action.PRODUCE, event)
        return (Replace(encode(command)),)

    def success(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's SUCCESS. That depends on the request to which it
        responds: the client's SUBSCRIBE, UNSUBSCRIBE or close, a close by the gateway itself, or
        any other request of the client."""
        request_id = command.success.request_id
        moved = self._moved(request_id)
        if moved is not None:
            return moved
        awaited = self.handles.answered(request_id)
        if awaited is None:
            return self._unawaited(command, command.success) or FORWARD
        handle = awaited.handle
        command.success.request_id = awaited.request_id
        response = Replace(encode(command))
        if awaited.purpose is Purpose.CLOSE:
            return (response, *self._gone(handle))
        if awaited.purpose is Purpose.UNSUBSCRIBE:
            return (response, *self._ended(handle))
        self._opened(handle, Action.CONSUME, Event.OPENED)
        return (response, *self._confirmed(handle, now))

    def _unawaited(self, command: BaseCommand, response: Request) -> Effects | None:
        """Pass on the response to a request whose incarnation is over; None if it responds to
        another command of the client, which has the client's own id."""
        if not self.handles.is_own(response.request_id):
            return None
        request_id = self.handles.orphan(response.request_id)
        if request_id is None:
            return DROP
        response.request_id = request_id
        self._listener.rewriter.rewrite(command, command.type)
        return (Replace(encode(command)),)

    def _confirmed(self, handle: Handle, now: float) -> Effects:
        """Note that the broker has the consumer open: its permits count from now on."""
        handle.confirmed = True
        return () if self._permits is None else self._permits.confirm(handle.account, now)

    def _opened(self, handle: Handle, action: Action, event: Event) -> None:
        """Open an incarnation by a response that fits its action, unless the client gave it up."""
        if handle.action is not action or not handle.follow(event):
            return
        if event is Event.OPENED and action is Action.PRODUCE:
            self._to_broker.open_producer(handle.id, handle.account)
            self._to_client.open_producer(handle.id, handle.account)
            if self._stopwatch is not None:
                subject = handle.account.subject
                latencies = self._listener.services.latencies(subject, proven=True)
                self._stopwatch.opened(handle.account, latencies)

    def error(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's ERROR. That depends on the request to which it
        responds: the client's PRODUCER, SUBSCRIBE, UNSUBSCRIBE or close, a close by the gateway
        itself, or any other request of the client."""
        request_id = command.error.request_id
        moved = self._moved(request_id)
        if moved is not None:
            return moved
        awaited = self.handles.answered(request_id)
        if awaited is None:
            own = self._unawaited(command, command.error)
            return self._listener.rewriter.forwarded(command, frame) if own is None else own
        command.error.request_id = awaited.request_id
        self._listener.rewriter.rewrite(command, Kind.ERROR)
        forwarded: Effects = (Replace(encode(command)),)
        if awaited.purpose is Purpose.OPEN and self._is_opened_otherwise(awaited.handle):
            return forwarded
        if awaited.handle.state is State.RENEWING:
            self._opened(awaited.handle, awaited.handle.action, Event.OPENED)
            return (*forwarded, *self._confirmed(awaited.handle, now))
        if awaited.handle.state is State.REOPENING:
            return (*forwarded, *self._abandoned(awaited.handle))
        if awaited.purpose is Purpose.OPEN:
            return (*forwarded, *self._ended(awaited.handle))
        if awaited.purpose is Purpose.CLOSE:
            return (*forwarded, *self._gone(awaited.handle))
        if awaited.handle.state is State.UNSUBSCRIBING:
            # The broker keeps the consumer, and may not have opened it yet.
            awaited.handle.follow(Event.KEPT if awaited.handle.confirmed else Event.KEPT_UNOPENED)
        return forwarded

    def _is_opened_otherwise(self, handle: Handle) -> bool:
        """Return whether a refused opening changes nothing, because another request has opened the
        incarnation or may do so. A broker refuses to open what it is opening already.
        """
        is_open = handle.confirmed and handle.state is not State.QUEUED
        return is_open or bool(self.handles.openings(handle))

    # -- closing, by the client --------------------------------------------------------------

    def close_producer(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's CLOSE_PRODUCER: forward it, but only behind SENDs of
        the producer that wait in the gateway."""
        close = command.close_producer
        handle = self.handles.producers.get(close.producer_id)
        if handle is not None and handle.state is State.OPEN and handle.account.is_waiting:
            handle.close = frame  # if it overtook a SEND, the client would lose its connection
            return (Hold(handle.account),)
        return self._close(handle, command, close)

    def close_consumer(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's CLOSE_CONSUMER: forward it."""
        close = command.close_consumer
        return self._close(self.handles.consumers.get(close.consumer_id), command, close)

    def _close(self, handle: Handle | None, command: BaseCommand, request: Request) -> Effects:
        """Send on the client's close. Receipts and messages on their way still come."""
        if handle is None or handle.state is State.CLOSING:
            return (self._passes(command, request),)
        if handle.state is State.CLOSED:
            return (*self._tell(handle), self._passes(command, request))
        if handle.action is Action.PRODUCE:
            self._to_broker.close_producer(handle.id)
            handle.close = b""
        handle.follow(Event.CLOSED)
        return (self._forward(handle, Purpose.CLOSE, command, request),)

    def unsubscribe(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's UNSUBSCRIBE: forward it."""
        request = command.unsubscribe
        handle = self.handles.consumers.get(request.consumer_id)
        if handle is None or not handle.follow(Event.UNSUBSCRIBED):
            return (self._passes(command, request),)
        return (self._forward(handle, Purpose.UNSUBSCRIBE, command, request),)

    # -- closing, by the broker --------------------------------------------------------------

    def producer_closed(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's CLOSE_PRODUCER: forward it to the client, but first
        wait a while for the receipts that have not come yet; see `closing`."""
        handle = self.handles.producers.get(command.close_producer.producer_id)
        is_open = handle is not None and handle.state is State.OPEN
        if is_open:
            self._strays = MOST_STRAYS
        if handle is not None and is_open and handle.unanswered and not handle.requests:
            return self._await_receipts(
                handle, self._listener.rewriter.frame_for_client(command, frame), now
            )
        return self._closed(handle, command, frame)

    def _await_receipts(self, handle: Handle, close: bytes, now: float) -> Effects:
        """Keep the broker's close for its client until receipts have come; see `closing`."""
        if self._late is None:
            self._late = LateReceipts(self._tell)
        discard: Effects = (Discard(handle.account), *self._close_held(handle))
        self._stop(handle, Event.CLOSED_EARLY)
        return (Drop(), *discard, self._late.begin(handle, close, now), Attend())

    def _tell(self, handle: Handle) -> Effects:
        """Send the client the broker's close of its producer, which waited for receipts."""
        close = b"" if self._late is None else self._late.over(handle)
        return (Inject(Direction.TO_CLIENT, close), *self._ended(handle))

    def _tell_first(self, handle: Handle | None) -> Effects:
        """Send the client a close that still waits, before the broker's next command about it."""
        return self._tell(handle) if handle is not None and handle.state is State.CLOSED else ()

    def consumer_closed(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's CLOSE_CONSUMER: forward it. The consumer is
        forgotten, unless the client has asked meanwhile to open it again."""
        handle = self.handles.consumers.get(command.close_consumer.consumer_id)
        return self._closed(handle, command, frame)

    def _closed(self, handle: Handle | None, command: BaseCommand, frame: bytes) -> Effects:
        """End an incarnation that the broker has closed, and tell the client where to go on."""
        forwarded = self._listener.rewriter.forwarded(command, frame)
        if handle is not None and self._opens_yet(handle):
            return (*forwarded, *self._opens_anew(handle))
        if handle is not None and handle.awaits_opening:
            return forwarded
        if handle is not None and handle.state is State.CLOSED:
            return (*self._tell(handle), *forwarded)
        return (*forwarded, *self._ended(handle))

    def _opens_yet(self, handle: Handle) -> bool:
        """Return whether the broker has closed the previous incarnation, and opens this one by a
        request that is still in flight."""
        if handle.state in REPLACING:
            return True
        openings = len(self.handles.openings(handle))
        return (
            openings > 1 if handle.state in PENDING else handle.state is State.OPEN and openings > 0
        )

    def _opens_anew(self, handle: Handle) -> Effects:
        """Go back to opening after the close of the previous incarnation."""
        handle.confirmed = False
        if self._permits is not None:
            self._permits.forget(handle.account)
        if handle.state in PENDING:
            handle.follow(Event.ONE_BEFORE_CLOSED)
            return ()
        if handle.close:
            return self._give_way(handle)
        self._stop(handle, Event.ONE_BEFORE_CLOSED)
        return (Discard(handle.account),)

    def migrated(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Forward a TOPIC_MIGRATED, in which the broker's URL was replaced by that of the other
        cluster's gateway. If a close of the same producer still waits for receipts, the close is
        sent first."""
        return (*self._tell_first(self._migrating(command)), Replace(encode(command)))

    def _migrating(self, command: BaseCommand) -> Handle | None:
        news = command.topicMigrated
        of_producer = news.resource_type == CommandTopicMigrated.Producer
        table = self.handles.table(Action.PRODUCE if of_producer else Action.CONSUME)
        return table.get(news.resource_id)

    def withhold_migration(self, command: BaseCommand) -> Effects:
        """Return the effects that withhold a TOPIC_MIGRATED, because no gateway of the other
        cluster is known.

        The broker may send the command instead of a response to PRODUCER or SUBSCRIBE. Then the
        gateway responds with an ERROR, or the client would wait.
        """
        handle = self._migrating(command)
        if handle is None or handle.state not in PENDING or not handle.requests:
            return DROP
        request_ids = self.handles.client_ids(handle)
        errors = (
            Inject(Direction.TO_CLIENT, error(request_id, MIGRATED)) for request_id in request_ids
        )
        effects: Effects = (Drop(), *errors)
        # If there is a previous incarnation, it is meant, and the broker will open this one.
        has_one_before = handle.state in REPLACING
        return (*effects, *self._abandoned(handle, handle.requests if has_one_before else ()))

    # -- SENDs and their responses -------------------------------------------------------------

    def send(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with a SEND at which the scanner stopped: forward, hold, refuse or drop
        it. `frame`: all of it, or the head of a large one."""
        handle = self.handles.producers.get(command.send.producer_id)
        size = HEAD.unpack_from(frame)[0] + 4
        is_whole = size == len(frame)
        if handle is None or handle.state is not State.OPEN:
            return self._drop(frame, size)
        account = handle.account
        messages = max(1, command.send.num_messages)
        waits = account.held and not self._listener.services.wants(account)
        if waits and not is_whole:
            if self._large is not account:
                self._large, self._large_since = account, now
            account.needs = size
            if now < self._large_since + LONGEST_WAIT or account.queued:
                return (Await(account), Postpone(self._look_again(now)))
            detail = f"a SEND of {size} bytes that waited too long for a limit"
            return (End(EndReason.OVER_LIMIT, detail=detail),)
        if waits:
            if self._client.takes_refusals and is_refused(account, messages, len(frame)):
                account.refused += 1
                return (Drop(), Refuse(account, refusal(command)))
            return (Hold(account),)
        account.add(messages, size)
        if not is_whole:
            self._large = None
            account.needs = 0
            self._to_broker.go_on(frame, account)
        return FORWARD

    def _drop(self, frame: bytes, size: int) -> Effects:
        """Return what to do with a SEND of a producer that is not open: drop it. The client repeats
        it elsewhere, since it gets no receipt, and is charged there. Raises `PeerError` if more of
        them come than any close explains."""
        self._strays -= size
        if self._strays < 0:
            raise PeerError("a SEND of a producer that is not open")
        if len(frame) == size:
            return DROP
        self._large = None
        self._to_broker.go_on(frame, None)
        return (Drop(owed=True),)

    def _look_again(self, now: float) -> float:
        """Return when a large SEND that waits is decided again, if nothing happens before."""
        longest = self._large_since + LONGEST_WAIT
        return min(now + LOOK, longest) if now < longest else now + LOOK

    def send_error(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the broker's SEND_ERROR: forward it, and count it as a receipt."""
        handle = self.handles.producers.get(command.send_error.producer_id)
        if handle is not None:
            handle.account.receipts += 1  # no other response to that SEND will come
            handle.account.errors += 1
        return (*self._tell_first(handle), *self._listener.rewriter.forwarded(command, frame))

    # -- permits -----------------------------------------------------------------------------

    def flow(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's FLOW: forward as many permits as limits allow. A FLOW
        is a stop frame only if rules may limit clients."""
        handle = self.handles.consumers.get(command.flow.consumer_id)
        if handle is None or handle.state is State.ABANDONED or self._permits is None:
            return DROP  # the broker has no such consumer, or its client does not know of it
        permits = command.flow.messagePermits
        handle.account.asked += permits
        if permits > MOST_PERMITS:
            raise PeerError(f"a FLOW of {permits} permits")
        if not handle.confirmed:
            return self._permits.ask_early(handle, permits)
        return self._permits.ask(handle.id, handle.account, permits, now)

    def delivered(self, now: float) -> Effects | None:
        """See `contract.Holding`."""
        more = None if self._permits is None else self._permits.delivered(now)
        if self._large is not None:
            resume = () if self._large.held else (Resume(Direction.TO_BROKER),)
            more = (*(more or ()), *resume)
        if not self._late:
            return more
        closes = tuple(effect for handle in self._late.complete() for effect in self._tell(handle))
        return (*closes, *(more or ()))

    # -- the end of one ----------------------------------------------------------------------

    def _abandoned(self, handle: Handle, unanswered: Iterable[int] = ()) -> Effects:
        """Abandon an incarnation that its client knows to be gone; the broker may close it later.

        That close does not mean the incarnation that the client opens next. `unanswered`: the
        requests that may yet open this one. A consumer keeps its account, since messages for its
        permits may still come.
        """
        handle.follow(Event.ABANDONED)
        self.handles.keep(handle, unanswered)
        if handle.action is Action.PRODUCE:
            return self._settled(handle)
        self._forget_permits(handle)
        return (Discard(handle.account),)

    def _gone(self, handle: Handle) -> Effects:
        """End an incarnation after the broker's response to the client's close. The broker may
        still open one that was closed while being opened: 4.2.4 responds to the close first, and
        then opens.
        """
        opening = self.handles.openings(handle)
        is_gone = handle.confirmed or not opening
        return self._ended(handle) if is_gone else self._abandoned(handle, opening)

    def _ended(self, handle: Handle | None) -> Effects:
        """Forget an incarnation that is over."""
        if handle is None:
            return ()
        self.handles.remove(handle)
        return self._settled(handle)

    def _settled(self, handle: Handle) -> Effects:
        """Stop counting and sending for an ended incarnation, and give its account back.

        If the client's close still waits, it goes on, because the client awaits its response.
        """
        if handle.action is Action.PRODUCE:
            self._to_broker.close_producer(handle.id)
            self._to_client.close_producer(handle.id)
            if self._late is not None:
                self._late.over(handle)
        else:
            self._to_client.close_consumer(handle.id)
        self._forget_permits(handle)
        if not handle.released:
            handle.released = True
            if self._stopwatch is not None:
                self._stopwatch.closed(handle.account)
            self._listener.services.release(handle.account)
        return (Discard(handle.account), *self._close_held(handle))

    def _close_held(self, handle: Handle) -> Effects:
        """Pass on the client's close that waited behind held frames, if there is one."""
        if not handle.close:
            return ()
        command = decode(handle.close)
        handle.close = b""
        passes = self._passes(command, command.close_producer)
        return (Inject(Direction.TO_BROKER, passes.data),)

    def _forget_permits(self, handle: Handle) -> None:
        if self._permits is not None:
            self._permits.forget(handle.account)
        if self._leaving is not None:
            self._leaving.over(handle)

    def close(self) -> bool:
        """See `contract.Session`."""
        for handle in tuple(islice(self.handles, CLOSED_AT_ONCE)):
            self._ended(handle)
        return len(self.handles) > 0

    # -- reset -------------------------------------------------------------------------------

    def reset(self, account: Account) -> Effects | None:
        """See `contract.Holding`. Nothing is sent to the broker: the client finds the producer
        still open there, and repeats the SENDs without receipts.
        """
        handle = self.handles.of(account)
        if handle is None or handle.action is not Action.PRODUCE:
            return None
        if handle.state not in RESETTABLE:
            return None
        if handle.close:
            return self._give_way(handle)
        discard: Effects = (Discard(account),) if handle.state is State.OPEN else ()
        self._stop(handle, Event.RESET)
        if handle.unanswered:
            return discard
        close = encode(close_command(handle.action, handle.id))
        return (*discard, Inject(Direction.TO_CLIENT, close), *self._abandoned(handle))

    # -- leaving -----------------------------------------------------------------------------

    def leave(self, now: float) -> tuple[Effects, bool]:
        """Take one more step of moving all producers and consumers to another gateway; see
        `closing` for the order of steps. Return the effects, and whether some producers or
        consumers have not left yet."""
        leaving = self._leaving = self._leaving or self._begin_leaving()
        handles = tuple(islice(self._to_leave or (), LEFT_AT_ONCE))
        if not handles:
            self._to_leave = iter(tuple(self.handles))
            handles = tuple(islice(self._to_leave, LEFT_AT_ONCE))
        effects = [effect for handle in handles for effect in self._leave(leaving, handle, now)]
        return tuple(effects), not self.handles.are_left

    @property
    def have_left(self) -> bool:
        """Return whether the client is being moved to another gateway, and all its producers and
        consumers have left."""
        return self._to_leave is not None and self.handles.are_left

    # -- revoking ----------------------------------------------------------------------------

    def revoke(self, account: Account, now: float) -> Effects:
        """See `contract.Session`. The close goes to the broker first, then to the client. A
        producer or consumer that is being opened is closed once it is open."""
        handle = self.handles.of(account)
        if handle is None or handle.state in ENDING:
            return ()
        if handle.state not in SETTLED:
            return (Later(now + REVOKED_AGAIN, partial(self.revoke, account)),)
        if handle.close:
            return self._give_way(handle)
        leaving = self._leaving = self._leaving or self._begin_leaving()
        self._stop(handle, Event.MOVED)
        close = leaving.close(handle, now, revoked=True)
        timeout = Later(now + PATIENCE, partial(self._revoked_late, handle))
        return (Discard(account), Inject(Direction.TO_BROKER, close), timeout)

    def _revoked_late(self, handle: Handle, now: float) -> Effects:
        """Tell the client without the broker's response, if that takes too long."""
        if self._leaving is None or self.handles.of(handle.account) is not handle:
            return ()
        if handle.state is not State.MOVING:
            return ()
        close = Inject(Direction.TO_CLIENT, self._leaving.close_for_client(handle))
        return (close, *self._abandoned(handle))

    def _begin_leaving(self) -> Leaving:
        listener = self._listener
        return Leaving(listener.rewriter, self._broker, self.handles.draw)

    def _leave(self, leaving: Leaving, handle: Handle, now: float) -> Effects:
        if self.handles.of(handle.account) is not handle:
            return ()  # it ended since this round began
        if handle.state is State.CLOSED:
            return self._tell(handle)
        if handle.close:
            return self._give_way(handle)
        discard: Effects = ()
        if handle.state in SETTLED:
            leaving.begin(handle, now)
            self._stop(handle, Event.LEFT)
            discard = (Discard(handle.account),)
        late = leaving.is_late(handle, now)
        if handle.state is State.LEAVING and (late or not handle.unanswered):
            handle.follow(Event.MOVED)
            return (*discard, Inject(Direction.TO_BROKER, leaving.close(handle, now)))
        if handle.state is State.MOVING and late:
            close = Inject(Direction.TO_CLIENT, leaving.close_for_client(handle))
            return (close, *self._abandoned(handle))
        return discard

    def _stop(self, handle: Handle, event: Event) -> None:
        """Forward no more SENDs. A consumer's acknowledgements pass: each saves a redelivery."""
        if handle.action is Action.PRODUCE and handle.state is State.OPEN:
            self._strays = MOST_STRAYS
        handle.follow(event)
        if handle.action is Action.PRODUCE:
            self._to_broker.close_producer(handle.id)

    def _give_way(self, handle: Handle) -> Effects:
        """Close for the client, whose close waits behind held frames: it waits for no receipts."""
        close = decode(handle.close)
        (forwarded,) = self._close(handle, close, close.close_producer)
        assert isinstance(forwarded, Replace)
        return (Discard(handle.account), Inject(Direction.TO_BROKER, forwarded.data))

    def _moved(self, request_id: int) -> Effects | None:
        """Decide the broker's response to a close of the gateway's own: tell the client, unless the
        incarnation is over. None: it responds to another request."""
        leaving = self._leaving
        handle = None if leaving is None else leaving.answered(request_id)
        if leaving is None or handle is None:
            return None
        current = self.handles.table(handle.action).get(handle.id)
        if current is not handle:
            if current is not None and current.state is State.REOPENING:
                current.follow(Event.ONE_BEFORE_CLOSED)  # the next close means this incarnation
            return DROP
        if handle.state is not State.MOVING:
            return DROP
        close = Inject(Direction.TO_CLIENT, leaving.close_for_client(handle))
        return (Drop(), close, *self._ended(handle))


def _is_taken(before: Handle, subject: Subject) -> bool:
    """Return whether an id cannot be opened now: the id is open for another topic, or the broker
    may still have the consumer with its permits."""
    if before.state is State.UNSUBSCRIBING:
        return True
    return before.state is not State.CLOSED and not before.is_for(subject)
