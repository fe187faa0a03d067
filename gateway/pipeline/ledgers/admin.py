"""Asks brokers by their REST interface what they store, where their ZooKeeper cannot be reached.

It says more of topics in use than ZooKeeper does, as it knows the open ledger and where cursors are
now. It says less of closed ledgers (not when they were closed), and it costs more: a broker loads
each topic that it is asked about.

    GET /admin/v2/tenants
    GET /admin/v2/namespaces/TENANT
    GET /admin/v2/persistent/TENANT/NAMESPACE?includeSystemTopic=true      partitions one by one
    GET /admin/v2/persistent/TENANT/NAMESPACE/TOPIC/internalStats

A broker answers for its own topics, and redirects (307) to the owner of others; this client follows
as Pulsar's own does, with its token. The answers are those of Pulsar 4; what a broker leaves out or
adds does not matter, as long as the fields here are there.

Each answer is bounded in time and bytes. A topic whose answer is none becomes a refusal; a listing
that fails ends the snapshot, as what is missing in it would look as if it had been deleted.
"""

from __future__ import annotations

import re
import ssl
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urljoin, urlsplit

import httpx
import msgspec

from gateway.errors import ConfigurationError, UpstreamError
from gateway.pipeline.ledgers.ahead import in_order
from gateway.pipeline.ledgers.metadata import (
    MOST,
    CursorInfo,
    LedgerInfo,
    Position,
    Range,
    Refusal,
    TopicInfo,
    checked,
)
from gateway.pipeline.ledgers.names import decoded
from gateway.pipeline.ledgers.snapshot import Seen, Walked

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT = 30.0
"""Seconds for one answer: the broker may have to load the topic, which it does within 60 s or not
at all, and as a rule within 1."""

LARGEST_ANSWER = 64 << 20
"""Bytes. A ledger has 150 bytes here, the name of a topic 60: some 400,000 ledgers, or a namespace
of a million topics."""

HOPS = 5
"""Redirects of one request: to the leader, and on to the owner, which may change meanwhile."""

WINDOW = 4
"""Topics that are asked for at a time. Each may be loaded for it, so the brokers get few."""

LARGEST_TOKEN = 64 << 10
"""Bytes of a token's file: brokers accept headers of 8 KB."""

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}

_REDIRECTS = (301, 302, 307, 308)

_POSITION = re.compile(r"(-?\d{1,19}):(-?\d{1,19})")
_RANGE = re.compile(rf"\({_POSITION.pattern}\.\.{_POSITION.pattern}\],?")

_CLOSED = ("Terminated", "Closed", "Fenced")
"""States of a topic that has no open ledger."""


class _Ledger(msgspec.Struct):
    ledgerId: int  # noqa: N815  # as brokers spell it; so below
    entries: int = 0
    size: int = 0
    offloaded: bool = False


class _Cursor(msgspec.Struct):
    markDeletePosition: str  # noqa: N815
    individuallyDeletedMessages: str = "[]"  # noqa: N815
    cursorLedger: int = 0  # noqa: N815
    state: str = ""


class Stats(msgspec.Struct):
    """The part of a topic's internal statistics that is used here."""

    state: str
    ledgers: list[_Ledger]
    cursors: dict[str, _Cursor]
    currentLedgerEntries: int = 0  # noqa: N815
    currentLedgerSize: int = 0  # noqa: N815


_Decoded = TypeVar("_Decoded", list[str], Stats)

_NAMES = msgspec.json.Decoder(list[str])
_STATS = msgspec.json.Decoder(Stats)


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the brokers. `url`: http or https, with host and port. `ca_file`: None: the
    authorities that this machine trusts."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """A client of the brokers, for several threads."""

    url: str
    client: httpx.Client
    headers: dict[str, str] = field(default_factory=dict)


class _MissingError(Exception):
    """What was asked for is not there."""


@contextmanager
def connected(access: Access) -> Iterator[Asking]:
    """Yield a client. Raises `ConfigurationError` if the URL or a file is wrong."""
    parts = urlsplit(access.url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ConfigurationError(f"--admin {access.url}: is no URL; http://host:8080 or https://")
    try:
        context = ssl.create_default_context(cafile=access.ca_file)
    except OSError as error:  # which SSLError is too
        why = error.strerror or "holds no certificates"
        raise ConfigurationError(f"--ca-file {access.ca_file}: {why}") from None
    token = _token(access.token_file)
    headers = _HEADERS | ({"Authorization": f"Bearer {token}"} if token else {})
    with httpx.Client(verify=context, trust_env=False, timeout=TIMEOUT) as client:
        yield Asking(access.url.rstrip("/"), client, headers)


def topics(asking: Asking, walked: Walked) -> Iterator[Seen]:
    """Yield all topics. Raises `UpstreamError` if they cannot be listed."""
    for tenant in sorted(_names(asking, "tenants", walked)):
        for namespace in sorted(_names(asking, f"namespaces/{quote(tenant)}", walked)):
            query = f"persistent/{quote(namespace)}?includeSystemTopic=true"
            yield from _all(asking, sorted(_names(asking, query, walked)), walked)


def _all(asking: Asking, names: list[str], walked: Walked) -> Iterator[Seen]:
    """Yield these topics, in order."""
    for found in in_order(partial(_seen, asking), names, WINDOW):
        if found is None:
            walked.vanished += 1
        else:
            yield found


def _seen(asking: Asking, name: str) -> Seen | None:
    """Return a topic; None: it is gone."""
    _, _, path = name.partition("://")
    *namespace, local = path.split("/", 2)
    steps = "/".join(map(quote, namespace))
    try:
        body = _body(asking, f"persistent/{steps}/{quote(local, safe='')}/internalStats")
    except _MissingError:
        return None
    except UpstreamError as error:
        return Seen(name, Refusal(str(error)))
    return seen_of(name, body)


def seen_of(name: str, body: bytes) -> Seen:
    """Return what a topic's internal statistics say."""
    try:
        stats = _STATS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Seen(name, Refusal(f"no internal statistics: {error}"))
    cursors = tuple((decoded(it), _cursor(cursor)) for it, cursor in stats.cursors.items())
    return Seen(name, _topic(stats), tuple(sorted(cursors, key=lambda it: it[0])))


def _topic(stats: Stats) -> TopicInfo | Refusal:
    ledgers = [
        LedgerInfo(it.ledgerId, it.entries, it.size, None, it.offloaded) for it in stats.ledgers
    ]
    open_ledger = None
    # Of the last ledger the list tells nothing until it is closed, or opened anew.
    if ledgers and not (ledgers[-1].entries or ledgers[-1].bytes):
        last = ledgers[-1].id
        ledgers[-1] = LedgerInfo(last, stats.currentLedgerEntries, stats.currentLedgerSize)
        open_ledger = None if stats.state in _CLOSED else last
    return checked(TopicInfo(tuple(ledgers), open_ledger, open_known=open_ledger is not None))


def _cursor(cursor: _Cursor) -> CursorInfo | Refusal:
    mark = _POSITION.fullmatch(cursor.markDeletePosition)
    text = cursor.individuallyDeletedMessages
    if mark is None or text[:1] != "[" or text[-1:] != "]":
        return Refusal("a cursor without a position")
    ranges: list[Range] = []
    at = 1
    while at < len(text) - 1:
        found = _RANGE.match(text, at, len(text) - 1)
        if found is None or len(ranges) == MOST:
            return Refusal(f"ranges of a cursor that cannot be read, from the {at + 1}. character")
        a, b, c, d = map(int, found.groups())
        ranges.append(Range(Position(a, b), Position(c, d)))
        at = found.end()
    # A durable one is open only once it has a ledger.
    is_transient = cursor.state == "Open" and cursor.cursorLedger < 0
    position = Position(int(mark[1]), int(mark[2]))
    return CursorInfo(position, tuple(ranges), transient=is_transient)


# -- requests -------------------------------------------------------------------------------------


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            token = file.read(LARGEST_TOKEN).decode("ascii").strip()
    except OSError as error:
        raise ConfigurationError(f"--token-file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        raise ConfigurationError(f"--token-file {path}: holds no token; one line of it, in ASCII")
    return token


def _names(asking: Asking, path: str, walked: Walked) -> list[str]:
    """Return a listing; empty, and counted, if what should be listed is gone."""
    try:
        return _NAMES.decode(_body(asking, path))
    except _MissingError:
        walked.vanished += 1
        return []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UpstreamError(f"{path}: no list of names: {error}") from None


def _body(asking: Asking, path: str) -> bytes:
    """Return an answer. Raises `_MissingError` and `UpstreamError`."""
    url = f"{asking.url}/admin/v2/{path}"
    until = time.monotonic() + TIMEOUT
    for _ in range(HOPS + 1):
        status, found = _one(asking, url, until)
        if status in _REDIRECTS:
            url = _redirected(url, found.decode("latin-1"))
        elif status == httpx.codes.NOT_FOUND:
            raise _MissingError
        elif status != httpx.codes.OK:
            raise UpstreamError(f"{path}: the broker answers {status}")
        else:
            return found
    raise UpstreamError(f"{path}: more than {HOPS} redirects")


def _one(asking: Asking, url: str, until: float) -> tuple[int, bytes]:
    """Return the status and the body of an answer; of a redirect where it leads."""
    content = bytearray()
    try:
        with asking.client.stream("GET", url, headers=asking.headers) as answer:
            if answer.status_code in _REDIRECTS:
                return answer.status_code, answer.headers.get("location", "").encode()
            if answer.status_code != httpx.codes.OK:
                return answer.status_code, b""
            for chunk in answer.iter_raw():
                content += chunk
                if len(content) > LARGEST_ANSWER:
                    raise UpstreamError(f"{url}: more than {LARGEST_ANSWER} bytes")
                if time.monotonic() > until:
                    raise UpstreamError(f"{url}: no whole answer within {TIMEOUT:.0f} s")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise UpstreamError(f"{url}: {_why(error)}") from None
    return answer.status_code, bytes(content)


def _redirected(url: str, location: str) -> str:
    """Return where a redirect leads. The token must not go there in the clear."""
    target = urljoin(url, location)
    if not target.startswith(("http://", "https://")) or (
        url.startswith("https://") and not target.startswith("https://")
    ):
        raise UpstreamError(f"{url}: a redirect that leads out of TLS or HTTP")
    return target


def _why(error: BaseException) -> str:
    """Return what failed. What breaks HTTP is not quoted: it may hold a token."""
    if isinstance(error, httpx.RemoteProtocolError | ValueError):
        return type(error).__name__
    return str(error) or type(error).__name__
