"""A small HTTP/1.1 server with fixed paths: GET and HEAD for routes, POST for actions.

- The server has `Bounds.connections` slots for connections. If all are taken, a new connection is
  accepted, and another one is closed: the oldest of the address that has most, unless it gets a
  long response. So idle and slow clients cannot keep others out.
- The connection is closed if reading the head of a request takes longer than `PATIENCE`, or if
  making and sending the response does.
- The body of a request is not read; instead the connection is closed after the response.
- A response is made and sent in chunks, and other tasks run after each millisecond of this work.
  Only `Bounds.long` responses of `Long` routes are made at a time, each within `LONG_PATIENCE`.
- A failure closes only the connection on which it occurs.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import parse_qsl

import h11
import structlog
import trio

from gateway.admin.http import PATIENCE, RequestTurns, Talk
from gateway.admin.slots import LifoSemaphore
from gateway.listening.acceptor import Acceptor
from gateway.listening.openings import Openings
from gateway.wire.address import Address

# Seconds to make and send a long response. Others wait meanwhile, and scrapers wait for ten.
LONG_PATIENCE = 5.0

# Bytes sent at once, so that a short response is one packet.
_SEND_SIZE = 64 * 1024

# Seconds of work on a response before other tasks run. The gateway's clients wait meanwhile; ten
# times shorter slices would cost a fifth more.
_SLICE = 0.0007

# Level 1 compresses to a ninth. Higher levels take four times as long, for a third less output.
_GZIP_LEVEL = 1
_GZIP_FORMAT = 16 + zlib.MAX_WBITS


_CLOSE = ("Connection", "close")


@dataclass(frozen=True, slots=True)
class Bounds:
    """`connections`: the most open connections. `long`: the most long responses that are made at a
    time. The settings of the admin listener document the reasons."""

    connections: int = 2048
    long: int = 2


@dataclass(frozen=True, slots=True)
class Representation:
    """A second content type for a response. `accepted`: the media type, without parameters, that a
    client names in its `Accept` header to get this type. `convert`: converts the body, chunk by
    chunk."""

    accepted: str
    content_type: str
    convert: Callable[[Iterable[bytes]], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response. `body`: its chunks, some of which may be empty; other tasks may run between
    two chunks. `otherwise`: another type of the body, for clients that accept it."""

    status: int
    body: Iterable[bytes]
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    otherwise: Representation | None = None


Header = tuple[str, str]
Route = Callable[[], Answer]
LateRoute = Callable[[], Awaitable[Answer]]
"""A route whose response has to be awaited."""


@dataclass(frozen=True, slots=True)
class Long:
    """A route whose response takes much time and memory, and is large enough to be compressed."""

    route: Route | LateRoute


Routes = Mapping[str, Route | LateRoute | Long]

Action = Callable[[Mapping[str, str]], Answer]
"""Carries out a POST. Its argument is the parameters of the query, the last one of each name."""
Actions = Mapping[str, Action]

NONE: Actions = {}
"""The gateway's own admin listener has no actions."""


Waiting = Callable[[], AbstractContextManager[None]]
"""Makes a context for a wait. A newer connection may displace a connection that waits in it."""

ClientOf = Callable[[socket.socket, str, Waiting], Awaitable[str | None]]
"""See `listening.arrivals.Arrivals.client`."""


async def serve(
    bind: Address,
    routes: Routes,
    *,
    actions: Actions = NONE,
    bounds: Bounds = Bounds(),
    client_of: ClientOf | None = None,
    task_status: trio.TaskStatus[tuple[Address, ...]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve HTTP until cancelled. `bind`: the address to listen on; host "" means all addresses,
    port 0 any free port.

    `routes`: the paths that respond to GET and HEAD. `actions`: the paths that respond to POST. A
    path may be in both. `client_of`: returns the address of a new connection's client, or None if
    the connection has to end; None: the peer is the client.

    When the server listens, it reports its addresses by `task_status`. Raises `ConfigurationError`
    if it cannot listen.
    """
    site = Site(routes, actions, bounds)

    def arrived(sock: socket.socket, client: Address, _reached: Address) -> None:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        site.openings.begin(stream, client.host)
        known = None if client_of is None else partial(client_of, sock, client.host)
        nursery.start_soon(attend, stream, site, client.host, known)

    # Mostly no descriptor is free because of others: a probe matters more than who waits here.
    acceptor = Acceptor("admin", site.openings, arrived, relieves=True)
    listening = acceptor.listen([bind])
    async with trio.open_nursery() as nursery:
        task_status.started(listening)
        await acceptor.serve()


class Site:
    """The routes, actions and bounds of one server."""

    def __init__(self, routes: Routes, actions: Actions = NONE, bounds: Bounds = Bounds()) -> None:
        self.routes = routes
        self.actions = actions
        self.bounds = bounds
        self.openings = Openings(bounds.connections)
        self.turns = RequestTurns()
        self.long_answers = LifoSemaphore(bounds.long)


async def attend(
    stream: trio.abc.HalfCloseableStream,
    site: Site,
    host: str,
    known: Callable[[Waiting], Awaitable[str | None]] | None = None,
) -> None:
    """Serve one connection, which already has a slot, until it ends. `host`: the peer's address.
    `known`: returns the client's, or None if the connection has to end; None: the peer is the
    client.

    Raises nothing: a failure closes only this connection.
    """
    with trio.CancelScope() as scope:
        try:
            async with stream:
                waiting = partial(site.openings.waiting, stream, scope)
                if known is not None:
                    client = await known(waiting)
                    if client is None:
                        return
                    host = client
                    site.openings.attribute(stream, host)
                await _Visitor(Talk(stream, site.turns, host), site, waiting).attend()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client is gone
        except Exception:  # noqa: BLE001 - a bug closes this connection only
            _log().exception("admin_request_failed")
        finally:
            site.openings.end(stream)


class _Visitor:
    """Serves one connection."""

    def __init__(self, talk: Talk, site: Site, waiting: Waiting) -> None:
        self._talk = talk
        self._site = site
        self._waiting = waiting

    async def attend(self) -> None:
        with suppress(trio.TooSlowError):
            while await self._exchange():
                pass
        with self._waiting():
            await self._talk.linger()

    async def _exchange(self) -> bool:
        """Respond to one request. Return true if another one may follow. Raises `TooSlowError`."""
        try:
            with self._waiting():
                request = await self._talk.request()
            ends = request is None or self._talk.has_no_body
        except h11.RemoteProtocolError as error:
            refusal = Answer(error.error_status_hint, [b"this is not a request of HTTP/1.1\n"])
            with self._waiting(), trio.fail_after(PATIENCE):
                await self._send(refusal, (_CLOSE,))
            return False
        if request is None:
            return False
        with trio.fail_after(PATIENCE):
            await self._answer(request, () if ends else (_CLOSE,))
        return self._talk.is_renewed()

    async def _answer(self, request: h11.Request, headers: tuple[Header, ...]) -> None:
        route = _find(request, self._site)
        if not isinstance(route, Long):
            with self._waiting():
                answer = await _make(route)
                await self._send(_fit(request, answer), headers)
            return
        async with self._site.long_answers.held(self._waiting):
            with trio.fail_after(LONG_PATIENCE):
                answer = _fit(request, await _make(route.route))
                await self._send(_compress(request, answer), headers)

    async def _send(self, answer: Answer, headers: tuple[Header, ...]) -> None:
        headers = (("Content-Type", answer.content_type), *answer.headers, *headers)
        unsent = self._talk.head(answer.status, list(headers))
        pause = trio.current_time() + _SLICE
        for chunk in answer.body:
            if chunk:
                unsent += self._talk.data(chunk)
            if len(unsent) >= _SEND_SIZE:
                await self._talk.send(unsent)
                unsent = b""
            elif trio.current_time() < pause:
                continue
            else:
                await trio.lowlevel.checkpoint()
            pause = trio.current_time() + _SLICE
        await self._talk.send(unsent + self._talk.end())


def _find(request: h11.Request, site: Site) -> Route | LateRoute | Long:
    target, _, query = request.target.decode("latin-1").partition("?")
    route, action = site.routes.get(target), site.actions.get(target)
    if action is not None and request.method == b"POST":
        return partial(action, dict(parse_qsl(query, keep_blank_values=True)))
    if route is not None and request.method in {b"GET", b"HEAD"}:
        return route
    if route is None and action is None:
        paths = sorted({*site.routes, *site.actions})
        return partial(Answer, 404, [f"not here; {' '.join(paths)}\n".encode()])
    allowed = ["GET", "HEAD"] * (route is not None) + ["POST"] * (action is not None)
    text = f"only {' and '.join(allowed)}\n".encode()
    return partial(Answer, 405, [text], headers=(("Allow", ", ".join(allowed)),))


async def _make(route: Route | LateRoute) -> Answer:
    answer = route()
    return await answer if isinstance(answer, Awaitable) else answer


def _fit(request: h11.Request, answer: Answer) -> Answer:
    """Return the response in the type that the client accepts, without a body for HEAD."""
    other = answer.otherwise
    if other is not None and _accepts(request, other.accepted):
        body = other.convert(answer.body)
        answer = replace(answer, body=body, content_type=other.content_type)
    return replace(answer, body=()) if request.method == b"HEAD" else answer


def _accepts(request: h11.Request, media_type: str) -> bool:
    """Return whether a client names a media type, however it weighs others. Scrapers name this one
    only if they prefer it."""
    accepted = b",".join(value for name, value in request.headers if name == b"accept")
    names = (entry.split(b";")[0].strip().lower() for entry in accepted.split(b","))
    return media_type.encode() in names


def _compress(request: h11.Request, answer: Answer) -> Answer:
    """Return the response, compressed if the client accepts that."""
    if request.method == b"HEAD" or not _takes_gzip(request):
        return answer
    headers = (*answer.headers, ("Content-Encoding", "gzip"))
    return replace(answer, body=_gzip(answer.body), headers=headers)


def _takes_gzip(request: h11.Request) -> bool:
    accepted = b",".join(value for name, value in request.headers if name == b"accept-encoding")
    codings = (coding.replace(b" ", b"").lower() for coding in accepted.split(b","))
    # Prometheus and browsers send the bare word. Clients that send weights get plain text.
    return b"gzip" in codings


def _gzip(body: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
    for chunk in body:
        yield packer.compress(chunk)
    yield packer.flush()


def _log() -> structlog.typing.FilteringBoundLogger:
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
