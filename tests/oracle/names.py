"""Topic names of all kinds: valid ones, other spellings of them, and names that no broker
accepts."""

from __future__ import annotations

from random import Random

_DOMAINS = (
    "persistent://",
    "non-persistent://",
    "topic://",
    "segment://",
    "PERSISTENT://",
    "Persistent://",
    "NON-PERSISTENT://",
    "per\u017fistent://",
    "pers\u0131stent://",
    "non_persistent://",
    "://",
    ":/",
    "x://",
    " persistent://",
    "persistent:",
    "persistent/",
)
_PARTS = ("t", "n", "public", "default", "pulsar", "system", "orders", "my.tenant", "a=b:c", "..")
_ODD_PARTS = (
    "",
    " ",
    ".",
    "%2F",
    "a b",
    "a\x00b",
    "\x00",
    "\n",
    "a\n",
    "\u00a0",
    "\u2003",
    "\u3000",
    "\u200b",
    "\ufeff",
    "\x1c",
    "\x85",
    "\u00fc",
    "\u65e5\u672c",
    "\U0001f600",
    "?x=1",
    "#x",
    "x?y",
    "*",
    "\\",
    "+",
    "a,b",
    "x" * 300,
    "transaction_coordinator_assign",
    "transaction_coordinator_assign-partition-0",
    "__change_events",
    ":",
    "a:",
)
_ENDS = (
    "-partition-0",
    "-partition-1",
    "-partition-00",
    "-partition-01",
    "-partition-",
    "-partition--1",
    "-partition-+1",
    "-partition-2147483647",
    "-partition-2147483648",
    "-partition-99999999999",
    "-PARTITION-1",
    "-partition-1-partition-2",
    "-partition-x-partition-2",
    "-partition-\u0663",
    "-partition-1\u0663",
    "-partition-\uff11",
    "-partition-\U0001d7cf",
    "-partition-1 ",
    "-partition-1\n",
    "-partition-1/x",
    "/",
    "//",
    "/0000-ffff-1",
    "/0-ffff-1",
    "/0000-FFFF-01",
    "/0000-7fff-1-",
)
_BYTES = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\xf8\x88\x80\x80\x80")

_COMMON = (
    "persistent://public/default/t",
    "persistent://public/default/t",
    "t",
    "orders",
    "public/default/orders",
    "persistent://t/n/orders-partition-3",
    "non-persistent://t/n/x",
    "persistent://public/default/forbidden",
    "persistent://pulsar/system/reports",
    "pulsar/system/transaction_coordinator_assign-partition-1",
)


def any_name(rng: Random) -> bytes:
    """Return a topic name, mostly one that a client would write."""
    if rng.random() < 0.6:
        return rng.choice(_COMMON).encode()
    return odd_name(rng)


def odd_name(rng: Random) -> bytes:
    """Return a name of parts that have a meaning for some decoder."""
    domain = rng.choice(_DOMAINS) if rng.random() < 0.5 else ""
    if rng.random() < 0.3:
        domain = rng.choice(_DOMAINS[:2])
    parts = [_part(rng) for _ in range(rng.choice((1, 1, 2, 3, 3, 3, 3, 4, 5)))]
    name = domain + "/".join(parts)
    if rng.random() < 0.35:
        name += rng.choice(_ENDS)
    if rng.random() < 0.08:
        name = "/" * rng.randint(1, 2) + name
    said = name.encode()
    if rng.random() < 0.04:
        at = rng.randint(0, len(said))
        said = said[:at] + rng.choice(_BYTES) + said[at:]
    return said


def _part(rng: Random) -> str:
    return rng.choice(_PARTS if rng.random() < 0.75 else _ODD_PARTS)
