"""Real listeners without sockets: services, learned brokers, rules, tokens."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from joserfc import jwt
from joserfc.jwk import OctKey

from gateway.brokers.learned import LearnedHosts
from gateway.brokers.names import SealedNames
from gateway.brokers.seal import SealKey
from gateway.control.services import ClusterParts, ListenerServices, Verifier
from gateway.control.shaper import Shaper
from gateway.front.jobs import Jobs
from gateway.identity.credential import NoCredential
from gateway.identity.token import LARGEST_TOKEN, TokenVerifier
from gateway.plane.reactor import Reactor
from gateway.policy.accounts import AccountBook
from gateway.policy.matching import RuleSet
from gateway.rules.files import build
from gateway.telemetry.figures import ClusterFigures
from gateway.wire.address import Address
from gateway.wire.contract import Credential, Principal
from gateway.wire.plugin import Mode
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR
from gateway.wire.pulsar.session import PulsarSession
from gateway.wire.pulsar.table import COMMANDS
from gateway.wire.subject import Subject
from tests.playbooks.frames import connect, read
from tests.support.subjects import caller_of

HOSTS = 300
"""Learned brokers. The largest clusters have hundreds."""

RULES = 1_000

BROKER = Address("broker-1.internal", 6650)
SECRET = OctKey.import_key(bytes(range(64)))


class Way(NamedTuple):
    """How a listener serves its clients."""

    name: str
    mode: Mode = Mode.PASS_THROUGH
    unknown_pass: bool = True
    rules: int = 0


WAYS = (
    Way("pass-through"),
    Way("masking, rules", Mode.PASS_THROUGH, unknown_pass=False, rules=RULES),
    Way("verify, rules", Mode.VERIFY, rules=RULES),
    Way("verify and forward", Mode.VERIFY_AND_FORWARD, unknown_pass=False),
)


def listener_of(way: Way) -> ListenerContext:
    """Return a listener with services of its own."""
    learned = LearnedHosts(PULSAR)
    learned.learn(*(f"broker-{number}.internal" for number in range(HOSTS)))
    learned.learn(*(f"10.0.{number // 200}.{number % 200}" for number in range(HOSTS)))
    names = SealedNames("main", [SealKey(bytes(range(32)))])
    known = (names, learned, NoCredential(), AccountBook(), ClusterFigures())
    verifiers: dict[str, Verifier] = {"token": TokenVerifier([SECRET], ["HS256"])}
    limits = Shaper(_rules(way.rules), Reactor(Jobs())) if way.rules else None
    services = ListenerServices(
        ClusterParts("main", *known),
        {} if way.mode is Mode.PASS_THROUGH else verifiers,
        name="clients",
        limits=limits,
    )
    limited, unknown = limits is not None, way.unknown_pass
    return ListenerContext(
        services=services, commands=COMMANDS, mode=way.mode, limited=limited, unknown_pass=unknown
    )


def session_of(listener: ListenerContext) -> PulsarSession:
    """Return the session of an open pair."""
    alice = Principal("alice", verified=listener.mode is not Mode.PASS_THROUGH)
    hello = read(connect(auth_data=token())).connect
    subject = Subject(listener.services.complete(caller_of(hello)))
    client = Client(hello, alice, Credential("token", token()), subject)
    return PulsarSession(listener, client, BROKER)


def _rules(number: int) -> RuleSet:
    """Return limits far above any traffic, each with patterns that match only after a full
    comparison."""
    dimensions: list[dict[str, object]] = [
        {"publish": {"messages": "1000000/s"}, "dispatch": {"messages": "1000000/s"}},
        {"lookups": "1000000/s", "producer_creations": "1000000/s"},
        {"consumer_creations": "1000000/s", "consumers": 100000},
    ]
    made = [
        {
            "id": f"r{it}",
            "match": {"topic": [f"*a*-*.*1*{it}"]},
            "per": "topic",
            "limit": dimensions[it % len(dimensions)],
        }
        for it in range(number - 1)
    ]
    everybody = {"id": "all", "per": "topic", "limit": dimensions[0] | dimensions[1]}
    rules, mistakes = build({"version": 1, "rules": [*made, everybody]})
    assert not mistakes, mistakes[0]
    return RuleSet.compile(rules)


@cache
def token(claims: int = 0) -> bytes:
    """Return a valid token, enlarged by this many bytes."""
    content = {"sub": "alice", "exp": int(time.time()) + 3600, "more": "x" * claims}
    return jwt.encode({"alg": "HS256"}, content, SECRET).encode()


def tokens() -> Iterator[tuple[str, bytes]]:
    """Yield valid and invalid tokens, some of which take long to refuse."""
    yield "a good token of 11 KiB", token(8 * 1024)
    yield "a token too large", b"a" * (48 * 1024)
    room = LARGEST_TOKEN * 3 // 4 - 100
    for what, header in (
        ("nested lists", b"[" * room),
        ("a long header", json.dumps({"alg": "HS256", "kid": "x" * (room - 50)}).encode()),
        ("numbers", b"1" * room),
        ("a long number", b'{"alg":' + b"1" * (room - 10) + b"}"),
    ):
        encoded = base64.urlsafe_b64encode(header).rstrip(b"=")
        yield f"a token with {what}", encoded + b".e30.AA"
    yield "a token of dots", b"." * LARGEST_TOKEN


def authenticating(kind: int, data: bytes) -> bytes:
    """Return the fields of a command with this credential."""
    command = BaseCommand()
    if kind == BaseCommand.CONNECT:
        command.connect.client_version = "Pulsar-Java-v4.2.4"
        command.connect.auth_method_name = "token"
        command.connect.auth_data = data
        return command.connect.SerializeToString()
    command.authResponse.response.auth_method_name = "token"
    command.authResponse.response.auth_data = data
    return command.authResponse.SerializeToString()
