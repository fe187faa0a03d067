"""Client ids, by which servers know producers and consumers.

A server does what a request says about a client id, whoever sends the request: it ends a consumer,
or gives away the partitions of another. So the gateway gives servers another id than the client
has: the end of the id is replaced by a digest of the principal and the whole id. No principal can
send an id that servers take for another principal's. All gateways compute the same digest, so a
client may reconnect to any of them.

The length stays the same, so requests for messages pass with the id overwritten. Clients' ids begin
with the group and the host, which operators still read in the master's console.

Where the gateway does not know principals, ids pass unchanged.

Servers split the text `client@group`, by which a master drops a client without heartbeats, at each
`@`. So an id with an `@` could name another client and another group.
"""

from __future__ import annotations

from base64 import b32encode
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import NamedTuple

DIGEST = 24
"""Characters of the digest, 120 bits. Ids of real clients have 40 characters or more; shorter ones
become longer."""

_DIGEST_SIZE = DIGEST * 5 // 8


class Own(NamedTuple):
    """The client and the group that a request names. `id`: the id that the client has given itself.
    `known_as`: its id at servers. `group`: empty without one."""

    id: str
    known_as: str
    group: str = ""


NONE = Own("", "")


def known_as(principal: str | None, id: str) -> str:
    """Return the id by which servers know a principal's client. `principal`: None if nobody
    verifies clients."""
    if principal is None:
        return id
    digest = blake2b(id.encode(), digest_size=_DIGEST_SIZE, key=_key(principal)).digest()
    return id[:-DIGEST] + b32encode(digest).decode().lower()


@lru_cache(1024)
def _key(principal: str) -> bytes:
    return sha256(principal.encode(errors="surrogatepass")).digest()
