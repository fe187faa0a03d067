"""The fetch sessions and share sessions that one connection may use.

A broker remembers the topics of a session, so that later requests name only changes. Any request
that names a session gets the messages of the session's topics: to the broker all clients are one
principal, the gateway. So the gateway lets a connection use only fetch sessions that a response to
this connection has named, and share sessions that this connection has begun. If a client loses a
right, its connection ends, and its sessions with it.

Sources: KIP-227 (fetch sessions), KIP-932 (share sessions).
"""

from __future__ import annotations

MOST = 8
"""The most sessions of each kind that a connection may use at a time; clients have one. Beyond that
the oldest ones are forgotten."""

LONGEST = 1024
"""The most bytes of a group's and a member's name together whose share session is kept. Member ids
have 22 bytes, group names some dozens."""

NO_SESSION = 0
"""The session id of a fetch request without a session, or that asks for a new one."""

_BEGINS = 0
"""The epoch of a request that begins a share session."""

Member = tuple[bytes, bytes]
"""A group and its member; both together name a share session."""


class Sessions:
    """The fetch and share sessions that one connection may use."""

    __slots__ = ("_beginning", "_fetch", "_share")

    def __init__(self) -> None:
        self._fetch: tuple[int, ...] = ()
        self._share: tuple[Member, ...] = ()
        self._beginning: Member | None = None  # that the last such request begins

    @property
    def any_fetch(self) -> bool:
        """Return whether the connection has a fetch session, whose topics a broker remembers."""
        return bool(self._fetch)

    def gave(self, session: int) -> None:
        """Allow this connection to use a fetch session, because a response to the connection has
        named it."""
        if session != NO_SESSION and session not in self._fetch:
            self._fetch = (*self._fetch, session)[-MOST:]

    def may_fetch(self, session: int) -> bool:
        """Return whether a Fetch request of this connection may name this session."""
        return session == NO_SESSION or session in self._fetch

    def may_share(self, member: Member, epoch: int) -> bool:
        """Return whether a request of a share group may use the share session of this member. If
        the request begins the session, the session is remembered until `shared` is called for the
        response. `epoch`: of the session, as the request states it."""
        if epoch != _BEGINS:
            return member in self._share
        self._beginning = member if sum(map(len, member)) <= LONGEST else None
        return True

    def shared(self, *, refused: bool) -> None:
        """Handle the broker's response to a ShareFetch request. If the request has begun a share
        session, the connection may use this session from now on, unless the response is an error
        (`refused`). Members send no other request of that session before this response."""
        begun, self._beginning = self._beginning, None
        if begun is not None and not refused and begun not in self._share:
            self._share = (*self._share, begun)[-MOST:]
