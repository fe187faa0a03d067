"""Rewrites responses, in one pass over each: what `fields` says of their fields.

Substitutes of denied topics are replaced by the topics that they stand for, with the errors of the
denials. Topics that the client may not look up are removed. The gateway's addresses take the place
of brokers', and broker addresses are removed from texts. The pass also learns the ids of topics
from Metadata, and counts errors.

The pass notes what it changes, in the order of the frame, and makes the new frame at the end. It
stops between two fields when it has worked for some 2 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple, Protocol

from gateway.wire.address import Address
from gateway.wire.kafka.addresses import METADATA, NODES, Node, host_at
from gateway.wire.kafka.fields import LISTING, TO_CLIENT, Act, Rule, path_of, rules_of
from gateway.wire.kafka.memberships import CONSUMER, topics_of
from gateway.wire.kafka.schema import Field, Schema, of
from gateway.wire.kafka.slicing import CHEAP
from gateway.wire.kafka.substitutes import Original
from gateway.wire.kafka.synthetic import ERRORS
from gateway.wire.kafka.topics import NONE
from gateway.wire.kafka.walk import (
    Change,
    Plan,
    Tagged,
    as_text,
    bytes_at,
    plan,
    spliced,
    text_at,
    unsigned,
)
from gateway.wire.kafka.walker import END, PAUSED, TAGGED, Walker
from gateway.wire.slices import Slices

SETTINGS = frozenset(
    {
        b"advertised.listeners",
        b"controller.quorum.bootstrap.servers",
        b"controller.quorum.voters",
        b"host.name",
        b"listeners",
        b"zookeeper.connect",
    }
)
"""Settings of brokers whose values are addresses. Clients get null instead."""

LONGEST = 2**15 - 1
"""Bytes of the longest text whose length has two bytes. A text may grow when addresses are
removed."""

UNCOUNTED = frozenset({METADATA, 75})
"""APIs whose errors are not counted: while leaders move, their responses have an error for each
topic of the cluster."""

HIDING, CLEANING, CLEANED = 100, 50, 4
"""Simple operations that take as long as to look up a right (3 to 320 µs, by the number and form of
rules), and to clean a text; bytes of a long text that take as long as one more."""


class View(Protocol):
    """What a client sees of a cluster."""

    def hides(self, topic: bytes, *, by_id: bool) -> bool:
        """Return whether the client may not look a topic up. `by_id`: `topic` is an id."""

    def knows(self, id: bytes) -> bool:
        """Return whether the name of a topic is known; if not, note that it has to be asked for."""

    def original(self, topic: bytes) -> Original | None:
        """Return the denied topic for which a substitute stands; None if it is not one."""

    def clean(self, text: bytes, *, whole: bool) -> bytes:
        """Return a text without the broker addresses in it. `whole`: it must not be shortened."""

    def advertise(self, node: Node) -> Address:
        """Return the gateway's address for a broker."""

    def learn(self, id: bytes, name: bytes) -> None:
        """Note the name of a topic."""

    def failed(self, code: int) -> None:
        """Count an error."""


class Pass:
    """One pass over a response. `filters`: topics that the client may not look up are removed.
    `counts`: errors are counted. `changes`: so far, in the order of the frame. `cost`: of the work
    since the last pause, in simple operations."""

    __slots__ = (
        "_codes",
        "_count",
        "_counts",
        "_denial",
        "_filters",
        "_flexible",
        "_frame",
        "_gone",
        "_host",
        "_id",
        "_is_hidden",
        "_is_named",
        "_kind",
        "_mark",
        "_name",
        "_node",
        "_number",
        "_setting",
        "_view",
        "changes",
        "cost",
    )

    def __init__(
        self, view: View, frame: bytes, *, flexible: bool, filters: bool, counts: bool
    ) -> None:
        self._view = view
        self._frame = frame
        self._flexible = flexible
        self._filters = filters
        self._counts = counts
        self.changes: list[Change] = []
        self.cost = 0
        # Of the list of topics that is read:
        self._number = -1  # the index of the change of its length, which is made at its end
        self._count = self._gone = 0  # elements, and those that are removed
        # Of the element of this list that is read:
        self._mark = 0  # the index of its first change
        self._is_hidden = False
        self._is_named = False  # it has a field for the topic's name
        self._denial = 0  # the error of a substitute
        self._codes: list[tuple[int, int]] = []  # places of errors in front of the topic
        self._name = self._id = b""
        # Of other structs:
        self._node = -1
        self._host: tuple[int, int, str] = (0, 0, "")
        self._setting = self._kind = b""

    # -- topics ------------------------------------------------------------------------------

    def length(self, at: Walker) -> None:
        """Begin a list of topics."""
        self.end()
        self._number = len(self.changes)
        self.changes.append((at.start, at.end, self._frame[at.start : at.end]))
        self._mark = len(self.changes)
        self._count = at.count

    def end(self) -> None:
        """End a list of topics: state how many are left."""
        if self._number < 0:
            return
        start, end, _ = self.changes[self._number]
        left = self._count - self._gone
        if self._gone:
            number = unsigned(left + 1) if self._flexible else left.to_bytes(4)
            self.changes[self._number] = (start, end, number)
        elif self._number == len(self.changes) - 1:
            self.changes.pop()
        self._number, self._gone = -1, 0

    def name(self, at: Walker) -> None:
        """Read the name of a topic."""
        self._is_named = True
        self._name = text_at(self._frame, at, flexible=self._flexible) or b""
        self._topic(at, self._name, by_id=False)

    def id(self, at: Walker) -> None:
        """Read the id of a topic."""
        self._id = self._frame[at.start : at.end]
        if self._id != NONE:
            self._topic(at, self._id, by_id=True)

    def _topic(self, at: Walker, topic: bytes, *, by_id: bool) -> None:
        denied = self._view.original(topic)
        if denied is not None:
            self.changes.append((at.end - len(topic), at.end, denied.topic))
            self._denial = denied.error
            for start, end in self._codes:
                self._deny(start, end)
            self._codes.clear()
        elif self._filters and not self._is_hidden:
            self.cost += HIDING
            self._is_hidden = self._view.hides(topic, by_id=by_id)

    def alone(self, at: Walker) -> None:
        """Restore a topic that is in no list."""
        topic = text_at(self._frame, at, flexible=self._flexible) or b""
        denied = self._view.original(topic)
        if denied is not None:
            self.changes.append((at.end - len(topic), at.end, denied.topic))

    def code(self, at: Walker) -> None:
        """Read an error of a topic, or of one of its partitions."""
        if self._denial:
            self._deny(at.start, at.end)
        elif self._name or self._id:
            self.count(at)
        else:
            self._codes.append((at.start, at.end))

    def _deny(self, start: int, end: int) -> None:
        self.changes.append((start, end, self._denial.to_bytes(2)))
        if self._counts:
            self._view.failed(self._denial)

    def element(self, at: Walker) -> None:
        """End an element of a list of topics."""
        for start, end in self._codes:
            self._count_code(start, end)
        if self._id and self._id != NONE:
            if self._name:
                self._view.learn(self._id, self._name)
            elif self._filters and not (self._is_named or self._denial):
                self._is_hidden |= not self._view.knows(self._id)
        if self._is_hidden:
            self._remove(at.start, at.end)
        elif self._denial:
            self.changes[self._mark :] = sorted(self.changes[self._mark :])
        self._mark = len(self.changes)
        self._is_hidden = self._is_named = False
        self._denial = 0
        self._name = self._id = b""
        self._codes.clear()

    def named_element(self, at: Walker) -> None:
        """Read an element that is a name itself."""
        self.name(at)
        self.element(at)

    def _remove(self, start: int, end: int) -> None:
        """Remove an element. Elements that follow one another are removed together."""
        self._gone += 1
        del self.changes[self._mark :]
        if self._gone > 1 and self.changes[-1][1:] == (start, b""):
            start = self.changes.pop()[0]
        self.changes.append((start, end, b""))

    def kind(self, at: Walker) -> None:
        """Read the protocol type of a group."""
        self._kind = text_at(self._frame, at, flexible=self._flexible) or b""

    def subscription(self, at: Walker) -> Slices[None]:
        """Empty a member's subscription if it names a topic that the client may not look up."""
        return self._membership(at, assigned=False)

    def assignment(self, at: Walker) -> Slices[None]:
        """Empty a member's assignment if it names a topic that the client may not look up."""
        return self._membership(at, assigned=True)

    def _membership(self, at: Walker, *, assigned: bool) -> Slices[None]:
        data = bytes_at(self._frame, at, flexible=self._flexible)
        if self._kind != CONSUMER or not data:
            return
        for topic in topics_of(data, assigned=assigned):
            self.cost += HIDING
            if self.cost >= CHEAP:
                self.cost = 0
                yield
            if topic is None or self._view.hides(topic, by_id=False):
                self.changes.append((at.start, at.end, b"\1" if self._flexible else bytes(4)))
                return

    # -- other fields ------------------------------------------------------------------------

    def count(self, at: Walker) -> None:
        """Count an error."""
        self._count_code(at.start, at.end)

    def _count_code(self, start: int, end: int) -> None:
        code = int.from_bytes(self._frame[start:end], signed=True)
        if code and self._counts:
            self._view.failed(code)

    def text(self, at: Walker) -> None:
        """Remove broker addresses from a text."""
        self._clean(at, whole=False)

    def setting_name(self, at: Walker) -> None:
        """Read the name of a setting."""
        self._setting = text_at(self._frame, at, flexible=self._flexible) or b""

    def setting(self, at: Walker) -> None:
        """Remove broker addresses from a setting."""
        if self._setting in SETTINGS:
            self.changes.append((at.start, at.end, b"\0" if self._flexible else b"\xff\xff"))
        else:
            self._clean(at, whole=True)

    def _clean(self, at: Walker, *, whole: bool) -> None:
        text = text_at(self._frame, at, flexible=self._flexible)
        if not text:
            return
        self.cost += CLEANING + len(text) // CLEANED
        other = self._view.clean(text, whole=whole)
        if other != text:
            if not self._flexible:
                other = other[:LONGEST].decode(errors="ignore").encode()
            self.changes.append((at.start, at.end, as_text(other, flexible=self._flexible)))

    def node(self, at: Walker) -> None:
        """Read the id of a broker."""
        self._node = int.from_bytes(self._frame[at.start : at.end], signed=True)

    def host(self, at: Walker) -> None:
        """Read the host of a broker. An empty one means that no coordinator is available, or that
        the broker is not alive."""
        self._host = (at.start, at.end, host_at(self._frame, at, flexible=self._flexible))

    def port(self, at: Walker) -> None:
        """Rewrite an address."""
        start, end, name = self._host
        if name:
            port = int.from_bytes(self._frame[at.start : at.end], signed=True)
            own = self._view.advertise(Node(self._node, name, port))
            host = as_text(own.host.encode("ascii"), flexible=self._flexible)
            self.changes.append((start, end, host))
            self.changes.append((at.start, at.end, own.port.to_bytes(4)))

    def empty(self, at: Walker) -> None:
        """Empty a list."""
        self.changes.append((at.start, at.end, unsigned(1) if self._flexible else bytes(4)))


Handler = Callable[[Pass, Walker], Slices[None] | None]


class Reading(NamedTuple):
    """How a response is read. `handlers`: by the label of the plan. `filters`: see `Pass`."""

    plan: Plan
    handlers: tuple[Handler, ...]
    filters: bool


def rewritten(
    key: int,
    schema: Schema,
    version: int,
    frame: bytes,
    start: int,
    view: View,
    *,
    guarded: bool,
    substituted: bool,
) -> Slices[bytes]:
    """Return a response, whose body begins at `start`, as the client gets it; the same object if
    nothing is changed. `key`: the response's API key. `guarded`: clients are authorized.
    `substituted`: the response may have substitutes. Raises `PeerError` if the response is
    truncated, or an address is invalid."""
    read = _reading(key, schema, version, guarded=guarded, substituted=substituted)
    if not read.handlers:
        return frame
    steps = read.plan.walker(frame, start, len(frame))
    flexible = version >= schema.flexible
    counts = key not in UNCOUNTED
    over = Pass(view, frame, flexible=flexible, filters=read.filters, counts=counts)
    tagged: list[Tagged] = []
    while (label := steps.advance()) != END:
        if label >= 0:
            slices = read.handlers[label](over, steps)
            if slices is not None:
                yield from slices
            over.cost += 1
        elif label == TAGGED:
            tagged.append(Tagged(steps.start, steps.end, steps.until))
        if label == PAUSED or over.cost >= CHEAP:
            over.cost = 0
            yield
    over.end()
    return (yield from spliced(frame, tagged, over.changes))


@cache
def _reading(
    key: int, schema: Schema, version: int, *, guarded: bool, substituted: bool
) -> Reading:
    filters = guarded and key in LISTING
    topics = filters or substituted or key == METADATA
    reader = _Reader(rules_of(key, TO_CLIENT), version, topics, filters)
    handlers = dict(reader.handlers(schema.fields, "", listed=False))
    if key in UNCOUNTED and not substituted:
        handlers = {path: it for path, it in handlers.items() if it not in (Pass.code, Pass.count)}
    made = plan(schema, version, frozenset(handlers), unless_zero=not substituted)
    return Reading(made, tuple(handlers[label] for label in made.labels), filters)


Handlers = Iterator[tuple[str, Handler]]

_TOPICS = frozenset({Act.ASKED, Act.FILTERED})
_MEMBERSHIPS = {"MemberMetadata": Pass.subscription, "MemberAssignment": Pass.assignment}
_OTHERS = {Act.TEXT: Pass.text, Act.SETTING: Pass.setting, Act.EMPTIED: Pass.empty}


class _Reader(NamedTuple):
    """Makes the handlers of one version. `topics`: topics are read."""

    rules: Mapping[str, Rule]
    version: int
    topics: bool
    filters: bool

    def handlers(self, fields: Iterable[Field], at: str, *, listed: bool) -> Handlers:
        """Yield what is done at each field of a struct, by the field's name in plans. `at`: the
        struct's path. `listed`: the struct is an element of a list of topics, or is inside one."""
        for field in of(tuple(fields), self.version):
            path = path_of(at, field)
            inner = tuple(of(field.fields, self.version))
            is_list = self._is_list(path, field, inner)
            if is_list:
                yield path + "#", Pass.length
                yield path + "[]", Pass.element if inner else Pass.named_element
            elif field.name in ERRORS:
                yield path, Pass.code if listed else Pass.count
            else:
                yield from self._of(field, path, at, listed=listed)
            yield from self.handlers(inner, path, listed=listed or is_list)

    def _is_list(self, path: str, field: Field, inner: tuple[Field, ...]) -> bool:
        names = [path, *(path_of(path, member) for member in inner)]
        return (
            self.topics
            and field.kind.startswith("[]")
            and any(self._act(name) in _TOPICS for name in names)
        )

    def _act(self, path: str) -> Act | None:
        return self.rules[path].act if path in self.rules else None

    def _of(self, field: Field, path: str, at: str, *, listed: bool) -> Handlers:
        """Yield what is done at a field and its siblings."""
        beside = f"{at}/" if at else ""
        match act := self._act(path):
            case Act.ASKED | Act.FILTERED:
                if self.topics:
                    of_list = Pass.id if field.kind == "uuid" else Pass.name
                    yield path, of_list if listed else Pass.alone
            case Act.ADDRESS:
                yield from ((beside + node, Pass.node) for node in NODES)
                yield path, Pass.host
                yield beside + "Port", Pass.port
            case Act.MEMBERSHIP:
                if self.filters:
                    yield path, _MEMBERSHIPS[field.name]
                    yield at.rpartition("/")[0] + "/ProtocolType", Pass.kind  # of their group
            case Act.TEXT | Act.SETTING | Act.EMPTIED:
                if act is Act.SETTING:
                    yield beside + "Name", Pass.setting_name
                yield path, _OTHERS[act]
