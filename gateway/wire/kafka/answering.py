"""Changes a broker's responses on their way to the client, except those of Fetch.

The gateway's addresses take the place of brokers'. APIs that the gateway does not offer are removed
from responses to ApiVersions. Substitutes of denied topics are replaced by the topics' own names,
with an error for each.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection

from gateway.wire.account import Account, Action, Right
from gateway.wire.address import Address
from gateway.wire.kafka.addresses import METADATA, PRODUCE, SHARE_FETCH, Node
from gateway.wire.kafka.book import STRAY, Book
from gateway.wire.kafka.codec import encoded
from gateway.wire.kafka.commits import COMMITS, DELETE_GROUPS, Commit, accepted, commit_of, deleted
from gateway.wire.kafka.context import Client, Listener
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import API_VERSIONS, SIZE, Head, body_of_response, response
from gateway.wire.kafka.in_flight import Asked
from gateway.wire.kafka.names import read_topic
from gateway.wire.kafka.records import counted
from gateway.wire.kafka.rewriting import rewritten
from gateway.wire.kafka.schema import Api, Schema, api
from gateway.wire.kafka.substitutes import Original, Substitutes
from gateway.wire.kafka.synthetic import ERROR
from gateway.wire.kafka.throttle import Throttle, has_throttle, throttled
from gateway.wire.kafka.versions import offered
from gateway.wire.kafka.walk import Change, Place, plan, spliced, topic_at, unsigned
from gateway.wire.slices import Slices
from gateway.wire.subject import TopicName

BY_IDS = 12
"""The first version of Metadata that can request topics by id."""

_SHARED_TOPIC, _SHARED_RECORDS = "Responses/TopicId", "Responses/Partitions/Records"
_SHARED_ERROR = "ErrorCode"
_SHARED = frozenset(
    {_SHARED_ERROR, _SHARED_TOPIC, "Responses/Partitions/ErrorCode", _SHARED_RECORDS}
)
_NO_RECORDS = unsigned(1)
_ASSIGNING = frozenset({68, 76})
"""The APIs whose responses assign partitions of topics by the topics' ids alone. If a name is not
known, the client gets an error after which it states anew what it has (Java's client after 0.1 s),
so that the broker assigns again. By then the gateway has the name: it asks the broker behind the
response. An assignment without the topic would not be repeated."""

_PRODUCED = frozenset({"Name", "TopicId", "ErrorCode"})
_NO_ERROR = bytes(2)


class Answering:
    """Changes the responses of one connection. It also counts the errors in them, and the receipts
    of producers, which are the broker's responses to Produce."""

    __slots__ = (
        "_book",
        "_client",
        "_commit",
        "_listener",
        "_services",
        "_substitutes",
        "_throttle",
    )

    def __init__(
        self,
        listener: Listener,
        client: Client,
        book: Book,
        substitutes: Substitutes,
        throttle: Throttle,
    ) -> None:
        self._listener = listener
        self._services = listener.settings.services
        self._client = client
        self._book = book
        self._substitutes = substitutes
        self._throttle = throttle
        self._commit: Commit | None = None  # the last one, until its response

    def commits(self, known: Api, head: Head, frame: bytes, request: Asked) -> Slices[None]:
        """Keep the offsets in a commit request until the broker has responded to the request.
        Raises `PeerError` if the request is truncated."""
        self._forget_commit()
        commit = yield from commit_of(known.request, head, frame, request)
        if self._client.quota.fits(commit.size):
            self._client.quota.take(commit.size)
            self._commit = commit

    def response(self, request: Asked, frame: bytes) -> Slices[bytes]:
        """Return the frame to send to the client in place of a broker's response; `frame` itself if
        nothing has to be changed. Raises `PeerError` if the response is truncated."""
        known = api(request.key)
        assert known is not None
        start = body_of_response(known, request.version, frame)
        schema, version = known.response, request.version
        before = frame
        used: Collection[Account] = ()
        if request.key == PRODUCE:
            used = yield from self._count(known, request, frame, start)
        elif request.key == SHARE_FETCH:
            frame, used = yield from self._count_shared(schema, version, frame, start)
        yield from self._note(request, schema, frame, start)
        view = _View(self._listener, self._client, self._book, self._substitutes, known.name)
        frame = yield from rewritten(
            request.key,
            schema,
            version,
            frame,
            start,
            view,
            guarded=self._services.guarded,
            substituted=len(self._substitutes) > 0,
        )
        if view.lacks_names and request.key in _ASSIGNING:
            view.failed(ErrorCode.COORDINATOR_LOADING)
            body = yield from encoded(schema, version, {ERROR: ErrorCode.COORDINATOR_LOADING})
            frame = response(known, version, request.correlation, body)
        throttle = self._throttle.milliseconds(used) if used else 0
        if throttle and has_throttle(schema, version):
            frame = throttled(schema, version, frame, start, throttle)
        if request.key == API_VERSIONS:
            frame = offered(schema, version, frame, start, self._listener.hidden)
        if frame is before:
            return frame
        return SIZE.pack(len(frame) - SIZE.size) + frame[SIZE.size :]

    def _note(self, request: Asked, schema: Schema, frame: bytes, start: int) -> Slices[None]:
        """Keep the offsets and deleted groups in a response."""
        if request.key in COMMITS:
            yield from self._committed(request, schema, frame, start)
        elif request.key == DELETE_GROUPS:
            for group in deleted(schema, request.version, frame, start):
                self._services.deleted(group.decode(errors="replace"))

    def _committed(self, request: Asked, schema: Schema, frame: bytes, start: int) -> Slices[None]:
        """Keep the offsets that the broker has accepted."""
        commit = self._commit
        # Clients may give several requests one correlation id, but each is another object.
        if commit is None or commit.request is not request:
            return  # the client has sent another commit meanwhile
        group = commit.group.decode(errors="replace")
        for committed in accepted(schema, request.version, frame, start, commit):
            if committed is None:
                yield
                continue
            by_id = request.version >= COMMITS[request.key]
            name = self._book.name(committed.topic, wanted=False) if by_id else committed.topic
            topic = None if name is None else read_topic(name.decode(errors="replace"))
            if topic is not None:
                self._services.committed(group, topic, committed.partition, committed.offset)
        self._forget_commit()

    def _forget_commit(self) -> None:
        if self._commit is not None:
            self._client.quota.give_back(self._commit.size)
            self._commit = None

    def _count(
        self, known: Api, request: Asked, frame: bytes, start: int
    ) -> Slices[Collection[Account]]:
        """Count the receipts of a Produce request, and those that are errors. Return the accounts
        of its topics; a substitute of a denied topic has none."""
        schema, version = known.response, request.version
        account: Account | ErrorCode | None = None
        used: dict[Account, None] = {}
        is_counted = False  # the topic's error
        for place in plan(schema, version, _PRODUCED).found(frame, start, len(frame)):
            if place is None:
                yield
            elif place.name != "ErrorCode":
                by_id = place.name == "TopicId"
                topic = topic_at(frame, place, by_id=by_id, flexible=version >= schema.flexible)
                account = self._used(Action.PRODUCE, topic, by_id=by_id)
                is_counted = False
            elif isinstance(account, Account) and account is not STRAY:
                if account not in used:
                    account.receipts += 1
                    used[account] = None
                if frame[place.start : place.end] != _NO_ERROR and not is_counted:
                    account.errors += 1
                    is_counted = True
        return used

    def _count_shared(
        self, schema: Schema, version: int, frame: bytes, start: int
    ) -> Slices[tuple[bytes, tuple[Account, ...]]]:
        """Count the messages that a member of a share group gets. Return the response without the
        messages of topics that have no account, and the accounts that have no allowance left."""
        account: Account | ErrorCode = STRAY
        error = Place("", 0, 0)
        held: list[Account] = []
        changes: list[Change] = []
        for place in plan(schema, version, _SHARED).found(frame, start, len(frame)):
            if place is None:
                yield
            elif place.name == _SHARED_ERROR:
                refused = any(frame[place.start : place.end])
                self._book.sessions.shared(refused=refused)
            elif place.name == _SHARED_TOPIC:
                id = frame[place.start : place.end]
                account = self._used(Action.CONSUME, id, by_id=True)
            elif place.name != _SHARED_RECORDS:
                error = place
            elif isinstance(account, ErrorCode) or account is STRAY:
                code = ErrorCode.UNKNOWN_TOPIC_ID if isinstance(account, Account) else account
                changes.append((error.start, error.end, code.to_bytes(2)))
                changes.append((place.start, place.end, _NO_RECORDS))
            elif (yield from self._counted(account, frame, place)):
                held.append(account)
        frame = yield from spliced(frame, [], changes)
        return frame, tuple(held)

    def _counted(self, account: Account, frame: bytes, place: Place) -> Slices[bool]:
        """Count the messages of one partition; return whether the account has no allowance left."""
        size, messages = yield from counted(frame, place, flexible=True, whole=False)
        if messages:
            account.count(messages)
            account.bytes += size
        if account.held:
            self._throttle.used_up(account)
        return account.held

    def _used(self, action: Action, topic: bytes, *, by_id: bool) -> Account | ErrorCode:
        if self._substitutes.original(topic) is not None:
            return STRAY
        return self._book.use(action, topic, by_id=by_id)

    def rebootstrap(self, head: Head) -> bytes:
        """Return the Metadata response that tells a client to connect to its bootstrap servers
        again."""
        known = api(METADATA)
        assert known is not None
        # No brokers, no cluster, no controller, no topics, and the error (KIP-1102).
        nothing = unsigned(1)
        body = bytes(4) + nothing + b"\0" + struct.pack(">i", -1) + nothing
        body += struct.pack(">h", ErrorCode.REBOOTSTRAP_REQUIRED) + b"\0"
        return response(known, head.version, head.correlation, body)


class _View:
    """What the client of one connection sees of a cluster; see `rewriting.View`. `api`: the name of
    the API whose response is rewritten. `lacks_names`: a topic was met whose name is not known."""

    __slots__ = (
        "_api",
        "_book",
        "_client",
        "_listener",
        "_may_know",
        "_services",
        "_substitutes",
        "lacks_names",
    )

    def __init__(
        self, listener: Listener, client: Client, book: Book, substitutes: Substitutes, api: str
    ) -> None:
        self._book = book
        self.lacks_names = False
        self._listener = listener
        self._services = listener.settings.services
        self._client = client
        self._substitutes = substitutes
        self._api = api
        self._may_know: Callable[[TopicName], bool] | None = None

    def hides(self, topic: bytes, *, by_id: bool) -> bool:
        """See `View`. A topic whose id has no known name is not hidden: see `knows`."""
        if self._may_know is None:
            self._may_know = self._services.which(Right.LOOKUP, self._client.subject)
        name = (self._listener.ids.name(topic) or b"") if by_id else topic
        known = read_topic(name.decode(errors="replace"))
        return known is not None and not self._may_know(known)

    def knows(self, id: bytes) -> bool:
        """See `View`."""
        is_known = self._book.name(id) is not None
        self.lacks_names |= not is_known
        return is_known

    def original(self, topic: bytes) -> Original | None:
        """See `View`."""
        return self._substitutes.original(topic)

    def clean(self, text: bytes, *, whole: bool) -> bytes:
        """See `View`."""
        decoded = text.decode(errors="replace")
        bound = None if whole else self._listener.settings.bounds.text
        return self._services.clean(decoded[:bound]).encode()

    def advertise(self, node: Node) -> Address:
        """See `View`."""
        broker = node.address(tls=self._listener.settings.brokers_tls)
        return self._services.advertise_node(node.id, broker)

    def learn(self, id: bytes, name: bytes) -> None:
        """See `View`."""
        self._listener.ids.learn(id, name)

    def failed(self, code: int) -> None:
        """See `View`."""
        self._services.answered_by_error(self._api, code)


def metadata_of(ids: Collection[bytes], correlation: int) -> tuple[int, bytes]:
    """Return a Metadata request that asks a broker for the names of these topic ids: its version
    and its frame."""
    topics = b"".join(id + unsigned(0) + b"\0" for id in ids)
    body = unsigned(len(ids) + 1) + topics + b"\0\0" + b"\0"
    head = struct.pack(">hhih", METADATA, BY_IDS, correlation, -1) + b"\0"
    frame = head + body
    return BY_IDS, SIZE.pack(len(frame)) + frame
