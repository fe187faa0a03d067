"""Decides the stop frames of one pair; docs/protocols/pulsar.md holds its table.

Each handler takes a decoded command and its frame, changes the tables of this pair, and answers
with effects. It never asks anybody who could make it wait: what is slow is a job.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.contract import (
    DROP,
    FORWARD,
    Account,
    Action,
    Credential,
    Denial,
    Direction,
    Discard,
    Drop,
    Effects,
    End,
    EndReason,
    Forward,
    Hold,
    Inject,
    LookupOutcome,
    Refusal,
    Replace,
    Start,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import (
    BaseCommand,
    CommandLookupTopicResponse,
)
from gateway.wire.pulsar.chase import Chase, next_hop
from gateway.wire.pulsar.commands import (
    FIRST_OWN_REQUEST,
    NO_REQUEST,
    decode,
    encode,
    error,
    kind_of,
    lookup_failed,
)
from gateway.wire.pulsar.context import Client, Listener, Mode
from gateway.wire.pulsar.frames import KNOWN, Kind, kind_name
from gateway.wire.pulsar.ids import Handle, Handles, State
from gateway.wire.pulsar.scan import ToBrokerScanner, ToClientScanner
from gateway.wire.pulsar.tables import ACTIONS

FRAME_PADDING = 64 * 1024
"""What a frame has beside the message that a broker's `max_message_size` bounds, in bytes."""

_BUSY = Denial(Refusal.TOO_MANY, "too many requests wait on this connection")


class PulsarSession:
    """See `contract.Session`."""

    __slots__ = (
        "_chases",
        "_client",
        "_handles",
        "_listener",
        "_lookups",
        "_to_broker",
        "_to_client",
        "_tokens",
        "collected_bound",
    )

    def __init__(self, listener: Listener, client: Client, max_message_size: int = 0) -> None:
        self._listener = listener
        self._client = client
        self._handles = Handles()
        self._lookups: dict[int, bytes] = {}
        self._chases: dict[int, int] = {}
        self._tokens = count()
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
        text = f"{kind_name(kind)} is not known to this gateway"
        return (Drop(), _end(EndReason.UNKNOWN_COMMAND, Refusal.UNSUPPORTED, text))

    def _hidden(self, command: BaseCommand, frame: bytes) -> Effects:
        """To the client: without any broker's address."""
        if self._listener.veil.hide(command, kind_of(command, frame)):
            return (Replace(encode(command)),)
        return FORWARD

    # -- producers and consumers -------------------------------------------------------------

    def _producer(self, command: BaseCommand, frame: bytes) -> Effects:
        request = command.producer
        return self._open(Action.PRODUCE, request.producer_id, request.request_id, request.topic)

    def _subscribe(self, command: BaseCommand, frame: bytes) -> Effects:
        request = command.subscribe
        return self._open(Action.CONSUME, request.consumer_id, request.request_id, request.topic)

    def _open(self, action: Action, id: int, request_id: int, topic: str) -> Effects:  # noqa: A002
        _check_request(request_id)
        discard = self._incarnation_ends(self._handles.table(action).get(id))
        if len(self._handles) >= self._listener.bounds.handles:
            return (Drop(), Inject(Direction.TO_CLIENT, error(request_id, _BUSY)), *discard)
        account = self._listener.gate.admit(action, topic, self._client.principal)
        if isinstance(account, Denial):
            return (Drop(), Inject(Direction.TO_CLIENT, error(request_id, account)), *discard)
        self._handles.add(Handle(action, id, account), request_id)
        if action is Action.CONSUME:
            self._to_client.consumers[id] = account
        return (Forward(), *discard)

    def _producer_success(self, command: BaseCommand, frame: bytes) -> Effects:
        answer = command.producer_success
        handle = self._handles.answered(answer.request_id)
        if handle is None:
            return FORWARD
        if not answer.producer_ready:
            handle.state = State.QUEUED
            self._handles.awaits(handle, answer.request_id)
            return FORWARD
        handle.state = State.OPEN
        self._to_broker.admit(handle.id, handle.account)
        self._to_client.producers[handle.id] = handle.account
        return FORWARD

    def _success(self, command: BaseCommand, frame: bytes) -> Effects:
        handle = self._handles.answered(command.success.request_id)
        if handle is None:
            return FORWARD
        if handle.state in (State.CLOSING, State.UNSUBSCRIBING):
            return (Forward(), *self._incarnation_ends(handle))
        handle.state = State.OPEN
        return FORWARD

    def _error(self, command: BaseCommand, frame: bytes) -> Effects:
        handle = self._handles.answered(command.error.request_id)
        if handle is not None and handle.state is State.UNSUBSCRIBING:
            handle.state = State.OPEN  # the broker keeps a consumer that it does not unsubscribe
            return self._hidden(command, frame)
        return (*self._hidden(command, frame), *self._incarnation_ends(handle))

    def _close(self, command: BaseCommand, frame: bytes) -> Effects:
        """The client's: nothing more is sent, but receipts and messages on their way still come."""
        close = _closed_id(command)
        handle = self._handles.table(close.action).get(close.id)
        if handle is not None:
            if handle.action is Action.PRODUCE:
                self._to_broker.forget(handle.id)
            handle.state = close.state
            self._handles.awaits(handle, close.request_id)
        return FORWARD

    def _closed(self, command: BaseCommand, frame: bytes) -> Effects:
        """The broker's: the incarnation is over, and the client is told where to go on."""
        close = _closed_id(command)
        handle = self._handles.table(close.action).get(close.id)
        return (*self._hidden(command, frame), *self._incarnation_ends(handle))

    def _incarnation_ends(self, handle: Handle | None) -> Effects:
        """Nothing of an ended incarnation is counted or sent any more."""
        if handle is None:
            return ()
        self._handles.remove(handle)
        if handle.action is Action.PRODUCE:
            self._to_broker.forget(handle.id)
            self._to_client.producers.pop(handle.id, None)
        else:
            self._to_client.consumers.pop(handle.id, None)
        self._listener.gate.release(handle.account)
        return (Discard(handle.account),)

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
        request_id = command.lookupTopic.request_id
        _check_request(request_id)
        if len(self._lookups) + len(self._chases) >= self._listener.bounds.lookups:
            self._listener.gate.looked_up(LookupOutcome.REFUSED)
            return (Drop(), Inject(Direction.TO_CLIENT, lookup_failed(request_id, _BUSY)))
        self._lookups[request_id] = frame
        return FORWARD

    def _lookup_response(self, command: BaseCommand, frame: bytes) -> Effects:
        answer = command.lookupTopicResponse
        lookup = self._lookups.pop(answer.request_id, None)
        hop = next_hop(answer)
        if hop is None or lookup is None:
            return (Replace(self._lookup_answer(command)),)
        self._listener.gate.redirected()
        token = next(self._tokens)
        self._chases[token] = answer.request_id
        return (Drop(), Start(Chase(self._listener, self._client, lookup, hop), token))

    def resume(self, token: int, result: bytes | Denial, now: float) -> Effects:
        """See `contract.Session`: a chased lookup has its answer."""
        request_id = self._chases.pop(token)
        if isinstance(result, Denial):
            self._listener.gate.looked_up(LookupOutcome.REFUSED)
            return (Inject(Direction.TO_CLIENT, lookup_failed(request_id, result)),)
        return (Inject(Direction.TO_CLIENT, self._lookup_answer(decode(result))),)

    def _lookup_answer(self, command: BaseCommand) -> bytes:
        """The broker's last word on a lookup, in the words of ours."""
        answer = command.lookupTopicResponse
        if answer.response != CommandLookupTopicResponse.Connect:
            return self._lookup_no(command)
        url = answer.brokerServiceUrl or answer.brokerServiceUrlTls
        advertised = self._listener.veil.advertised_url(url)
        if isinstance(advertised, Denial) or not advertised:
            self._listener.gate.looked_up(LookupOutcome.REFUSED)
            text = advertised.text if isinstance(advertised, Denial) else "no broker was named"
            return lookup_failed(answer.request_id, Denial(Refusal.NOT_READY, text))
        self._listener.gate.looked_up(LookupOutcome.CONNECT)
        answer.brokerServiceUrl = answer.brokerServiceUrlTls = advertised
        answer.proxy_through_service_url = True
        return encode(command)

    def _lookup_no(self, command: BaseCommand) -> bytes:
        answer = command.lookupTopicResponse
        self._listener.gate.looked_up(LookupOutcome.FAILED)
        if answer.response == CommandLookupTopicResponse.Redirect:
            text = "the topic's broker was not found"
            return lookup_failed(answer.request_id, Denial(Refusal.NOT_READY, text))
        answer.ClearField("brokerServiceUrl")
        answer.ClearField("brokerServiceUrlTls")
        self._listener.veil.hide(command, Kind.LOOKUP_RESPONSE)
        return encode(command)

    # -- identity ----------------------------------------------------------------------------

    def _second_connect(self, command: BaseCommand, frame: bytes) -> Effects:
        raise PeerError("a second CONNECT on one connection")

    def _auth_challenge(self, command: BaseCommand, frame: bytes) -> Effects:
        """Who showed the credential that the broker asks for again?

        In *verify* it was ours; otherwise the client's, passed through or forwarded.
        """
        if self._listener.mode is not Mode.VERIFY:
            return FORWARD
        ours = self._listener.gate.credential()
        if isinstance(ours, Denial):
            return (Drop(), _end(EndReason.AUTHENTICATION_FAILED, ours.refusal, ours.text))
        return (Drop(), Inject(Direction.TO_BROKER, auth_response(ours, self._listener.version)))

    def _auth_response(self, command: BaseCommand, frame: bytes) -> Effects:
        """A client's newer credential: later connections on its behalf use it."""
        if self._listener.mode is Mode.VERIFY:
            return DROP  # we did not ask
        data = command.authResponse.response
        credential = Credential(data.auth_method_name, data.auth_data)
        if self._listener.mode is Mode.VERIFY_AND_FORWARD:
            principal = self._listener.gate.authenticate(credential)
            if isinstance(principal, Denial):
                return (
                    Drop(),
                    _end(EndReason.AUTHENTICATION_FAILED, principal.refusal, principal.text),
                )
            if principal.name != self._client.principal.name:
                text = "the principal may not change on a connection"
                return (
                    Drop(),
                    _end(EndReason.AUTHENTICATION_FAILED, Refusal.UNAUTHENTICATED, text),
                )
        self._client.credential = credential
        return FORWARD

    def _withheld(self, command: BaseCommand, frame: bytes) -> Effects:
        """TOPIC_MIGRATED names another cluster's brokers: nothing may stand there yet."""
        return DROP

    # -- the end -----------------------------------------------------------------------------

    def farewell(self, reason: EndReason, detail: str) -> bytes:
        """See `contract.Session`. Who is at fault is told; others just reconnect."""
        refusal = _TOLD.get(reason)
        return b"" if refusal is None else error(NO_REQUEST, Denial(refusal, detail))

    def close(self) -> None:
        """See `contract.Session`."""
        for handle in tuple(self._handles):
            self._incarnation_ends(handle)
        self._lookups.clear()


_STRAY = Account("", Action.CONSUME)
"""MESSAGEs of consumers that were closed meanwhile: of no topic, and on nobody's bill."""

_TOLD = {
    EndReason.CLIENT_VIOLATION: Refusal.UNSUPPORTED,
    EndReason.FRAME_TOO_LARGE: Refusal.UNSUPPORTED,
    EndReason.CREDENTIAL_EXPIRED: Refusal.UNAUTHENTICATED,
}


class _ClosedId(NamedTuple):
    """What CLOSE_PRODUCER, CLOSE_CONSUMER and UNSUBSCRIBE have in common."""

    action: Action
    id: int
    request_id: int
    state: State = State.CLOSING


def _closed_id(command: BaseCommand) -> _ClosedId:
    if command.HasField("close_producer"):
        producer = command.close_producer
        return _ClosedId(Action.PRODUCE, producer.producer_id, producer.request_id)
    if command.HasField("unsubscribe"):
        gone = command.unsubscribe
        return _ClosedId(Action.CONSUME, gone.consumer_id, gone.request_id, State.UNSUBSCRIBING)
    consumer = command.close_consumer
    return _ClosedId(Action.CONSUME, consumer.consumer_id, consumer.request_id)


def _check_request(request_id: int) -> None:
    if request_id >= FIRST_OWN_REQUEST:
        raise PeerError(f"request id {request_id} is beyond 2^63")


def _end(reason: EndReason, refusal: Refusal, text: str) -> End:
    return End(reason, error(NO_REQUEST, Denial(refusal, text)), text)


def auth_response(credential: Credential, version: str) -> bytes:
    """An AUTH_RESPONSE that shows a credential of ours."""
    command = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
    command.authResponse.client_version = version
    command.authResponse.response.auth_method_name = credential.method
    command.authResponse.response.auth_data = credential.data
    return encode(command)


Handler = Callable[[PulsarSession, BaseCommand, bytes], Effects]

_HANDLERS: dict[Direction, dict[int, Handler]] = {
    Direction.TO_BROKER: {
        Kind.CONNECT: PulsarSession._second_connect,
        Kind.PRODUCER: PulsarSession._producer,
        Kind.SUBSCRIBE: PulsarSession._subscribe,
        Kind.SEND: PulsarSession._send,
        Kind.CLOSE_PRODUCER: PulsarSession._close,
        Kind.CLOSE_CONSUMER: PulsarSession._close,
        Kind.UNSUBSCRIBE: PulsarSession._close,
        Kind.LOOKUP: PulsarSession._lookup,
        Kind.AUTH_RESPONSE: PulsarSession._auth_response,
    },
    Direction.TO_CLIENT: {
        Kind.PRODUCER_SUCCESS: PulsarSession._producer_success,
        Kind.SUCCESS: PulsarSession._success,
        Kind.ERROR: PulsarSession._error,
        Kind.SEND_ERROR: PulsarSession._send_error,
        Kind.CLOSE_PRODUCER: PulsarSession._closed,
        Kind.CLOSE_CONSUMER: PulsarSession._closed,
        Kind.LOOKUP_RESPONSE: PulsarSession._lookup_response,
        Kind.AUTH_CHALLENGE: PulsarSession._auth_challenge,
        Kind.TOPIC_MIGRATED: PulsarSession._withheld,
    },
}
