"""Decides the stop frames of one pair; docs/protocols/pulsar.md holds its tables.

Each handler takes a decoded command and its frame, changes the tables of this pair, and answers
with effects. It never asks anybody who could make it wait: what is slow is a job.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import PeerError
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Account,
    Action,
    Address,
    Denial,
    Direction,
    Discard,
    Drop,
    Effects,
    EndReason,
    Forward,
    Hold,
    Inject,
    Refusal,
    Replace,
)
from gateway.wire.pulsar import renewal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import (
    BUSY,
    NO_REQUEST,
    check_request,
    decode,
    encode,
    end,
    error,
    kind_of,
    text,
)
from gateway.wire.pulsar.context import Client, Listener, Mode
from gateway.wire.pulsar.frames import KNOWN, Kind, kind_name
from gateway.wire.pulsar.ids import Asked, Handle, Handles, State
from gateway.wire.pulsar.leaving import Leaving, is_ours
from gateway.wire.pulsar.lookups import Lookups
from gateway.wire.pulsar.scan import ToBrokerScanner, ToClientScanner
from gateway.wire.pulsar.tables import ACTIONS
from gateway.wire.pulsar.topics import is_brokers_own

FRAME_PADDING = 64 * 1024
"""What a frame has beside the message that a broker's `max_message_size` bounds, in bytes."""


class PulsarSession:
    """See `contract.Session`."""

    __slots__ = (
        "_broker",
        "_client",
        "_handles",
        "_leaving",
        "_listener",
        "_lookups",
        "_to_broker",
        "_to_client",
        "collected_bound",
    )

    def __init__(
        self, listener: Listener, client: Client, broker: Address | None, max_message_size: int = 0
    ) -> None:
        self._listener = listener
        self._client = client
        self._handles = Handles()
        self._lookups = Lookups(listener, client)
        self._broker = broker
        self._leaving: Leaving | None = None  # made when it is needed: idle pairs are many
        self.collected_bound = max(listener.bounds.collected, max_message_size + FRAME_PADDING)
        unknown = listener.unknown_pass
        self._to_broker = ToBrokerScanner(ACTIONS[Direction.TO_BROKER, unknown])
        self._to_client = ToClientScanner(ACTIONS[Direction.TO_CLIENT, unknown], _STRAY)

    @property
    def scanners(self) -> tuple[ToBrokerScanner, ToClientScanner]:
        """See `contract.Session`."""
        return self._to_broker, self._to_client

    @property
    def expires_at(self) -> float | None:
        """See `contract.Session`. A forwarded credential is the broker's to ask for again."""
        return self._client.principal.expires_at if self._listener.mode is Mode.VERIFY else None

    # -- decisions ---------------------------------------------------------------------------

    def decide(self, direction: Direction, frame: bytes, now: float) -> Effects:
        """See `contract.Session`."""
        command = decode(frame)
        kind = kind_of(command, frame)
        handler = _HANDLERS[direction].get(kind)
        if handler is not None:
            return handler(self, command, frame)
        if kind in KNOWN:
            return FORWARD if direction is Direction.TO_BROKER else self._hidden(command, frame)
        return self._unknown(direction, kind)

    def _unknown(self, direction: Direction, kind: int) -> Effects:
        if self._listener.unknown_pass:
            return FORWARD
        if direction is Direction.TO_CLIENT:
            return DROP
        denial = Denial(Refusal.UNSUPPORTED, f"{kind_name(kind)} is not known to this gateway")
        return end(EndReason.UNKNOWN_COMMAND, denial)

    def _hidden(self, command: BaseCommand, frame: bytes) -> Effects:
        """To the client: without any broker's address."""
        if self._listener.veil.hide(command, kind_of(command, frame)):
            return (Replace(encode(command)),)
        return FORWARD

    # -- producers and consumers -------------------------------------------------------------

    def _producer(self, command: BaseCommand, frame: bytes) -> Effects:
        request = command.producer
        topic = text(request.topic)
        return self._open(Action.PRODUCE, request.producer_id, request.request_id, topic)

    def _subscribe(self, command: BaseCommand, frame: bytes) -> Effects:
        request = command.subscribe
        topic = text(request.topic)
        return self._open(Action.CONSUME, request.consumer_id, request.request_id, topic)

    def _open(self, action: Action, id: int, request_id: int, topic: str) -> Effects:
        check_request(request_id)
        before = self._handles.table(action).get(id)
        ended = self._ended(before)
        account = self._admitted(action, topic)
        if isinstance(account, Denial):
            return (*ended, Drop(), Inject(Direction.TO_CLIENT, error(request_id, account)))
        state = State.OPENING if before is None else State.REOPENING
        self._handles.add(Handle(action, id, account, state), request_id)
        if action is Action.CONSUME:
            self._to_client.consumers[id] = account
        return (*ended, Forward())

    def _admitted(self, action: Action, topic: str) -> Account | Denial:
        if len(self._handles) >= self._listener.bounds.handles:
            return BUSY
        if is_brokers_own(topic):
            return _BROKERS_OWN
        return self._listener.gate.admit(action, topic, self._client.principal)

    def _producer_success(self, command: BaseCommand, frame: bytes) -> Effects:
        answer = command.producer_success
        awaited = self._handles.answered(answer.request_id)
        if awaited is None:
            return FORWARD
        if not answer.producer_ready:  # the same request is answered once more, by yes or no
            self._handles.awaits(awaited.handle, answer.request_id, awaited.asked)
        state = State.OPEN if answer.producer_ready else State.QUEUED
        self._opened(awaited.handle, Action.PRODUCE, state)
        return FORWARD

    def _success(self, command: BaseCommand, frame: bytes) -> Effects:
        request_id = command.success.request_id
        if self._is_ours(request_id):
            return self._closed_for_us(request_id)
        awaited = self._handles.answered(request_id)
        if awaited is None:
            return FORWARD
        if awaited.asked is not Asked.OPEN:
            return (Forward(), *self._ended(awaited.handle))
        self._opened(awaited.handle, Action.CONSUME, State.OPEN)
        return FORWARD

    def _opened(self, handle: Handle, action: Action, state: State) -> None:
        """By the answer that suits its action, unless the client gave up meanwhile."""
        if handle.action is not action or handle.state not in _UNANSWERED:
            return
        handle.state = state
        if state is State.OPEN and action is Action.PRODUCE:
            self._to_broker.admit(handle.id, handle.account)
            self._to_client.producers[handle.id] = handle.account

    def _error(self, command: BaseCommand, frame: bytes) -> Effects:
        request_id = command.error.request_id
        if self._is_ours(request_id):
            return self._closed_for_us(request_id)
        self._lookups.failed(request_id)
        hidden = self._hidden(command, frame)
        awaited = self._handles.answered(request_id)
        if awaited is None:
            return hidden
        if awaited.handle.state is State.REOPENING:
            return (*hidden, *self._abandoned(awaited.handle))
        if awaited.asked is not Asked.UNSUBSCRIBE:
            return (*hidden, *self._ended(awaited.handle))
        if awaited.handle.state is State.UNSUBSCRIBING:
            awaited.handle.state = State.OPEN  # the broker keeps what it does not unsubscribe
        return hidden

    def _close_producer(self, command: BaseCommand, frame: bytes) -> Effects:
        close = command.close_producer
        check_request(close.request_id)
        handle = self._handles.producers.get(close.producer_id)
        if handle is not None and handle.state is State.OPEN and handle.account.held:
            handle.close = frame  # an overtaken SEND would cost the client its connection
            return (Hold(handle.account),)
        return self._close(handle, close.request_id)

    def _close_consumer(self, command: BaseCommand, frame: bytes) -> Effects:
        close = command.close_consumer
        return self._close(self._handles.consumers.get(close.consumer_id), close.request_id)

    def _close(self, handle: Handle | None, request_id: int) -> Effects:
        """The client's: nothing more is sent, but receipts and messages on their way still come."""
        check_request(request_id)
        if handle is None or handle.state is State.CLOSING:
            return FORWARD
        if handle.action is Action.PRODUCE:
            self._to_broker.forget(handle.id)
            handle.close = b""
        handle.state = State.CLOSING
        self._handles.awaits(handle, request_id, Asked.CLOSE)
        return FORWARD

    def _unsubscribe(self, command: BaseCommand, frame: bytes) -> Effects:
        request = command.unsubscribe
        check_request(request.request_id)
        handle = self._handles.consumers.get(request.consumer_id)
        if handle is not None and handle.state not in _GIVEN_UP:
            handle.state = State.UNSUBSCRIBING
            self._handles.awaits(handle, request.request_id, Asked.UNSUBSCRIBE)
        return FORWARD

    def _producer_closed(self, command: BaseCommand, frame: bytes) -> Effects:
        handle = self._handles.producers.get(command.close_producer.producer_id)
        return self._closed(handle, command, frame)

    def _consumer_closed(self, command: BaseCommand, frame: bytes) -> Effects:
        handle = self._handles.consumers.get(command.close_consumer.consumer_id)
        return self._closed(handle, command, frame)

    def _closed(self, handle: Handle | None, command: BaseCommand, frame: bytes) -> Effects:
        """The broker's: the incarnation is over, and the client is told where to go on."""
        hidden = self._hidden(command, frame)
        if handle is not None and handle.state is State.REOPENING:
            handle.state = State.OPENING  # it was the one before that is closed
            return hidden
        return (*hidden, *self._ended(handle))

    def _abandoned(self, handle: Handle) -> Effects:
        """Its client knows that it is gone; the broker may still have it, and close it later.

        That close is not meant for the incarnation that the client opens next.
        """
        discard = self._ended(handle)
        handle.state = State.ABANDONED
        self._handles.table(handle.action)[handle.id] = handle
        return discard

    def _ended(self, handle: Handle | None) -> Effects:
        """Nothing of an ended incarnation is counted or sent any more.

        A close of the client's own that still waited goes on: the client awaits its answer.
        """
        if handle is None:
            return ()
        self._handles.remove(handle)
        if handle.action is Action.PRODUCE:
            self._to_broker.forget(handle.id)
            self._to_client.producers.pop(handle.id, None)
        else:
            self._to_client.consumers.pop(handle.id, None)
        if self._leaving is not None:
            self._leaving.over(handle)
        if not handle.released:
            handle.released = True
            self._listener.gate.release(handle.account)
        discard = (Discard(handle.account),)
        return (*discard, Inject(Direction.TO_BROKER, handle.close)) if handle.close else discard

    # -- leaving -----------------------------------------------------------------------------

    def leave(self, now: float) -> Effects | None:
        """See `contract.Session`, and `leaving` for the order of steps."""
        leaving = self._leaving = self._leaving or self._begin_leaving()
        handles = tuple(self._handles)
        effects = [effect for handle in handles for effect in self._leave(leaving, handle, now)]
        here = any(handle.state is not State.ABANDONED for handle in self._handles)
        is_empty = not here and not self._lookups
        return None if is_empty and not effects else tuple(effects)

    def _begin_leaving(self) -> Leaving:
        listener = self._listener
        return Leaving(listener.veil, self._broker, listener.own_requests)

    def _leave(self, leaving: Leaving, handle: Handle, now: float) -> Effects:
        if handle.close:
            return self._give_way(handle)
        discard: Effects = ()
        if handle.state in _SETTLED:
            leaving.begin(handle, now)
            self._stop(handle)
            discard = (Discard(handle.account),)
        late = leaving.is_late(handle, now)
        if handle.state is State.LEAVING and (late or not handle.unanswered):
            handle.state = State.MOVING
            return (*discard, Inject(Direction.TO_BROKER, leaving.close(handle, now)))
        if handle.state is State.MOVING and late:
            told = Inject(Direction.TO_CLIENT, leaving.told(handle))
            return (told, *self._abandoned(handle))
        return discard

    def _stop(self, handle: Handle) -> None:
        """Nothing more is sent for it. A consumer's acknowledgements are: each saves a repeat."""
        handle.state = State.LEAVING
        if handle.action is Action.PRODUCE:
            self._to_broker.forget(handle.id)

    def _give_way(self, handle: Handle) -> Effects:
        """The client closes it, behind frames that are held: it waits for no receipts."""
        close = handle.close
        self._close(handle, decode(close).close_producer.request_id)
        return (Discard(handle.account), Inject(Direction.TO_BROKER, close))

    def _is_ours(self, request_id: int) -> bool:
        awaited = self._leaving is not None and self._leaving.awaits(request_id)
        return awaited or is_ours(request_id)

    def _closed_for_us(self, request_id: int) -> Effects:
        """The broker's answer to a close of ours: the client is told, unless all is over."""
        leaving = self._leaving
        handle = None if leaving is None else leaving.answered(request_id)
        if leaving is None or handle is None or handle.state is not State.MOVING:
            return DROP
        if self._handles.table(handle.action).get(handle.id) is not handle:
            return DROP
        told = Inject(Direction.TO_CLIENT, leaving.told(handle))
        return (Drop(), told, *self._ended(handle))

    # -- SENDs that the scanner did not let pass ---------------------------------------------

    def _send(self, command: BaseCommand, frame: bytes) -> Effects:
        handle = self._handles.producers.get(command.send.producer_id)
        if handle is None or handle.state is not State.OPEN:
            return DROP  # the client sends it again to whoever gives it a receipt
        account = handle.account
        if account.held:
            return (Hold(account),)
        messages = max(1, command.send.num_messages)
        account.messages += messages
        account.surplus += messages - 1
        account.bytes += len(frame)
        return FORWARD

    def _send_error(self, command: BaseCommand, frame: bytes) -> Effects:
        handle = self._handles.producers.get(command.send_error.producer_id)
        if handle is not None:
            handle.account.receipts += 1  # no other answer to that SEND will come
        return self._hidden(command, frame)

    # -- lookups -----------------------------------------------------------------------------

    def _lookup(self, command: BaseCommand, frame: bytes) -> Effects:
        return self._lookups.ask(command, frame)

    def _lookup_response(self, command: BaseCommand, frame: bytes) -> Effects:
        return self._lookups.answered(command)

    def resume(self, token: int, result: bytes | Denial, now: float) -> Effects:
        """See `contract.Session`: a chased lookup has its answer."""
        return self._lookups.resume(token, result)

    # -- identity ----------------------------------------------------------------------------

    def _second_connect(self, command: BaseCommand, frame: bytes) -> Effects:
        raise PeerError("a second CONNECT on one connection")

    def _auth_challenge(self, command: BaseCommand, frame: bytes) -> Effects:
        return renewal.challenged(self._listener, self._client)

    def _auth_response(self, command: BaseCommand, frame: bytes) -> Effects:
        return renewal.shown(self._listener, self._client, command)

    def _migrated(self, command: BaseCommand, frame: bytes) -> Effects:
        """The topic has gone to another cluster: to its gateway, or the client is not told."""
        known = self._listener.veil.lead_to_other_cluster(command)
        return (Replace(encode(command)),) if known else DROP

    # -- the end -----------------------------------------------------------------------------

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`. Who is at fault is told; others just reconnect."""
        refusal = _TOLD.get(reason)
        return b"" if refusal is None else error(NO_REQUEST, Denial(refusal, detail))

    def close(self) -> None:
        """See `contract.Session`."""
        for handle in tuple(self._handles):
            self._ended(handle)
        self._lookups.clear()


_STRAY = Account("", Action.CONSUME)
"""MESSAGEs of consumers that were closed meanwhile: of no topic, and on nobody's bill."""

_BROKERS_OWN = Denial(Refusal.UNAUTHORIZED, "topics of tenant pulsar are the brokers' own")

_UNANSWERED = frozenset({State.OPENING, State.REOPENING, State.QUEUED})
_GIVEN_UP = frozenset({State.UNSUBSCRIBING, State.CLOSING})
_SETTLED = frozenset({State.QUEUED, State.OPEN})

_TOLD = {
    EndReason.CLIENT_VIOLATION: Refusal.UNSUPPORTED,
    EndReason.FRAME_TOO_LARGE: Refusal.UNSUPPORTED,
    EndReason.CREDENTIAL_EXPIRED: Refusal.UNAUTHENTICATED,
}


Handler = Callable[[PulsarSession, BaseCommand, bytes], Effects]

_HANDLERS: dict[Direction, dict[int, Handler]] = {
    Direction.TO_BROKER: {
        Kind.CONNECT: PulsarSession._second_connect,
        Kind.PRODUCER: PulsarSession._producer,
        Kind.SUBSCRIBE: PulsarSession._subscribe,
        Kind.SEND: PulsarSession._send,
        Kind.CLOSE_PRODUCER: PulsarSession._close_producer,
        Kind.CLOSE_CONSUMER: PulsarSession._close_consumer,
        Kind.UNSUBSCRIBE: PulsarSession._unsubscribe,
        Kind.LOOKUP: PulsarSession._lookup,
        Kind.AUTH_RESPONSE: PulsarSession._auth_response,
    },
    Direction.TO_CLIENT: {
        Kind.PRODUCER_SUCCESS: PulsarSession._producer_success,
        Kind.SUCCESS: PulsarSession._success,
        Kind.ERROR: PulsarSession._error,
        Kind.SEND_ERROR: PulsarSession._send_error,
        Kind.CLOSE_PRODUCER: PulsarSession._producer_closed,
        Kind.CLOSE_CONSUMER: PulsarSession._consumer_closed,
        Kind.LOOKUP_RESPONSE: PulsarSession._lookup_response,
        Kind.AUTH_CHALLENGE: PulsarSession._auth_challenge,
        Kind.TOPIC_MIGRATED: PulsarSession._migrated,
    },
}
