"""What each event does to the producers and consumers of one pair.

docs/protocols/pulsar.md has the tables: state x event to effects and the next state. Each method
here is one event. It changes the states, keeps both scanners and the accounts in step with them,
and answers with effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol

from gateway.errors import PeerError
from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Attend,
    Denial,
    Direction,
    Discard,
    Drop,
    Effects,
    Hold,
    Inject,
    Later,
    Refuse,
    Replace,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandTopicMigrated
from gateway.wire.pulsar.closing import PATIENCE, LateReceipts, Leaving, closing
from gateway.wire.pulsar.commands import (
    BROKERS_OWN,
    BUSY,
    IN_USE,
    MIGRATED,
    NO_REQUEST,
    NO_ROOM,
    decode,
    encode,
    error,
    refused,
    text,
)
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.ids import Asked, Handle, Handles, bytes_kept
from gateway.wire.pulsar.refusing import is_refused, refusal
from gateway.wire.pulsar.scanning import Scanners
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
from gateway.wire.pulsar.trickle import MOST_PERMITS, Trickles
from gateway.wire.subject import Subject

CLOSED_AT_ONCE = 256
"""Incarnations that are ended in one step when the pair is over, 10 µs each: a connection may have
20,000, and thousands of connections may end at once."""

LEFT_AT_ONCE = 256
"""Incarnations that take a step of leaving at a time."""

REVOKED_AGAIN = 0.1
"""Seconds until a revoked producer or consumer is looked at again that is still being opened: the
broker's answer takes milliseconds."""

UNANSWERED = 16
"""Of one producer or consumer without an answer: each is kept until that comes. A client asks again
when one has taken 30 s."""


class Request(Protocol):
    """A command that the broker answers, by its request id."""

    request_id: int


class Incarnations:
    """All of one pair. `broker`: whose connection it is; None: of whichever a gateway chose."""

    __slots__ = (
        "_broker",
        "_client",
        "_late",
        "_leaving",
        "_listener",
        "_to_broker",
        "_to_client",
        "_to_leave",
        "_trickles",
        "handles",
    )

    def __init__(
        self,
        listener: ListenerContext,
        client: Client,
        broker: Address | None,
        scanners: Scanners,
    ) -> None:
        self.handles = Handles(listener.first_request(), client.allotment)
        self._listener = listener
        self._client = client
        self._broker = broker
        self._to_broker, self._to_client = scanners
        self._trickles = Trickles(listener.services) if listener.limited else None
        self._leaving: Leaving | None = None  # made when they are needed: idle pairs are many
        self._late: LateReceipts | None = None
        self._to_leave: Iterator[Handle] | None = None  # in this round of steps

    # -- opening -----------------------------------------------------------------------------

    def producer(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        request = command.producer
        subject = self._client.about(text(request.topic))
        return self._open(Action.PRODUCE, subject, request.producer_id, command, request)

    def subscribe(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        request = command.subscribe
        subscription = text(request.subscription)
        subject = self._client.about(text(request.topic), subscription)
        return self._open(Action.CONSUME, subject, request.consumer_id, command, request)

    def _open(
        self, action: Action, subject: Subject, id: int, command: BaseCommand, request: Request
    ) -> Effects:
        before = self.handles.table(action).get(id)
        if before is not None and _is_taken(before, subject):
            return (Drop(), Inject(Direction.TO_CLIENT, error(request.request_id, IN_USE)))
        if before is not None and before.state in PENDING:
            return self._ask_again(before, command, request)
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
        return (*ended, self._asked(handle, Asked.OPEN, command, request))

    def _asked(
        self, handle: Handle, asked: Asked, command: BaseCommand, request: Request
    ) -> Replace:
        """Ask the broker what the client asks, under a request id of the gateway's own."""
        request.request_id = self.handles.awaits(handle, request.request_id, asked)
        return Replace(encode(command))

    def _passes(self, command: BaseCommand, request: Request) -> Replace:
        """Ask the broker what the client asks about nothing that is open here."""
        request.request_id = self.handles.passes(request.request_id)
        return Replace(encode(command))

    def _ask_again(self, handle: Handle, command: BaseCommand, request: Request) -> Effects:
        """The broker goes on with what it is opening, and refuses this request, or it is done with
        that before this one comes."""
        if len(handle.requests) >= UNANSWERED:
            return (Drop(), Inject(Direction.TO_CLIENT, error(request.request_id, BUSY)))
        return (self._asked(handle, Asked.OPEN, command, request),)

    def _renew(self, handle: Handle, command: BaseCommand, request: Request) -> Effects:
        """The client subscribes a consumer again that is open. Whatever the broker answers, it
        goes on with what it has, so the account and the permits stay; new ones wait for the answer.
        """
        handle.follow(Event.SUBSCRIBED_AGAIN)
        handle.confirmed = False
        if self._trickles is not None:
            self._trickles.park(handle.account)
        return (self._asked(handle, Asked.OPEN, command, request),)

    def _admitted(self, action: Action, subject: Subject, *, again: bool) -> Account | Denial:
        bounds = self._listener.bounds
        if len(self.handles) >= bounds.handles or self.handles.names >= bounds.handle_names:
            return BUSY
        if not self._client.allotment.fits(bytes_kept(subject)):
            return NO_ROOM
        if subject.topic is not None and is_brokers_own(subject.topic.name):
            return BROKERS_OWN
        return self._listener.services.admit(action, subject, again=again)

    def producer_success(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        answer = command.producer_success
        # One that is not ready is answered once more, by yes or no.
        awaited = self.handles.answered(answer.request_id, more=not answer.producer_ready)
        if awaited is None:
            return self._unawaited(command, answer) or FORWARD
        answer.request_id = awaited.request_id
        awaited.handle.confirmed = True
        event = Event.OPENED if answer.producer_ready else Event.QUEUED
        self._opened(awaited.handle, Action.PRODUCE, event)
        return (Replace(encode(command)),)

    def success(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        request_id = command.success.request_id
        if self._is_ours(request_id):
            return self._closed_for_us(request_id)
        awaited = self.handles.answered(request_id)
        if awaited is None:
            return self._unawaited(command, command.success) or FORWARD
        handle = awaited.handle
        command.success.request_id = awaited.request_id
        told = Replace(encode(command))
        if awaited.asked is Asked.CLOSE:
            return (told, *self._gone(handle))
        if awaited.asked is Asked.UNSUBSCRIBE:
            return (told, *self._ended(handle))
        self._opened(handle, Action.CONSUME, Event.OPENED)
        return (told, *self._confirmed(handle, now))

    def _unawaited(self, command: BaseCommand, answer: Request) -> Effects | None:
        """Pass on the answer to a request whose incarnation is over; None if it is to another
        command of the client, under the client's own id."""
        if not self.handles.is_own(answer.request_id):
            return None
        request_id = self.handles.orphan(answer.request_id)
        if request_id is None:
            return DROP
        answer.request_id = request_id
        self._listener.veil.hide(command, command.type)
        return (Replace(encode(command)),)

    def _confirmed(self, handle: Handle, now: float) -> Effects:
        """The broker has it open: a consumer's permits count from now on."""
        handle.confirmed = True
        return () if self._trickles is None else self._trickles.confirm(handle.account, now)

    def _opened(self, handle: Handle, action: Action, event: Event) -> None:
        """By the answer that suits its action, unless the client gave up meanwhile."""
        if handle.action is not action or not handle.follow(event):
            return
        if event is Event.OPENED and action is Action.PRODUCE:
            self._to_broker.open_producer(handle.id, handle.account)
            self._to_client.open_producer(handle.id, handle.account)

    def error(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """The broker's no, to whatever was asked; some of it is not of this room."""
        request_id = command.error.request_id
        if self._is_ours(request_id):
            return self._closed_for_us(request_id)
        awaited = self.handles.answered(request_id)
        if awaited is None:
            own = self._unawaited(command, command.error)
            return self._listener.veil.hidden(command, frame) if own is None else own
        command.error.request_id = awaited.request_id
        self._listener.veil.hide(command, Kind.ERROR)
        hidden: Effects = (Replace(encode(command)),)
        if awaited.asked is Asked.OPEN and self._is_asked_again(awaited.handle):
            return hidden
        if awaited.handle.state is State.RENEWING:
            self._opened(awaited.handle, awaited.handle.action, Event.OPENED)
            return (*hidden, *self._confirmed(awaited.handle, now))
        if awaited.handle.state is State.REOPENING:
            return (*hidden, *self._abandoned(awaited.handle))
        if awaited.asked is Asked.OPEN:
            return (*hidden, *self._ended(awaited.handle))
        if awaited.asked is Asked.CLOSE:
            return (*hidden, *self._gone(awaited.handle))
        if awaited.handle.state is State.UNSUBSCRIBING:
            # The broker keeps what it does not unsubscribe, and may not have opened it yet.
            awaited.handle.follow(Event.KEPT if awaited.handle.confirmed else Event.KEPT_UNOPENED)
        return hidden

    def _is_asked_again(self, handle: Handle) -> bool:
        """Whether a no to one request changes nothing: another one has opened it, or may.

        A broker refuses to open what it is opening already.
        """
        is_open = handle.confirmed and handle.state is not State.QUEUED
        return is_open or bool(self.handles.openings(handle))

    # -- closing, by the client --------------------------------------------------------------

    def close_producer(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        close = command.close_producer
        handle = self.handles.producers.get(close.producer_id)
        if handle is not None and handle.state is State.OPEN and handle.account.is_waiting:
            handle.close = frame  # an overtaken SEND would cost the client its connection
            return (Hold(handle.account),)
        return self._close(handle, command, close)

    def close_consumer(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        close = command.close_consumer
        return self._close(self.handles.consumers.get(close.consumer_id), command, close)

    def _close(self, handle: Handle | None, command: BaseCommand, request: Request) -> Effects:
        """Nothing more is sent, but receipts and messages on their way still come."""
        if handle is None or handle.state is State.CLOSING:
            return (self._passes(command, request),)
        if handle.state is State.CLOSED:
            return (*self._tell(handle), self._passes(command, request))
        if handle.action is Action.PRODUCE:
            self._to_broker.close_producer(handle.id)
            handle.close = b""
        handle.follow(Event.CLOSED)
        return (self._asked(handle, Asked.CLOSE, command, request),)

    def unsubscribe(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        request = command.unsubscribe
        handle = self.handles.consumers.get(request.consumer_id)
        if handle is None or not handle.follow(Event.UNSUBSCRIBED):
            return (self._passes(command, request),)
        return (self._asked(handle, Asked.UNSUBSCRIBE, command, request),)

    # -- closing, by the broker --------------------------------------------------------------

    def producer_closed(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        handle = self.handles.producers.get(command.close_producer.producer_id)
        is_open = handle is not None and handle.state is State.OPEN
        if handle is not None and is_open and handle.unanswered and not handle.requests:
            return self._await_receipts(handle, self._listener.veil.shown(command, frame), now)
        return self._closed(handle, command, frame)

    def _await_receipts(self, handle: Handle, told: bytes, now: float) -> Effects:
        """Its client is told later; see `closing`."""
        if self._late is None:
            self._late = LateReceipts(self._tell)
        discard: Effects = (Discard(handle.account), *self._close_held(handle))
        self._stop(handle, Event.CLOSED_EARLY)
        return (Drop(), *discard, self._late.begin(handle, told, now), Attend())

    def _tell(self, handle: Handle) -> Effects:
        """Its client hears that it is closed."""
        told = b"" if self._late is None else self._late.over(handle)
        return (Inject(Direction.TO_CLIENT, told), *self._ended(handle))

    def _tell_first(self, handle: Handle | None) -> Effects:
        """What the broker says of a producer now comes behind its close, if that still waits."""
        return self._tell(handle) if handle is not None and handle.state is State.CLOSED else ()

    def consumer_closed(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        handle = self.handles.consumers.get(command.close_consumer.consumer_id)
        return self._closed(handle, command, frame)

    def _closed(self, handle: Handle | None, command: BaseCommand, frame: bytes) -> Effects:
        """The incarnation is over, and the client is told where to go on."""
        hidden = self._listener.veil.hidden(command, frame)
        if handle is not None and self._opens_yet(handle):
            return (*hidden, *self._opens_anew(handle))
        if handle is not None and handle.awaits_opening:
            return hidden
        if handle is not None and handle.state is State.CLOSED:
            return (*self._tell(handle), *hidden)
        return (*hidden, *self._ended(handle))

    def _opens_yet(self, handle: Handle) -> bool:
        """Whether the broker has closed the one before, and opens this one by a request that it
        has not answered."""
        if handle.state in REPLACING:
            return True
        asked = len(self.handles.openings(handle))
        return asked > 1 if handle.state in PENDING else handle.state is State.OPEN and asked > 0

    def _opens_anew(self, handle: Handle) -> Effects:
        handle.confirmed = False
        if self._trickles is not None:
            self._trickles.forget(handle.account)
        if handle.state in PENDING:
            handle.follow(Event.ONE_BEFORE_CLOSED)
            return ()
        if handle.close:
            return self._give_way(handle)
        self._stop(handle, Event.ONE_BEFORE_CLOSED)
        return (Discard(handle.account),)

    def migrated(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Its topic has gone where a gateway is, of which the client is told."""
        return (*self._tell_first(self._migrating(command)), Replace(encode(command)))

    def _migrating(self, command: BaseCommand) -> Handle | None:
        news = command.topicMigrated
        of_producer = news.resource_type == CommandTopicMigrated.Producer
        table = self.handles.table(Action.PRODUCE if of_producer else Action.CONSUME)
        return table.get(news.resource_id)

    def withhold_migration(self, command: BaseCommand) -> Effects:
        """Its topic has gone where no gateway is, and the client is not told.

        This may be all that answers PRODUCER or SUBSCRIBE: then our no does, or it would wait.
        """
        handle = self._migrating(command)
        if handle is None or handle.state not in PENDING or not handle.requests:
            return DROP
        asked = self.handles.client_ids(handle)
        noes = (Inject(Direction.TO_CLIENT, error(it, MIGRATED)) for it in asked)
        told: Effects = (Drop(), *noes)
        # Meant for the incarnation before, if there is one: then the broker opens this one yet.
        has_one_before = handle.state in REPLACING
        return (*told, *self._abandoned(handle, handle.requests if has_one_before else ()))

    # -- SENDs and their answers -------------------------------------------------------------

    def send(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """One that the scanner did not let pass."""
        handle = self.handles.producers.get(command.send.producer_id)
        if handle is None or handle.state is not State.OPEN:
            return DROP  # the client sends it again to whoever gives it a receipt
        account = handle.account
        messages = max(1, command.send.num_messages)
        if account.held and not self._listener.services.wants(account):
            if self._client.takes_refusals and is_refused(account, messages, len(frame)):
                return (Drop(), Refuse(account, refusal(command)))
            return (Hold(account),)
        account.messages += messages
        account.surplus += messages - 1
        account.bytes += len(frame)
        return FORWARD

    def send_error(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        handle = self.handles.producers.get(command.send_error.producer_id)
        if handle is not None:
            handle.account.receipts += 1  # no other answer to that SEND will come
        return (*self._tell_first(handle), *self._listener.veil.hidden(command, frame))

    # -- permits -----------------------------------------------------------------------------

    def flow(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """A consumer asks for messages. Only where limits may hold."""
        handle = self.handles.consumers.get(command.flow.consumer_id)
        if handle is None or handle.state is State.ABANDONED or self._trickles is None:
            return DROP  # the broker has no such consumer, or none that its client knows of
        permits = command.flow.messagePermits
        if permits > MOST_PERMITS:
            raise PeerError(f"a FLOW of {permits} permits")
        if not handle.confirmed:
            return self._trickles.ask_early(handle, permits)
        return self._trickles.ask(handle.id, handle.account, permits, now)

    def delivered(self, now: float) -> Effects | None:
        """See `contract.Session`."""
        more = None if self._trickles is None else self._trickles.delivered(now)
        if not self._late:
            return more
        told = tuple(it for handle in self._late.complete() for it in self._tell(handle))
        return (*told, *(more or ()))

    # -- the end of one ----------------------------------------------------------------------

    def _abandoned(self, handle: Handle, unanswered: Iterable[int] = ()) -> Effects:
        """Its client knows that it is gone; the broker may still have it, and close it later.

        That close is not meant for the incarnation that the client opens next. `unanswered`: the
        requests that may open it yet. A consumer keeps its account: what it has asked for may come.
        """
        handle.follow(Event.ABANDONED)
        self.handles.keep(handle, unanswered)
        if handle.action is Action.PRODUCE:
            return self._settled(handle)
        self._forget_permits(handle)
        return (Discard(handle.account),)

    def _gone(self, handle: Handle) -> Effects:
        """The broker has closed it, for the client. One that was closed while it was being opened
        may be opened after all: 4.2.4 answers the close first, and then opens it.
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
        """Nothing of an ended incarnation is counted or sent any more.

        A close of the client's own that still waited goes on: the client awaits its answer.
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
        if self._trickles is not None:
            self._trickles.forget(handle.account)
        if self._leaving is not None:
            self._leaving.over(handle)

    def close(self) -> bool:
        """See `contract.Session`."""
        for handle in tuple(islice(self.handles, CLOSED_AT_ONCE)):
            self._ended(handle)
        return len(self.handles) > 0

    # -- reset -------------------------------------------------------------------------------

    def reset(self, account: Account) -> Effects | None:
        """See `contract.Session`: the client opens a producer again, and sends again what has no
        receipt. The broker is told nothing: it has the producer open, and says so.
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
        told = encode(closing(handle, NO_REQUEST))
        return (*discard, Inject(Direction.TO_CLIENT, told), *self._abandoned(handle))

    # -- leaving -----------------------------------------------------------------------------

    def leave(self, now: float) -> tuple[Effects, bool]:
        """One more step of moving all to another gateway, and whether somebody is still here; see
        `closing` for the order of steps.
        """
        leaving = self._leaving = self._leaving or self._begin_leaving()
        handles = tuple(islice(self._to_leave or (), LEFT_AT_ONCE))
        if not handles:
            self._to_leave = iter(tuple(self.handles))
            handles = tuple(islice(self._to_leave, LEFT_AT_ONCE))
        effects = [effect for handle in handles for effect in self._leave(leaving, handle, now)]
        return tuple(effects), not self.handles.are_left

    @property
    def have_left(self) -> bool:
        """Whether the gateway stops, and nobody is here any more."""
        return self._to_leave is not None and self.handles.are_left

    # -- revoking ----------------------------------------------------------------------------

    def revoke(self, account: Account, now: float) -> Effects:
        """See `contract.Session`: close a producer or consumer at the broker, and then at the
        client. One that is being opened is closed when it is open."""
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
        told = Later(now + PATIENCE, partial(self._revoked_late, handle))
        return (Discard(account), Inject(Direction.TO_BROKER, close), told)

    def _revoked_late(self, handle: Handle, now: float) -> Effects:
        """Tell the client without the broker's answer, which takes too long."""
        if self._leaving is None or self.handles.of(handle.account) is not handle:
            return ()
        if handle.state is not State.MOVING:
            return ()
        told = Inject(Direction.TO_CLIENT, self._leaving.told(handle))
        return (told, *self._abandoned(handle))

    def _begin_leaving(self) -> Leaving:
        listener = self._listener
        return Leaving(listener.veil, self._broker, self.handles.draw)

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
            told = Inject(Direction.TO_CLIENT, leaving.told(handle))
            return (told, *self._abandoned(handle))
        return discard

    def _stop(self, handle: Handle, event: Event) -> None:
        """Nothing more is sent for it. A consumer's acknowledgements are: each saves a repeat."""
        handle.follow(event)
        if handle.action is Action.PRODUCE:
            self._to_broker.close_producer(handle.id)

    def _give_way(self, handle: Handle) -> Effects:
        """The client closes it, behind frames that are held: it waits for no receipts."""
        close = decode(handle.close)
        (told,) = self._close(handle, close, close.close_producer)
        assert isinstance(told, Replace)
        return (Discard(handle.account), Inject(Direction.TO_BROKER, told.data))

    def _is_ours(self, request_id: int) -> bool:
        return self._leaving is not None and self._leaving.awaits(request_id)

    def _closed_for_us(self, request_id: int) -> Effects:
        """The broker's answer to a close of ours: the client is told, unless all is over."""
        leaving = self._leaving
        handle = None if leaving is None else leaving.answered(request_id)
        if leaving is None or handle is None:
            return DROP
        now = self.handles.table(handle.action).get(handle.id)
        if now is not handle:
            if now is not None and now.state is State.REOPENING:
                now.follow(Event.ONE_BEFORE_CLOSED)  # the next close is of this one
            return DROP
        if handle.state is not State.MOVING:
            return DROP
        told = Inject(Direction.TO_CLIENT, leaving.told(handle))
        return (Drop(), told, *self._ended(handle))


def _is_taken(before: Handle, subject: Subject) -> bool:
    """Whether an id cannot be opened now: for another topic, or while it is not known whether the
    broker has the consumer still, with its permits."""
    if before.state is State.UNSUBSCRIBING:
        return True
    return before.state is not State.CLOSED and not before.is_for(subject)
