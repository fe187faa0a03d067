"""Judges whether a server reads what the gateway has judged."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from gateway.wire.tubemq import methods
from gateway.wire.tubemq.addresses import topic_of
from gateway.wire.tubemq.clients import known_as
from gateway.wire.tubemq.names import read_topic
from gateway.wire.tubemq.rewriting import LEAST_STAMP
from tests.oracle.oracle import Reading
from tests.playbooks_tubemq.script import REAL

from .play import SECRET, Judged, Played, Step

NAMES = {"client": "clientId", "group": "groupName", "topic": "topicName"}
"""What a server reads of a request first, and the field in which it stands."""

STAMPS = frozenset({"brokerCheckSum", "brokerConfigId"})
"""Fields that the gateway changes by a number."""

SUBSCRIBED = "subscribeInfo"
PLACED = frozenset({SUBSCRIBED, "partitionInfo"})
"""Fields in which the gateway puts addresses of brokers in the place of its own."""


TRIMMED = "".join(map(chr, range(0x21)))
"""What servers take from both ends of a name."""

FILTERED = frozenset({"topicCondition", "partSubInfo"})
"""Lists out of which the gateway takes topics without a right. The first of a text is its topic."""

OF_PRODUCER = frozenset({methods.REGISTER_PRODUCER, methods.BEAT_PRODUCER})
"""Methods whose `topicList` is filtered too."""


class Difference(NamedTuple):
    """What a server reads otherwise. `kind`: those of one cause have the same."""

    kind: str
    what: str


class Finding(NamedTuple):
    """A difference. `step`: the number of the frame in the connection of the seed; -1: it is the
    connection itself. `frame`: its envelope, or all bytes."""

    seed: int
    step: int
    difference: Difference
    frame: bytes
    reading: Any

    @property
    def kind(self) -> str:
        return self.difference.kind

    def __str__(self) -> str:
        kind, what = self.difference
        where = f"seed {self.seed} step {self.step}"
        return f"{where}: {kind}: {what}\n    frame {self.frame.hex()}\n    read {self.reading}"


def judge(played: Played, said: Reading, sent: Reading) -> Iterator[Finding]:
    """Yield the findings of a connection. `said`, `sent`: how a server reads what the client has
    said, and what the gateway has sent on."""
    for difference in _taken_otherwise(played, sent):
        yield Finding(played.seed, -1, difference, played.sent, sent)
    own = said["frames"]
    for at, step in enumerate(played.steps):
        # What came with the piece in which a server finds an error, it does not tell.
        if at < len(own) or "ex" not in said:
            reading = own[at] if at < len(own) else None
            for difference in _cut_otherwise(step, reading):
                yield Finding(played.seed, at, difference, played.said, reading)
    went_on = [(at, step) for at, step in enumerate(played.steps) if step.went_on is not None]
    for (at, step), reading in zip(went_on, sent["frames"], strict=False):
        for difference in _read_otherwise(step, reading):
            yield Finding(played.seed, at, difference, step.frame.envelope, reading)


def mended(played: Played, said: Reading) -> int:
    """Return how many requests went on that a server would have refused, or have read otherwise,
    as the client had written them: such as a number in ten bytes that needs fewer."""
    return sum(
        reading.get("message") != fields(step.judged.message)
        for step, reading in zip(played.steps, said["frames"], strict=False)
        if step.went_on is not None and step.judged is not None
    )


def _taken_otherwise(played: Played, sent: Reading) -> Iterator[Difference]:
    if played.crash:
        yield Difference("crash", played.crash)
    if b"".join(step.went_on or b"" for step in played.steps) != played.sent:
        yield Difference("bytes", "other bytes than requests went on")
    if "ex" in sent or sent["waits"] or sent["begun"] or len(sent["frames"]) != played.reached:
        yield Difference("stream", "the server does not take all frames, or waits for more")


def _cut_otherwise(step: Step, own: Reading | None) -> Iterator[Difference]:
    """Yield whether a server would find another frame in what the client has said."""
    found = (step.frame.serial, len(step.frame.envelope), zlib.crc32(step.frame.envelope))
    if own is None or found != (own["serial"], own["size"], own["crc"]):
        yield Difference("cut", "the server would cut another frame")


def _read_otherwise(step: Step, reading: Reading) -> Iterator[Difference]:
    judged = step.judged
    if judged is None:
        yield Difference("unjudged", "it was not judged")
        return
    if "ex" in reading:
        yield Difference("refused", "the server cannot read it")
        return
    if reading["left"]:
        yield Difference("left", f"the server leaves {reading['left']} bytes")
    request = judged.request
    thought = (step.frame.serial, request.body.method, request.body.timeout)
    if thought != (reading["serial"], reading["method"], reading["timeout"]):
        yield Difference("request", f"it was judged as {thought}")
    for name in ("connection", "header"):
        if reading[name] != fields(getattr(request, name)):
            yield Difference(name, f"it was judged as {fields(getattr(request, name))}")
    changed = _changed(judged)
    if reading["message"] != fields(changed):
        yield Difference("message", f"it was judged as {fields(changed)}")
    yield from _named_otherwise(judged, changed, reading)
    yield from _counted_otherwise(judged, reading)


def _named_otherwise(judged: Judged, message: Any, reading: Reading) -> Iterator[Difference]:
    """Yield names that the server reads otherwise. None: it refuses what stands there. `message`:
    the one that it should read."""
    for name, field in NAMES.items():
        if reading[name] is None:
            continue
        yield from _name_otherwise(name, getattr(message, field), reading[name])
    if reading["topics"] is not None and reading["topics"] != sorted(set(message.topicList)):
        yield Difference("topics", f"they were judged as {sorted(set(message.topicList))}")
    if judged.signs and reading["partitions"]:
        thought = [":".join(map(str, topic_of(it))) for it in message.partitionInfo]
        if thought != reading["partitions"]:
            yield Difference("partitions", f"they were judged as {thought}")
    for text in reading["subscriptions"] or ():
        id, place = text.partition("#")[0].split(":", 1)
        if int(id) in REAL and place != str(REAL[int(id)]):
            yield Difference("address", f"the broker is at {REAL[int(id)]}")


def _name_otherwise(name: str, judged: str | bytes, read: str) -> Iterator[Difference]:
    """Yield whether a name is another one; what servers only trim is of its own kind. Bytes: no
    text."""
    if read != judged:
        trimmed = isinstance(judged, str) and judged.strip(TRIMMED) == read
        kind = f"trimmed {name}" if trimmed else name
        yield Difference(kind, f"it was judged as {judged!r}")


def _counted_otherwise(judged: Judged, reading: Reading) -> Iterator[Difference]:
    account = judged.account
    if account is None:
        return
    topic, group = account.subject.topic, account.subject.subscription
    if topic is None or reading["topic"] not in (None, topic.whole.rpartition("/")[2]):
        yield Difference("topic", f"it was counted for {topic}")
    if reading["group"] is not None:
        yield from _name_otherwise("group", group or "", reading["group"])
    if reading["method"] == methods.SEND_MESSAGE:
        size = len(bytes.fromhex(reading["message"].get("4", "")))
        if size != judged.counted:
            yield Difference("size", f"{judged.counted} bytes of it were counted")


# -- what is expected ----------------------------------------------------------------------------


def _changed(judged: Judged) -> Any:
    """Return the message that a server should read."""
    found: Any = type(judged.message)()
    found.CopyFrom(judged.message)
    if judged.signs and "authInfo" in found.DESCRIPTOR.fields_by_name:
        _hide_proof(judged.request.body.method, found)
    method = judged.request.body.method
    if method != methods.SEND_MESSAGE:
        found.clientId = known_as("alice", found.clientId)
    if judged.guarded and method in OF_PRODUCER:
        found.topicList[:] = [it for it in found.topicList if read_topic(it) is not None]
    group = getattr(found, "groupName", "")
    _change(found, judged, f"{found.clientId}@{group}")
    return found


def _hide_proof(method: int, message: Any) -> None:
    if method not in methods.OF_BROKER:
        message.ClearField("authInfo")
    elif message.HasField("authInfo"):
        message.authInfo.ClearField("authAuthorizedToken")
        message.authInfo.visitAuthorizedToken = 0


def _change(message: Any, judged: Judged, client: str) -> None:
    """Change what a server should read otherwise. `client`: `client@group`, as it should read."""
    for field, value in message.ListFields():
        if field.name in STAMPS and value >= LEAST_STAMP:
            setattr(message, field.name, max(LEAST_STAMP, value - judged.added))
        elif field.name in PLACED:
            places = [it.partition("#")[2] if field.name == SUBSCRIBED else it for it in value]
            kept = [_placed(it) for it in places if not judged.guarded or _may(_topic(it))]
            value[:] = [f"{client}#{it}" if field.name == SUBSCRIBED else it for it in kept]
        elif field.name in FILTERED and judged.guarded:
            value[:] = [it for it in value if _may(it.partition("#")[0])]
        elif field.name in ("event", "subRepInfo"):
            _change(value, judged, client)


def _topic(place: str) -> str:
    """Return the topic in `id:host:port#topic:partition`."""
    return place.partition("#")[2].partition(":")[0]


def _may(topic: str) -> bool:
    """Return whether alice may consume from a topic, where rights are needed."""
    return read_topic(topic) is not None and topic != SECRET


def _placed(text: str) -> str:
    """Return `id:host:port#...` with the address that the broker has, if there is one."""
    place, mark, rest = text.partition("#")
    id = place.split(":")[0]
    if _is_number(id) and int(id) in REAL:
        place = f"{id}:{REAL[int(id)]}"
    return f"{place}{mark}{rest}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


# -- messages as the oracle prints them ----------------------------------------------------------


def fields(message: Message) -> dict[str, Any]:
    """Return the fields of a message by number, and under `?` the numbers of unknown ones."""
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.is_repeated:
            found[str(field.number)] = [_value(field, it) for it in value]
        else:
            found[str(field.number)] = _value(field, value)
    strangers: Any = UnknownFieldSet(message)
    unknown = sorted({it.field_number for it in strangers})
    if unknown:
        found["?"] = unknown
    return found


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return fields(value)
    return value.hex() if isinstance(value, bytes) else value
