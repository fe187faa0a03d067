"""Authorizes requests, in one pass over each: what `fields` says of their fields.

Rights are on topics. Rules match a consumer group, and also a producer's transactional id, by their
field `subscription`. A request about the cluster, not about single topics, needs the right to
administer.

If the client lacks a right on one topic of a request, only this topic is denied: the broker gets a
substitute in its place, and the client gets the topic's own name with an error (`substitutes`). If
the client lacks any other right, or names a session of another connection, the whole request is
refused (`synthetic`).

A request of a replica could be sent by a client, and the broker would authorize it as one of the
gateway's own principal: it would respond with messages beyond the high watermark, and move the
watermark of a partition. So it is a violation, whatever rules say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from gateway.errors import PeerError
from gateway.wire.account import Account, Action, Right
from gateway.wire.contract import Denial
from gateway.wire.kafka import substitutes as bounds
from gateway.wire.kafka.addresses import FETCH, METADATA, SHARE_ACKNOWLEDGE, SHARE_FETCH
from gateway.wire.kafka.book import MOST_UNKNOWN, Book
from gateway.wire.kafka.context import Client
from gateway.wire.kafka.errors import ErrorCode, of_topic
from gateway.wire.kafka.fields import (
    CLUSTER,
    RIGHTS,
    TO_BROKER,
    Act,
    lists_of_all,
    rules_of,
    walked,
)
from gateway.wire.kafka.frames import SIZE, Head
from gateway.wire.kafka.memberships import CONSUMER, without
from gateway.wire.kafka.names import read_topic, readable
from gateway.wire.kafka.schema import Schema, api
from gateway.wire.kafka.sessions import Sessions
from gateway.wire.kafka.slicing import DRAWN, OPENED
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.topics import NONE
from gateway.wire.kafka.walk import (
    Change,
    Place,
    Plan,
    bytes_at,
    plan,
    spliced,
    text_at,
    unsigned,
)
from gateway.wire.kafka.walker import END, Walker
from gateway.wire.services import Services, Undecided
from gateway.wire.slices import UNITS, Slices
from gateway.wire.subject import Subject

OPENS = frozenset({FETCH, SHARE_FETCH})
"""APIs whose requests open the accounts of their topics."""

OF_SHARE = frozenset({SHARE_FETCH, SHARE_ACKNOWLEDGE})
"""APIs of share sessions."""

_ALWAYS = frozenset({Act.REPLICA, Act.FETCH_SESSION, Act.SHARE_SESSION})
"""What holds on every listener. The rest holds where clients are authorized."""

_WHOLE = (0, -1)
"""Epochs of Fetch requests that name all their topics. The broker closes the session that such a
request names, and begins a new one for epoch 0."""

_CONSUMERS = (-1, -2)
"""Replica ids of consumers, and of tools for debugging. Brokers take -3 for a replica of their own,
and respond with messages beyond the high watermark."""

_NO_SESSION = bytes(4)


class Denied(NamedTuple):
    """A part of a request that the broker does not get. `end`: where it ends in the frame. `topic`:
    the denied topic; empty if it is the id of a fetch session of another connection."""

    end: int
    topic: bytes
    error: ErrorCode
    by_id: bool


class Outcome(NamedTuple):
    """What became of a request. `error`: refuses all of it; None if it may be forwarded without the
    denied parts. `changes`: what else the broker gets otherwise."""

    denied: list[Denied]
    error: ErrorCode | None = None
    changes: Sequence[Change] = ()


class Authorizing:
    """Authorizes the requests of one connection. `book`: the connection's accounts and sessions; it
    notes which topic names and rights the gateway must look up before it can authorize a
    request."""

    __slots__ = ("_book", "_client", "_services", "_substitutes")

    def __init__(
        self, services: Services, client: Client, book: Book, substitutes: Substitutes
    ) -> None:
        self._services = services
        self._client = client
        self._book = book
        self._substitutes = substitutes

    def authorize(self, schema: Schema, head: Head, frame: bytes) -> Slices[Outcome]:
        """Return what the client may not do of a request. Raises `PeerError` if the request is
        truncated, or is a replica's."""
        guarded = self._services.guarded
        read = _reading(schema, head.key, head.version, guarded=guarded)
        steps = read.plan.walker(frame, head.body, len(frame))
        request = _Request(self._client, self._book, schema, head, frame)
        while (label := steps.advance()) != END:
            if label < 0:
                yield
                continue
            error = read.acts[label](request, steps)
            if error is not None:
                return Outcome(request.denied, error)
            if request.units >= UNITS:
                request.units = 0
                yield
        if guarded and head.key in CLUSTER:
            return Outcome(request.denied, request.lacks_cluster())
        error = yield from request.filter_subscriptions()
        return Outcome(request.denied, error, request.changes)

    def without(self, frame: bytes, outcome: Outcome) -> Slices[bytes]:
        """Return a request with substitutes in place of the denied topics, and without the session
        of another connection and what subscriptions lose; `frame` itself if nothing is denied."""
        if outcome.changes:
            data = yield from spliced(frame, [], list(outcome.changes))
            frame = SIZE.pack(len(data) - SIZE.size) + data[SIZE.size :]
        if not outcome.denied:
            return frame
        changed = bytearray(frame)
        for number, (end, topic, error, by_id) in enumerate(outcome.denied, 1):
            if topic:
                other = (self._substitutes.id if by_id else self._substitutes.name)(topic, error)
            else:
                other = _NO_SESSION
            changed[end - len(other) : end] = other
            if number % DRAWN == 0:
                yield
        return bytes(changed)


class _Request:
    """One request while it is read. `denied`, `changes`: so far. `units`: of work since the last
    pause."""

    __slots__ = (
        "_book",
        "_client",
        "_flexible",
        "_frame",
        "_is_undecided",
        "_key",
        "_kind",
        "_names",
        "_sessions",
        "_subscriptions",
        "_unknown",
        "changes",
        "denied",
        "units",
    )

    def __init__(
        self, client: Client, book: Book, schema: Schema, head: Head, frame: bytes
    ) -> None:
        self._client = client
        self._book = book
        self._sessions: Sessions = book.sessions
        self._key = head.key
        self._flexible = head.version >= schema.flexible
        self._frame = frame
        self._names: list[bytes] = []  # of the share session: its group and member
        self._unknown = 0  # ids of topics, in Metadata
        self._kind = b""  # the protocol type of the group
        self._subscriptions: list[Place] = []
        self._is_undecided = False  # a topic of a subscription has to be asked for
        self.changes: list[Change] = []
        self.denied: list[Denied] = []
        self.units = 0

    # -- topics ------------------------------------------------------------------------------

    def name(self, at: Walker) -> ErrorCode | None:
        """Authorize a topic by its name."""
        topic = self._text(at)
        return self._topic(at, topic, by_id=False) if topic else None

    def id(self, at: Walker) -> ErrorCode | None:
        """Authorize a topic by its id."""
        topic = self._frame[at.start : at.end]
        return None if topic == NONE else self._topic(at, topic, by_id=True)

    def list(self, at: Walker) -> ErrorCode | None:
        """Authorize a list that means all topics if it is empty."""
        return self._on_all() if at.count <= 0 else None

    def expression(self, at: Walker) -> ErrorCode | None:
        """Authorize an expression, by which a broker selects topics itself among all topics."""
        return self._on_all() if self._text(at) else None

    def _topic(self, at: Walker, topic: bytes, *, by_id: bool) -> ErrorCode | None:
        self.units += 1
        if self._key in OPENS:
            error = self._open(topic, by_id=by_id)
        elif self._key == METADATA and by_id:
            # Brokers answer differently for an id that nobody has and for a topic that is hidden
            # from their response, so the gateway asks for the name first.
            name = self._book.name(topic, wanted=self._book.is_guarded)
            if self._has_too_many_unknown(name):
                return ErrorCode.UNKNOWN_TOPIC_ID
            error = self._hides(name)
        else:
            name = self._book.name(topic) if by_id else topic
            error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else self._lacks(name)
            if by_id and name is not None and error is not None:
                self.units += 1
                error = self._book.of_id(name, error)
        if error is not None:
            if len(self.denied) >= bounds.MOST:
                raise PeerError(f"more than {bounds.MOST} topics without a right to them")
            self.denied.append(Denied(at.end, topic, error, by_id))
        return None

    def _open(self, topic: bytes, *, by_id: bool) -> ErrorCode | None:
        if not self._book.has(Action.CONSUME, topic, by_id=by_id):
            self.units += OPENED
        used = self._book.use(Action.CONSUME, topic, by_id=by_id)
        return None if isinstance(used, Account) else used

    def _has_too_many_unknown(self, name: bytes | None) -> bool:
        """Count an id of a Metadata request if nobody here knows its `name`. Return whether there
        are too many of them; then none is asked for."""
        self._unknown += name is None
        if self._unknown > MOST_UNKNOWN:
            self._book.wanted = ()
        return self._unknown > MOST_UNKNOWN

    def _hides(self, name: bytes | None) -> ErrorCode | None:
        hides = name is not None and self._book.is_guarded and self._book.hides(name)
        return ErrorCode.UNKNOWN_TOPIC_ID if hides else None

    def _lacks(self, name: bytes) -> ErrorCode | None:
        topic = read_topic(readable(name))
        if topic is None:
            return None  # brokers refuse it
        refused = self._book.forbid(RIGHTS[self._key], self._client.subject.about(topic))
        if isinstance(refused, Undecided):
            return ErrorCode.LEADER_NOT_AVAILABLE
        return of_topic(refused.refusal) if isinstance(refused, Denial) else None

    def _on_all(self) -> ErrorCode | None:
        right = RIGHTS[self._key]
        if right is Right.ADMINISTER:
            return self.lacks_cluster()
        refused = self._book.forbid_all(right, self._client.subject)
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED if refused is not None else None

    # -- whole requests ----------------------------------------------------------------------

    def lacks_cluster(self) -> ErrorCode | None:
        """Return the error for a client that may not administer the cluster."""
        refused = self._book.forbid(Right.ADMINISTER, self._client.subject)
        return None if refused is None else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    def group(self, at: Walker) -> ErrorCode | None:
        """Authorize a consumer group."""
        return self._of(at, Right.CONSUME, ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def transaction(self, at: Walker) -> ErrorCode | None:
        """Authorize a transactional id."""
        return self._of(at, Right.PRODUCE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    def _of(self, at: Walker, right: Right, error: ErrorCode) -> ErrorCode | None:
        name = self._text(at)
        if name is None:
            return None  # an idempotent producer, or a consumer without a group
        self.units += 1
        subject = Subject(self._client.subject.caller, None, readable(name))
        return None if self._book.forbid(right, subject) is None else error

    # -- subscriptions -----------------------------------------------------------------------

    def kind(self, at: Walker) -> None:
        """Note the protocol type of a group."""
        self._kind = self._text(at) or b""

    def subscription(self, at: Walker) -> None:
        """Note where a member's subscription is."""
        self._subscriptions.append(Place("", at.start, at.end))

    def filter_subscriptions(self) -> Slices[ErrorCode | None]:
        """Note the subscriptions that lose topics. Return an error if one cannot be read, or if the
        rights to its topics are not known."""
        for place in self._subscriptions if self._kind == CONSUMER else ():
            data = bytes_at(self._frame, place, flexible=self._flexible)
            if not data:
                continue
            shown = yield from without(data, self._may_not_subscribe)
            if shown is None:
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if shown != data:
                size = len(shown)
                length = unsigned(size + 1) if self._flexible else size.to_bytes(4)
                self.changes.append((place.start, place.end, length + shown))
        return ErrorCode.COORDINATOR_LOADING if self._is_undecided else None

    def _may_not_subscribe(self, name: bytes) -> bool:
        topic = read_topic(name.decode(errors="replace"))
        if topic is None:
            return False  # no topic has this name
        refused = self._book.forbid(Right.LOOKUP, self._client.subject.about(topic))
        self._is_undecided |= isinstance(refused, Undecided)
        return refused is not None

    # -- replicas and sessions ---------------------------------------------------------------

    def replica(self, at: Walker) -> None:
        """Refuse a request of a replica."""
        if self._number(at) not in _CONSUMERS:
            raise PeerError("a request of a replica")

    def session(self, at: Walker) -> None:
        """Note a fetch session of another connection."""
        if not self._sessions.may_fetch(self._number(at)):
            error = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self.denied.append(Denied(at.end, b"", error, by_id=False))

    def epoch(self, at: Walker) -> ErrorCode | None:
        """Refuse to go on with a fetch session of another connection. A request that would close
        the session, or begin another one, is forwarded without its id."""
        if self.denied and self._number(at) not in _WHOLE:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return None

    def named(self, at: Walker) -> None:
        """Note a part of a share session's name."""
        self._names.append(self._text(at) or b"")

    def guarded_group(self, at: Walker) -> ErrorCode | None:
        """Authorize the group of a share session."""
        self.named(at)
        return self.group(at)

    def share_epoch(self, at: Walker) -> ErrorCode | None:
        """Authorize the use of a share session."""
        group, member = self._names
        if self._sessions.may_share((group, member), self._number(at)):
            return None
        return ErrorCode.SHARE_SESSION_NOT_FOUND

    def _text(self, at: Walker) -> bytes | None:
        return text_at(self._frame, at, flexible=self._flexible)

    def _number(self, at: Walker) -> int:
        return int.from_bytes(self._frame[at.start : at.end], signed=True)


Check = Callable[[_Request, Walker], ErrorCode | None]

_CHECKS: Mapping[Act, Check] = {
    Act.TOPIC: _Request.name,
    Act.GROUP: _Request.group,
    Act.TRANSACTION: _Request.transaction,
    Act.EXPRESSION: _Request.expression,
    Act.REPLICA: _Request.replica,
    Act.SUBSCRIPTION: _Request.subscription,
    Act.FETCH_SESSION: _Request.session,
    Act.SHARE_SESSION: _Request.named,
}
"""What is done at a field. Some fields of the same act have a check of their own, by their name."""

_OWN_CHECKS: Mapping[str, Check] = {
    "SessionEpoch": _Request.epoch,
    "ShareSessionEpoch": _Request.share_epoch,
    "TopicId": _Request.id,
}


class Reading(NamedTuple):
    """How a request is read. `acts`: what is done at each field, by the label of the plan."""

    plan: Plan
    acts: tuple[Check, ...]


@cache
def _reading(schema: Schema, key: int, version: int, *, guarded: bool) -> Reading:
    checks = dict(_checks(key, guarded=guarded))
    made = plan(schema, version, frozenset(checks), whole=True)
    return Reading(made, tuple(checks[label] for label in made.labels))


def _checks(key: int, *, guarded: bool) -> dict[str, Check]:
    """Return what is done at each field of an API's requests, by the field's name in plans."""
    known = api(key)
    assert known is not None
    kinds = {path: field.kind for path, field in walked(known.request.fields)}
    checks: dict[str, Check] = {}
    for path, (act, _) in rules_of(key, TO_BROKER).items():
        check = _check(key, path.rpartition("/")[2], act, guarded=guarded)
        if check is not None:
            checks[path + "[]" if kinds[path].startswith("[]") else path] = check
    if _Request.subscription in checks.values():
        checks["ProtocolType"] = _Request.kind
    if guarded:
        checks |= {f"{path}#": _Request.list for path in lists_of_all(key)}
    return checks


def _check(key: int, name: str, act: Act, *, guarded: bool) -> Check | None:
    """Return what is done at a field; None for nothing."""
    if act is Act.GROUP and key in OF_SHARE:
        return _Request.guarded_group if guarded else _Request.named
    bounds_ids = key == METADATA and name == "TopicId"
    opens = key in OPENS and act is Act.TOPIC
    if not (guarded or act in _ALWAYS or bounds_ids or opens):
        return None
    return _OWN_CHECKS.get(name) or _CHECKS.get(act)
