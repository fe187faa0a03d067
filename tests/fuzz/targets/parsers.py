"""Small parsers of names, addresses, texts, units, tokens and topics: their own errors only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
from collections.abc import Callable
from contextlib import suppress

from joserfc.jwk import OctKey

from gateway.brokers.learned import LearnedHosts
from gateway.brokers.names import LONGEST_NAME, ChainedNames, Names, SealedNames, TemplateNames
from gateway.brokers.seal import SealKey
from gateway.config import units
from gateway.identity.token import TokenVerifier
from gateway.identity.verified import Verified
from gateway.telemetry.exposition import LONGEST_LABEL, labels_of
from gateway.wire.address import Address, parse_address
from gateway.wire.contract import Denial, Direction
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR
from gateway.wire.pulsar.topics import is_brokers_own, named
from gateway.wire.pulsar.trace import LONGEST, describe
from gateway.wire.pulsar.urls import parse
from gateway.wire.subject import TopicName
from tests.fuzz.grammar import any_frame
from tests.fuzz.source import Source
from tests.playbooks.services import BROKER_1, BROKER_2

_SEALED = SealedNames("main", [SealKey(b"one key of these tests, 32 bytes."), SealKey(bytes(32))])
_NAMES: tuple[Names, ...] = (
    _SEALED,
    TemplateNames("broker-{n}.example", "pulsar-{n}.internal:6650"),
    ChainedNames(_SEALED),
)
_MADE = str(_SEALED.advertise(BROKER_1)).removesuffix(":6650")
_SHORT = str(_SEALED.advertise(Address("b.internal", 6650))).removesuffix(":6650")

_SECRET = bytes(range(32))
_VERIFIER = TokenVerifier([OctKey.import_key(_SECRET)], ["HS256"])


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _signed(claims: bytes) -> str:
    signed = _encoded(b'{"alg":"HS256"}') + "." + _encoded(claims)
    return f"{signed}.{_encoded(hmac.digest(_SECRET, signed.encode(), hashlib.sha256))}"


NOW = 1e9
"""Seconds since 1970."""

_TOKEN = _signed(b'{"sub":"alice"}')

_ATOMS = (
    "a",
    "pulsar://",
    "pulsar+ssl://",
    ":",
    "6650",
    ".",
    "[",
    "]",
    "/",
    ",",
    "@",
    "broker-1.internal",
    "fd00::1",
    "10.0.0.1",
    ".gw",
    "broker-7.example",
    "pulsar-7.internal:6650",
    _MADE,
    _SHORT,
    _TOKEN,
    "persistent://",
    "public/default/t",
    "%",
    "KiB",
    "ms",
    "9" * 40,
    "<unresolved>",
    "\u0660",
    "*",
    "{n}",
)


def text(source: Source) -> str:
    """Of parts that mean something, and of any characters."""
    parts: list[str] = []
    while source.left and len(parts) < 12:
        choice = source.byte()
        if choice < 200:
            parts.append(_ATOMS[choice % len(_ATOMS)])
        else:
            parts.append(source.take(choice - 199).decode(errors="replace"))
    return "".join(parts)


def parsers(data: bytes) -> int:
    """Nothing is said here that is a frame, but for what is described."""
    source = Source(data)
    _PARSERS[source.below(len(_PARSERS))](source)
    return 1


def _misspelt(said: str, at: int, letter: int) -> str:
    """One letter is another, or is too many; from the end, where spare bits are."""
    at = len(said) - at % (len(said) + 1)
    return said[:at] + _LETTERS[letter % len(_LETTERS)] + said[at + letter % 2 :]


_LETTERS = "0123456789abcdefghijklmnopqrstuvw.-:"


def _name(source: Source) -> None:
    """What opens was made by us; what is made opens."""
    names, changed, at, letter = source.pick(_NAMES), source.odd(2), source.byte(), source.byte()
    said = text(source)
    if changed and said:
        said = _misspelt(said, at, letter)
    opened = names.open(said)
    if isinstance(opened, Denial):
        return
    assert len(said) <= LONGEST_NAME + 6
    if isinstance(names, ChainedNames):
        assert opened == _SEALED.open(said) or opened.host == said.partition(":")[0]
    else:
        advertised = names.advertise(opened)
        assert isinstance(advertised, Address)
        assert advertised.host == said.partition(":")[0]


def _made_name(source: Source) -> None:
    names, broker = source.pick(_NAMES), Address(text(source), source.below(65536))
    if broker.host.isascii():
        name = names.advertise(broker, source.below(3))
        assert isinstance(name, Denial) or isinstance(names.open(str(name)), Address)


def _address(source: Source) -> None:
    """One spelling: what was read is read again as the same."""
    said = text(source)
    with suppress(ValueError):
        address = parse_address(said)
        assert parse_address(str(address)) == address
    read = parse(said)
    assert read is None or (read.host and 1 <= read.port <= 65535)
    assert parse(said.encode()) is None


def _unit(source: Source) -> None:
    unit, said = source.pick(_UNITS), text(source)
    with suppress(ValueError):
        unit(said)


_UNITS: tuple[Callable[[object], object], ...] = (
    units.seconds,
    units.size,
    units.whole,
    units.entries,
    units.text,
    units.name,
    units.bind,
    units.broker,
    units.brokers,
    units.port,
    units.host_pattern,
    units.host_template,
    units.broker_template,
    units.network,
)


def _token(source: Source) -> None:
    """Nobody is known but by the secret: whatever else is said proves nothing."""
    if source.odd(2):
        claims = _claims(source)
        verified = _VERIFIER.verify(_signed(claims).encode(), NOW)
        assert isinstance(verified, Denial | Verified)
        assert isinstance(verified, Denial) or _has_dates(claims)
        assert isinstance(verified, Denial) or verified.name
        assert isinstance(verified, Denial) or (verified.expires_at or math.inf) > NOW
        return
    said = text(source)
    verified = _VERIFIER.verify(said.encode(), NOW)
    assert isinstance(verified, Denial | Verified)
    assert isinstance(verified, Denial) or verified.name == "alice"


def _claims(source: Source) -> bytes:
    """Of a token that is truly signed."""
    if source.odd(4):
        return text(source).encode()
    claims = [f'"{source.pick(_CLAIMS)}":{source.pick(_VALUES)}' for _ in range(source.below(6))]
    return ("{" + ",".join(['"sub":"alice"', *claims]) + "}").encode()


def _has_dates(claims: bytes) -> bool:
    """A date that is no number is none that has not come yet."""
    read = json.loads(claims)
    dates = [read[name] for name in ("exp", "nbf") if read.get(name) is not None]
    return all(isinstance(date, int | float) and math.isfinite(date) for date in dates)


_CLAIMS = ("sub", "exp", "nbf", "aud", "iss")
_VALUES = (
    '"alice"',
    "2000000000",
    "1000000000",
    "1.5",
    "-1",
    "1e400",
    "NaN",
    "null",
    "true",
    '""',
    '["bob","alice"]',
    "[]",
    "{}",
    "9" * 400,
)


def _cleaned(source: Source) -> None:
    """Whatever follows an address, it does not keep the address from being found."""
    learned = LearnedHosts(PULSAR)
    learned.learn(BROKER_1.host, BROKER_2.host, "10.0.0.1", "fd00::1")
    said = text(source)
    assert learned.clean(f"pulsar://{BROKER_1} {said}").startswith("pulsar://broker ")
    assert len(learned.clean(said)) <= 6 * len(said)


_NO_LABELS = labels_of("", TopicName("", "", ""))


def _topic(source: Source) -> None:
    said = text(source)
    topic = named(said)
    assert topic is None or named(topic.name) == topic
    for each in (topic, TopicName(said, f"{said}/{said}", said)):
        assert each is None or len(labels_of("", each)) <= len(_NO_LABELS) + 3 * 2 * LONGEST_LABEL
    assert is_brokers_own(f"persistent://pulsar/{said}") or said.startswith("system/")


def _described(source: Source) -> None:
    assert len(describe(any_frame(source, source.pick(tuple(Direction))))) <= LONGEST


_PARSERS: tuple[Callable[[Source], None], ...] = (
    _name,
    _made_name,
    _address,
    _unit,
    _token,
    _cleaned,
    _topic,
    _described,
)
