"""The fetch sessions and share sessions that one connection may use.

A broker keeps the topics of a session, so that later requests name only what has changed. Whoever
names a session gets the messages of its topics: the broker knows the gateway as one principal, and
binds a session to none. So a connection uses only a fetch session that an answer gave it, and only
a share session that it has begun. Whoever loses a right loses the connection, and the sessions with
it.

Sources: KIP-227 (fetch sessions), KIP-932 (share sessions).
"""

from __future__ import annotations

from gateway.wire.kafka.frames import Head
from gateway.wire.kafka.schema import Schema
from gateway.wire.kafka.walk import plan, text_at

MOST = 8
"""Sessions of each kind that a connection may use at a time; clients have one. Of more, those that
it was given first are forgotten."""

LONGEST = 256
"""Bytes of the names of a group and its member whose share session is kept. Brokers take 249 for a
group; members are named by ids of 22 bytes."""

NO_SESSION = 0
"""Of a fetch request without a session, or that asks for one."""

_BEGINS = 0
"""The epoch of a request that begins a share session."""

_OF_SHARE = ("GroupId", "MemberId", "ShareSessionEpoch")


class Sessions:
    """What one connection may use."""

    __slots__ = ("_fetch", "_share")

    def __init__(self) -> None:
        self._fetch: tuple[int, ...] = ()
        self._share: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def any_fetch(self) -> bool:
        """Return whether a broker keeps topics that the connection has named."""
        return bool(self._fetch)

    def gave(self, session: int) -> None:
        """Note the fetch session that an answer names."""
        if session != NO_SESSION and session not in self._fetch:
            self._fetch = (*self._fetch, session)[-MOST:]

    def may_fetch(self, session: int) -> bool:
        """Return whether a request of Fetch may name a session."""
        return session == NO_SESSION or session in self._fetch

    def may_share(self, schema: Schema, head: Head, frame: bytes) -> bool:
        """Return whether a request of a share group may use the session that it names, and note the
        one that it begins. Raises `PeerError` if it is torn."""
        flexible = head.version >= schema.flexible
        epoch, names = _BEGINS, [b"", b""]
        found = plan(schema, head.version, frozenset(_OF_SHARE)).walk(frame, head.body, len(frame))
        for place in found.places:
            if place.name == "ShareSessionEpoch":
                epoch = int.from_bytes(frame[place.start : place.end], signed=True)
            else:
                names[_OF_SHARE.index(place.name)] = text_at(frame, place, flexible=flexible) or b""
        group, member = names
        if epoch != _BEGINS:
            return (group, member) in self._share
        if len(group) + len(member) <= LONGEST and (group, member) not in self._share:
            self._share = (*self._share, (group, member))[-MOST:]
        return True
