"""Listeners and clients out of a fuzzer's bytes, with bounds that are soon reached."""

from __future__ import annotations

from gateway.wire.account import Action
from gateway.wire.contract import Credential, Denial, Principal, Refusal
from gateway.wire.plugin import Mode
from gateway.wire.pulsar.context import Bounds, Client, ListenerContext
from gateway.wire.subject import Subject
from tests.fuzz.source import Source
from tests.playbooks.frames import connect, read
from tests.playbooks.script import listener
from tests.playbooks.services import FakeServices
from tests.support.subjects import caller_of

TIGHT = Bounds(
    collected=100_000,
    handles=4,
    lookups=3,
    lookup_bytes=600,
    delayed=3,
    delayed_bytes=600,
    rounds=3,
)
NOT_NOW = Denial(Refusal.TOO_OFTEN, "not now")
NO_CREDENTIAL = Denial(Refusal.NOT_READY, "no credential")
_MODES = tuple(Mode)


def drawn_listener(source: Source) -> tuple[ListenerContext, FakeServices]:
    """In any mode; before brokers or, at times, before another gateway."""
    services, mode, traits = FakeServices(), source.pick(_MODES), source.byte()
    if traits & 0x70 == 0x70:
        services.own = NO_CREDENTIAL
    if traits & 0x70 == 0x60:
        services.paced, services.delay = set(Action), 1.0 if traits & 8 else NOT_NOW
    elif traits & 0x70 == 0x50:
        services.paced, services.delay = {Action.PRODUCE, Action.LOOKUP}, 1.0
    chained = traits & 3 == 3
    bounds = TIGHT if traits & 8 == 0 else Bounds()
    proxies = frozenset({"bob"} if traits & 4 else ())
    unknown_pass = traits & 0x80 == 0
    settings = {"unknown_pass": unknown_pass, "chained": chained, "proxies": proxies}
    settings["limited"] = bool(services.paced)
    return listener(services, mode, bounds=bounds, **settings), services


def drawn_client(source: Source, mode: Mode) -> Client:
    """Alice, known in one way or another."""
    verified = mode is not Mode.PASS_THROUGH
    hello, credential = read(connect()).connect, Credential("token", b"alice's token")
    alice, vouched = Principal("alice", verified), source.odd(8)
    return Client(hello, alice, credential, Subject(caller_of(hello)), vouched=vouched)
