"""Opening conversations drawn from a seed: CONNECTs of all kinds, and how brokers read the
gateway's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from gateway.wire.contract import (
    Denial,
    Dial,
    Dialled,
    Opened,
    Peer,
    Receive,
    Refusal,
    StepResult,
    Transmit,
    Wait,
)
from gateway.wire.plugin import Mode
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.entry import PulsarEntry
from gateway.wire.pulsar.frames import Kind
from tests.playbooks.frames import auth_challenge, connect, connected
from tests.playbooks.services import BROKER_1, NAME_1, NAME_2, ORIGIN, OWN
from tests.support.frames import command, data, frame

from .judge import Finding
from .mutations import descriptor_of, mutated, odd_command, split_fields, true_fields
from .oracle import Oracle, Reading
from .play import drawn_listener

_GONE = Denial(Refusal.CLOSED, "gone")
_OF_PROXIES = ("7", "8", "9", "11")
"""The fields original_principal, original_auth_data, original_auth_method, proxy_version."""

_TO_BROKER_URL = "6"


@dataclass(slots=True)
class Opening:
    """`to_broker`: frames in order. `client`: None if no pair was opened."""

    seed: int
    listener: ListenerContext
    said: list[bytes] = field(default_factory=list)
    to_broker: list[bytes] = field(default_factory=list)
    client: Client | None = None
    crash: Exception | None = None

    @property
    def number(self) -> int:
        """Return the number of frames sent by the client."""
        return len(self.said)

    @property
    def reached(self) -> int:
        """Return the number of frames forwarded to the broker."""
        return len(self.to_broker)


def open_connection(seed: int) -> Opening:
    """Play one conversation."""
    rng = Random(seed)
    listener, _ = drawn_listener(rng)
    opening = Opening(seed, listener)
    steps = PulsarEntry(listener).open(ORIGIN)
    result: StepResult = None
    challenged = False
    for _ in range(12):
        try:
            step = steps.send(result)
        except StopIteration as stop:
            if isinstance(stop.value, Opened):
                session = stop.value.session
                opening.client = session._client  # type: ignore[attr-defined]
            return opening
        except Exception as error:
            opening.crash = error
            return opening
        match step:
            case Receive(Peer.CLIENT):
                kind = Kind.AUTH_RESPONSE if challenged else Kind.CONNECT
                result = _hostile(rng, kind)
                opening.said.append(result)
            case Receive():
                challenged = not challenged and rng.random() < 0.3
                result = auth_challenge() if challenged else connected()
            case Transmit(Peer.BROKER, sent):
                opening.to_broker.append(sent)
                result = None
            case Dial(target):
                result = Dialled(target or BROKER_1)
            case Transmit() | Wait():
                result = None
    steps.close()
    return opening


def _hostile(rng: Random, kind: int) -> bytes:
    fields = true_fields(rng, kind) if rng.random() < 0.5 else _ordinary(rng, kind)
    body = b"".join(fields)
    if rng.random() < 0.8:
        body = mutated(rng, fields, descriptor_of(kind), true_fields(rng, kind))
    if rng.random() < 0.15:
        return frame(odd_command(rng, kind, body))
    return frame(command(kind, body))


def _ordinary(rng: Random, kind: int) -> list[bytes]:
    """Return the frames of an ordinary client, at times with a broker's name or a proxy's
    fields."""
    if kind != Kind.CONNECT:
        return [data(1, b"v"), data(2, data(1, b"token") + data(2, b"alice's newer token"))]
    fields = split_fields(connect()[8:][2:][2:])
    extra = (
        data(6, f"{rng.choice((NAME_1, NAME_2))}:6650".encode()),
        data(7, b"admin"),
        data(8, b"admin's token"),
        data(9, b"token"),
        data(3, b"bob's token"),
        data(5, b"other"),
    )
    return fields + [each for each in extra if rng.random() < 0.15]


def judge_opening(
    opening: Opening, readings: list[tuple[Reading, ...]], oracles: list[Oracle]
) -> Iterator[Finding]:
    """Yield the findings. `readings`: of each frame to the broker."""
    if opening.crash is not None:
        yield Finding(opening.seed, 0, "gateway", repr(opening.crash), opening.said[-1], None)
    for index, oracle in enumerate(oracles):
        for number, (sent, said) in enumerate(zip(opening.to_broker, readings, strict=True)):
            reading = said[index]
            if "ex" in reading:
                break
            what = _wrong(opening, number, reading)
            if what:
                yield Finding(opening.seed, number, oracle.version, what, sent, reading)


def _wrong(opening: Opening, number: int, reading: Reading) -> str:
    kind, fields, mode = reading["t"], reading["f"], opening.listener.mode
    if kind != (Kind.CONNECT if number == 0 else Kind.AUTH_RESPONSE):
        return "not the command of this turn"
    if kind == Kind.AUTH_RESPONSE:
        proof = bytes.fromhex(fields.get("2", {}).get("2", ""))
        ours = mode is Mode.PASS_THROUGH or proof == OWN.data
        return "" if ours else "a credential of the client"
    if _TO_BROKER_URL in fields:
        return "the name of a broker"
    proof, method = bytes.fromhex(fields.get("3", "")), fields.get("5", "")
    client = opening.client
    if mode is Mode.PASS_THROUGH:
        known = client is None or (client.credential.data == proof)
        return "" if known else "another credential than the gateway knows"
    if proof != OWN.data or method != OWN.method:
        return "not our credential"
    if fields.get("7") != "alice" and (client is None or fields.get("7") != client.principal.name):
        return f"in the name of {fields.get('7')}"
    return _forwarded(mode, client, fields)


def _forwarded(mode: Mode, client: Client | None, fields: Reading) -> str:
    if mode is Mode.VERIFY:
        return "a credential is forwarded" if {"8", "9"} & fields.keys() else ""
    if client is not None and client.credential.data:
        shown = client.credential.data.decode("utf-8", "replace")
        if fields.get("8") != shown or fields.get("9") != client.credential.method:
            return "another credential is forwarded than was verified"
    return ""
