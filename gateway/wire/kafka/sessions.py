"""The fetch sessions and share sessions that one connection may use.

A broker keeps the topics of a session, so that later requests name only what has changed. Whoever
names a session gets the messages of its topics: the broker knows the gateway as one principal, and
binds a session to none. So a connection uses only a fetch session that a response gave it, and only
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

LONGEST = 1024
"""Bytes of the names of a group and its member whose share session is kept. Members are named by
ids of 22 bytes, and groups by names of some dozens."""

NO_SESSION = 0
"""Of a fetch request without a session, or that asks for one."""

_BEGINS = 0
"""The epoch of a request that begins a share session."""

Member = tuple[bytes, bytes]
"""A group and its member, who names a share session by both."""

_OF_SHARE = ("GroupId", "MemberId", "ShareSessionEpoch")


class Sessions:
    """What one connection may use."""

    __slots__ = ("_beginning", "_fetch", "_share")

    def __init__(self) -> None:
        self._fetch: tuple[int, ...] = ()
        self._share: tuple[Member, ...] = ()
        self._beginning: Member | None = None  # named by the last request that begins one

    @property
    def any_fetch(self) -> bool:
        """Return whether a broker keeps topics that the connection has named."""
        return bool(self._fetch)

    def gave(self, session: int) -> None:
        """Note the fetch session that a response names."""
        if session != NO_SESSION and session not in self._fetch:
            self._fetch = (*self._fetch, session)[-MOST:]

    def may_fetch(self, session: int) -> bool:
        """Return whether a request of Fetch may name a session."""
        return session == NO_SESSION or session in self._fetch

    def may_share(self, schema: Schema, head: Head, frame: bytes) -> bool:
        """Return whether a request of a share group may use the session that it names, and note the
        one that it begins, until its response comes. Raises `PeerError` if it is torn."""
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
        self._beginning = (group, member) if len(group) + len(member) <= LONGEST else None
        return True

    def shared(self, *, refused: bool) -> None:
        """Note the response to a request of ShareFetch. Members wait for the response to the one
        that begins their session, before which they know of none."""
        begun, self._beginning = self._beginning, None
        if begun is not None and not refused and begun not in self._share:
            self._share = (*self._share, begun)[-MOST:]
