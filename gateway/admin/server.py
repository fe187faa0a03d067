"""A small HTTP/1.1 server: GET and HEAD of fixed paths, and POST of those that are named for it.

h11 knows the protocol; here is what it does not do: sockets, deadlines, bounds.

- So many connections are served (`Bounds`). One more is accepted, and the one ends that has waited
  longest: idle and slow clients keep nobody out.
- The head of a request is read, and its answer is made and taken, within `PATIENCE` each, or the
  connection ends.
- A head has at most `HEAD_SIZE` bytes. A body is not read: the connection ends after the answer.
- An answer is made and sent chunk by chunk, and others run in between. Of `Long` answers only some
  are made at a time, each within `TURN`.
- A failure ends its connection alone.
"""

from __future__ import annotations

import socket
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import parse_qsl

import h11
import structlog
import trio

from gateway.admin.turns import Places, Turns
from gateway.errors import ConfigurationError
from gateway.wire.address import Address

# A client has so many seconds to send the head of a request, and as many again to take the answer.
# Idle connections end after it; probes and scrapers that come less often connect again.
PATIENCE = 10.0

# Seconds in which a long answer is made and taken. Others wait meanwhile, and scrapers for ten.
TURN = 5.0

# Browsers with cookies of other servers on the same host stay below it.
HEAD_SIZE = 16 * 1024

# One read of a request; a usual one is a tenth of it.
_READ_SIZE = 4096

# What is sent at once, so that a short answer is one packet.
_SEND_SIZE = 64 * 1024

# Accepted, and begun with, before others run: some 3 ms each.
_ACCEPTS_AT_ONCE = 256
_BEGUN_AT_ONCE = 64

# Seconds between tries while the process has no descriptors left: they come back when some
# connection ends, which no event tells.
_ACCEPT_PAUSE = 0.1

# Seconds, and reads, for what a client still sends after its answer: closing at once would
# reset the connection, and the client might never read the answer.
_LINGER = 1.0
_LINGER_READS = 64

# A ninth of the size; higher levels cost four times the time and save a third of the rest.
_GZIP_LEVEL = 1
_GZIP_FORMAT = 16 + zlib.MAX_WBITS


_CLOSE = ("Connection", "close")


@dataclass(frozen=True, slots=True)
class Bounds:
    """At most so many `connections` at a time, and `long` answers. Settings give the reasons."""

    connections: int = 2048
    long: int = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is taken chunk by chunk; empty chunks only let others run."""

    status: int
    body: Iterable[bytes]
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


Header = tuple[str, str]
Route = Callable[[], Answer]
LateRoute = Callable[[], Awaitable[Answer]]
"""One that has to ask somebody first."""


@dataclass(frozen=True, slots=True)
class Long:
    """A route whose answer takes time and memory, and is worth a gzip."""

    route: Route | LateRoute


Routes = Mapping[str, Route | LateRoute | Long]

Action = Callable[[Mapping[str, str]], Answer]
"""Does what a POST asks for; the parameters of its query (the last of each name) say what."""
Actions = Mapping[str, Action]

NONE: Actions = {}
"""The gateway's own admin listener changes nothing."""


async def serve(
    bind: Address,
    routes: Routes,
    *,
    actions: Actions = NONE,
    bounds: Bounds = Bounds(),
    task_status: trio.TaskStatus[tuple[Address, ...]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; `bind` with host "" is all addresses, with port 0 any port.

    `routes` are got, `actions` are posted; a path may be in both.

    Starts with the addresses that it listens on.
    Raises `ConfigurationError` where it cannot listen.
    """
    site = Site(routes, actions, bounds)
    sockets = await _listening(bind)
    async with trio.open_nursery() as nursery:
        for sock in sockets:
            nursery.start_soon(_accept, sock, site)
        task_status.started(tuple(Address(*sock.getsockname()[:2]) for sock in sockets))


async def _listening(bind: Address) -> list[socket.socket]:
    try:
        listeners = await trio.open_tcp_listeners(bind.port, host=bind.host or None)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(
            f"cannot listen on {bind}: {reason}; another bind, or ask why: gateway doctor"
        ) from error
    return [socket.socket(fileno=listener.socket.detach()) for listener in listeners]


async def _accept(listener: socket.socket, site: Site) -> None:
    """Accept connections, and serve the newest first.

    A probe that connects behind a thousand others cannot wait until all of them are served.
    """
    arrived: deque[socket.socket] = deque()
    with listener:
        async with trio.open_nursery() as nursery:
            while True:
                if arrived:
                    await trio.lowlevel.checkpoint()
                else:
                    await trio.lowlevel.wait_readable(listener)
                try:
                    _accept_some(listener, arrived, site.bounds.connections)
                except OSError as error:
                    _log().warning("admin_accept_failed", reason=error.strerror)
                    # Mostly no descriptor is left: a probe is worth more than whoever waits here.
                    await trio.sleep(0 if site.places.make_room() else _ACCEPT_PAUSE)
                for _ in range(min(len(arrived), _BEGUN_AT_ONCE)):
                    site.places.take()
                    stream = trio.SocketStream(trio.socket.from_stdlib_socket(arrived.pop()))
                    nursery.start_soon(attend, stream, site)


def _accept_some(listener: socket.socket, arrived: deque[socket.socket], most: int) -> None:
    """Accept some behind those that have arrived; of more than so many the first are closed."""
    for _ in range(_ACCEPTS_AT_ONCE):
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        sock.setblocking(False)
        arrived.append(sock)
        if len(arrived) > most:
            arrived.popleft().close()


class Site:
    """What may be got, what may be posted, and how much of it at a time."""

    def __init__(self, routes: Routes, actions: Actions = NONE, bounds: Bounds = Bounds()) -> None:
        self.routes = routes
        self.actions = actions
        self.bounds = bounds
        self.places = Places(bounds.connections)
        self.turns = Turns(bounds.long)


async def attend(stream: trio.abc.HalfCloseableStream, site: Site) -> None:
    """Serve one connection, which has a place, to its end.

    Raises nothing: what fails here fails alone.
    """
    with trio.CancelScope() as scope:
        try:
            async with stream:
                await _Visitor(stream, site, scope).attend()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client is gone
        except Exception:  # noqa: BLE001 - the one place where a bug of ours ends
            _log().exception("admin_request_failed")
        finally:
            site.places.leave(scope)


class _Visitor:
    """One connection: its stream, what h11 knows of it, and the scope that it is served in."""

    def __init__(
        self, stream: trio.abc.HalfCloseableStream, site: Site, scope: trio.CancelScope
    ) -> None:
        self._stream = stream
        self._site = site
        self._scope = scope
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_SIZE)

    async def attend(self) -> None:
        with suppress(trio.TooSlowError):
            self._site.places.waits(self._scope)
            while await self._exchange():
                self._site.places.waits(self._scope)
        self._site.places.waits(self._scope)
        await self._linger()

    async def _exchange(self) -> bool:
        """Answer one request; say whether there may be another. Raises `TooSlowError`."""
        try:
            with trio.fail_after(PATIENCE):
                request = await self._request()
            ends = isinstance(self._http.next_event(), h11.EndOfMessage)
        except h11.RemoteProtocolError as error:
            refusal = Answer(error.error_status_hint, [b"this is not a request of HTTP/1.1\n"])
            with trio.fail_after(PATIENCE):
                await self._send(refusal, (_CLOSE,))
            return False
        if request is None:
            return False
        with trio.fail_after(PATIENCE):
            await self._answer(request, () if ends else (_CLOSE,))
        return self._is_renewed()

    async def _request(self) -> h11.Request | None:
        """Wait for the head of a request; None where the client has closed."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(bytes(await self._stream.receive_some(_READ_SIZE)))
        return event if isinstance(event, h11.Request) else None

    async def _answer(self, request: h11.Request, headers: tuple[Header, ...]) -> None:
        route = _found(request, self._site)
        if not isinstance(route, Long):
            answer = await _made(route)
            await self._send(_fitting(request, answer), headers)
            return
        async with self._site.turns.one():
            self._site.places.busy(self._scope)
            with trio.fail_after(TURN):
                answer = _fitting(request, await _made(route.route))
                await self._send(_packed(request, answer), headers)

    async def _send(self, answer: Answer, headers: tuple[Header, ...]) -> None:
        headers = (("Content-Type", answer.content_type), *answer.headers, *headers)
        response = h11.Response(status_code=answer.status, headers=list(headers))
        unsent = self._http.send(response) or b""
        for chunk in answer.body:
            unsent += self._http.send(h11.Data(data=chunk)) or b""
            if len(unsent) < _SEND_SIZE:
                await trio.lowlevel.checkpoint()
                continue
            await self._stream.send_all(unsent)
            unsent = b""
        await self._stream.send_all(unsent + (self._http.send(h11.EndOfMessage()) or b""))

    def _is_renewed(self) -> bool:
        if {self._http.our_state, self._http.their_state} != {h11.DONE}:
            return False
        self._http.start_next_cycle()
        return True

    async def _linger(self) -> None:
        with trio.move_on_after(_LINGER):
            await self._stream.send_eof()
            for _ in range(_LINGER_READS):
                if not await self._stream.receive_some(_READ_SIZE):
                    return


def _found(request: h11.Request, site: Site) -> Route | LateRoute | Long:
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


async def _made(route: Route | LateRoute) -> Answer:
    answer = route()
    return await answer if isinstance(answer, Awaitable) else answer


def _fitting(request: h11.Request, answer: Answer) -> Answer:
    """No body for HEAD."""
    return replace(answer, body=()) if request.method == b"HEAD" else answer


def _packed(request: h11.Request, answer: Answer) -> Answer:
    """Compressed where that is welcome."""
    if request.method == b"HEAD" or not _takes_gzip(request):
        return answer
    headers = (*answer.headers, ("Content-Encoding", "gzip"))
    return replace(answer, body=_compressed(answer.body), headers=headers)


def _takes_gzip(request: h11.Request) -> bool:
    accepted = b",".join(value for name, value in request.headers if name == b"accept-encoding")
    codings = (coding.replace(b" ", b"").lower() for coding in accepted.split(b","))
    # Prometheus sends the bare word, browsers too; whoever weighs codings gets plain text.
    return b"gzip" in codings


def _compressed(body: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
    for chunk in body:
        yield packer.compress(chunk)
    yield packer.flush()


def _log() -> structlog.typing.FilteringBoundLogger:
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
