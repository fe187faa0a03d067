"""The lookups of one pair: kept until their response, and chased if they are redirected.

A client never sees a Redirect or a broker's address: *Connect* gets the broker's advertised name,
*Redirect* is withheld and chased, *Failed* loses the addresses in its text.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Action
from gateway.wire.admission import NO_ROOM
from gateway.wire.contract import (
    FORWARD,
    Denial,
    Direction,
    Drop,
    Effects,
    Inject,
    Refusal,
    Replace,
    Start,
)
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandLookupTopicResponse
from gateway.wire.pulsar.chase import NOT_FOUND, Chase, Hop, is_redirect, next_hop
from gateway.wire.pulsar.commands import BUSY, decode, encode, lookup_failed, text
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.frames import Kind
from gateway.wire.services import LookupOutcome, LookupTimes
from gateway.wire.subject import Subject

ENTRY = 256
"""Bytes that a remembered lookup takes beside its frame."""


class _Lookup(NamedTuple):
    """An in-flight lookup, with the frame that a chase sends again. `since`: when it came.
    `subject`: for its duration; None if latencies are not measured."""

    request_id: int
    frame: bytes
    since: float = 0.0
    subject: Subject | None = None

    @property
    def size(self) -> int:
        return ENTRY + len(self.frame)


_Table = dict[int, _Lookup]


class Lookups:
    """The in-flight lookups of one pair. Methods return effects, as `contract.Session.decide`
    does."""

    __slots__ = ("_chased", "_client", "_in_flight", "_kept", "_listener", "_number")

    def __init__(self, listener: ListenerContext, client: Client) -> None:
        self._listener = listener
        self._client = client
        # Made when they are needed: idle pairs are many.
        self._in_flight: dict[int, _Lookup] | None = None  # by request id
        self._chased: dict[int, _Lookup] | None = None  # by number of the chase
        self._kept = 0  # bytes of frames
        self._number = 0  # of the next chase

    def __len__(self) -> int:
        return len(self._in_flight or ()) + len(self._chased or ())

    # -- from the client ---------------------------------------------------------------------

    def ask(self, command: BaseCommand, frame: bytes, now: float) -> Effects:
        """Return what to do with the client's LOOKUP: forward it and remember it until its
        response, or refuse it."""
        lookup = _Lookup(command.lookupTopic.request_id, frame)
        denial = self._denial(text(command.lookupTopic.topic), lookup)
        if self._listener.services.timed:
            subject = self._client.about(text(command.lookupTopic.topic))
            lookup = lookup._replace(since=now, subject=subject)
        if denial is not None:
            self._over(lookup, LookupOutcome.REFUSED, now)
            return (Drop(), Inject(Direction.TO_CLIENT, lookup_failed(lookup.request_id, denial)))
        self._forget(self._in_flight, lookup.request_id)
        self._in_flight = self._remember(self._in_flight, lookup.request_id, lookup)
        return FORWARD

    def _denial(self, topic: str, lookup: _Lookup) -> Denial | None:
        bounds = self._listener.bounds
        if len(self) >= bounds.lookups:
            return BUSY
        if self._kept + len(lookup.frame) > bounds.lookup_bytes:
            return BUSY
        if not self._client.quota.fits(lookup.size):
            return NO_ROOM
        admitted = self._listener.services.admit(Action.LOOKUP, self._client.about(topic))
        return admitted if isinstance(admitted, Denial) else None

    # -- from brokers ------------------------------------------------------------------------

    def answered(self, command: BaseCommand, now: float) -> Effects:
        """Return what to do with the broker's LOOKUP_RESPONSE: forward it with addresses rewritten,
        or start a job that follows its redirect."""
        lookup = self._forget(self._in_flight, command.lookupTopicResponse.request_id)
        hop = next_hop(command.lookupTopicResponse, tls=self._listener.brokers_tls)
        if hop is None or lookup is None:
            proven = _leads_on(command)
            outcome, response = self._response(command)
            self._over(lookup, outcome, now, proven=proven)
            return (Replace(response),)
        return self._chase(lookup, hop)

    def _chase(self, lookup: _Lookup, hop: Hop) -> Effects:
        self._listener.services.redirected()
        number = self._number
        self._number += 1
        self._chased = self._remember(self._chased, number, lookup)
        chase = Chase(self._listener, self._client, lookup.request_id, lookup.frame, hop)
        return (Drop(), Start(chase, partial(self._chase_over, number)))

    def failed(self, request_id: int, now: float) -> None:
        """Forget the lookup with this request id, because the broker responded to it with ERROR.
        The id may be that of another request; then nothing happens."""
        lookup = self._forget(self._in_flight, request_id)
        if lookup is not None:
            self._over(lookup, LookupOutcome.FAILED, now)

    def _chase_over(self, number: int, result: bytes | Denial, now: float) -> Effects:
        """Tell the client the outcome of a chase."""
        lookup = self._forget(self._chased, number)
        if lookup is None:
            return ()
        if isinstance(result, Denial):
            self._over(lookup, LookupOutcome.REFUSED, now)
            return (Inject(Direction.TO_CLIENT, lookup_failed(lookup.request_id, result)),)
        proven = False
        try:
            command = decode(result)
            proven = _leads_on(command)
            outcome, response = self._response(command)
        except PeerError:  # of the other broker: this pair's peers are not at fault
            outcome, response = LookupOutcome.FAILED, lookup_failed(lookup.request_id, NOT_FOUND)
        self._over(lookup, outcome, now, proven=proven)
        return (Inject(Direction.TO_CLIENT, response),)

    def clear(self) -> None:
        """Forget all lookups, because the pair has ended. Their bytes still count in the memory
        budget until `Client.leave` gives back all bytes of the connection."""
        self._in_flight = self._chased = None

    def _remember(self, table: _Table | None, key: int, lookup: _Lookup) -> _Table:
        """Add a lookup to a table; return the table."""
        self._kept += len(lookup.frame)
        self._client.quota.take(lookup.size)
        if table is None:
            return {key: lookup}
        table[key] = lookup
        return table

    def _forget(self, table: _Table | None, key: int) -> _Lookup | None:
        lookup = table.pop(key, None) if table else None
        if lookup is not None:
            self._kept -= len(lookup.frame)
            self._client.quota.give_back(lookup.size)
        return lookup

    def _over(
        self, lookup: _Lookup | None, outcome: LookupOutcome, now: float, *, proven: bool = False
    ) -> None:
        """Count a lookup that has its response, and its duration if latencies are measured.
        `proven`: the topic has a broker. `lookup`: None if it was not kept."""
        times = None
        if lookup is not None and lookup.subject is not None:
            times = LookupTimes(lookup.subject, lookup.since, now, proven)
        self._listener.services.looked_up(outcome, times)

    # -- responses to the client -------------------------------------------------------------

    def _response(self, command: BaseCommand) -> tuple[LookupOutcome, bytes]:
        """Return the outcome and the client's frame for a broker's final response to a lookup."""
        self._listener.rewriter.rewrite(command, Kind.LOOKUP_RESPONSE)
        if _leads_on(command):
            return self._connect(command)
        return LookupOutcome.FAILED, self._no(command)

    def _connect(self, command: BaseCommand) -> tuple[LookupOutcome, bytes]:
        response = command.lookupTopicResponse
        rewriter = self._listener.rewriter
        url = rewriter.of_broker(response.brokerServiceUrl, response.brokerServiceUrlTls)
        advertised = rewriter.advertised_url(url)
        if isinstance(advertised, Denial):
            denial = Denial(Refusal.NOT_READY, advertised.text)
            return LookupOutcome.REFUSED, lookup_failed(response.request_id, denial)
        response.brokerServiceUrl = response.brokerServiceUrlTls = advertised
        response.proxy_through_service_url = True
        return LookupOutcome.CONNECT, encode(command)

    def _no(self, command: BaseCommand) -> bytes:
        """Return the frame for Failed, a Redirect without an address, or an unknown response."""
        response = command.lookupTopicResponse
        if is_redirect(response):
            return lookup_failed(response.request_id, NOT_FOUND)
        response.ClearField("brokerServiceUrl")
        response.ClearField("brokerServiceUrlTls")
        return encode(command)


def _leads_on(command: BaseCommand) -> bool:
    """Return whether a LOOKUP_RESPONSE names the broker of the topic."""
    return bool(command.lookupTopicResponse.response == CommandLookupTopicResponse.Connect)
