"""A small HTTP/1.1 server: GET and HEAD of fixed paths, and POST of those that are named for it.

h11 knows the protocol; here is what it does not do: sockets, deadlines, bounds.

- At most `CONNECTIONS` are served; more wait in the kernel's queue, not in ours.
- A request is read, answered and taken by its client within `PATIENCE`, or its connection ends.
- A head has at most `HEAD_SIZE` bytes. A body is not read: the connection ends after the answer.
- An answer is made and sent chunk by chunk, and others run in between.
- A failure ends its connection alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

import h11
import structlog
import trio

from gateway.errors import ConfigurationError
from gateway.wire.contract import Address

# A scraper, a probe and some people use one each. It bounds memory, and the time that
# scrapes of many at once take from the data plane.
CONNECTIONS = 64

# Seconds for one request, from the wait for its first byte to the last byte of the answer. An
# idle connection ends by it too; probes and scrapers that come less often dial again.
PATIENCE = 10.0

# Browsers with cookies of other servers on the same host stay below it.
HEAD_SIZE = 16 * 1024

# One read of a request; a usual one is a tenth of it.
_READ_SIZE = 4096

# What is sent at once, so that a short answer is one packet.
_SEND_SIZE = 64 * 1024

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
class Answer:
    """`body` is taken chunk by chunk; empty chunks only let others run. `large`: worth a gzip."""

    status: int
    body: Iterable[bytes]
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    large: bool = False


Header = tuple[str, str]
Route = Callable[[], Answer]
LateRoute = Callable[[], Awaitable[Answer]]
"""One that has to ask somebody first."""
Routes = Mapping[str, Route | LateRoute]

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
    task_status: trio.TaskStatus[tuple[Address, ...]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; `bind` with host "" is all addresses, with port 0 any port.

    `routes` are got, `actions` are posted; a path may be in both.

    Starts with the addresses that it listens on.
    Raises `ConfigurationError` where it cannot listen.
    """
    site = _Site(routes, actions)
    listeners = await _listen(bind)
    room = trio.Semaphore(CONNECTIONS)
    async with trio.open_nursery() as nursery:
        for listener in listeners:
            nursery.start_soon(_accept, listener, site, room)
        task_status.started(tuple(_address(listener) for listener in listeners))


async def _listen(bind: Address) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(bind.port, host=bind.host or None)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(
            f"cannot listen on {bind}: {reason}; another bind, or ask why: gateway doctor"
        ) from error


def _address(listener: trio.SocketListener) -> Address:
    host, port, *_ = listener.socket.getsockname()
    return Address(host, port)


async def _accept(listener: trio.SocketListener, site: _Site, room: trio.Semaphore) -> None:
    async with listener, trio.open_nursery() as nursery:
        while True:
            stream = await _accepted(listener)
            await room.acquire()
            nursery.start_soon(_attend, stream, site, room)


async def _accepted(listener: trio.SocketListener) -> trio.SocketStream:
    while True:
        try:
            return await listener.accept()
        except OSError as error:
            _log().warning("admin_accept_failed", reason=error.strerror)
            await trio.sleep(_ACCEPT_PAUSE)


async def _attend(stream: trio.SocketStream, site: _Site, room: trio.Semaphore) -> None:
    try:
        await attend(stream, site.routes, site.actions)
    finally:
        room.release()


async def attend(
    stream: trio.abc.HalfCloseableStream, routes: Routes, actions: Actions = NONE
) -> None:
    """Serve one connection to its end. Raises nothing: what fails here fails alone."""
    try:
        async with stream:
            await _Visitor(stream).attend(_Site(routes, actions))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # the client is gone
    except Exception:  # noqa: BLE001 - the one place where a bug of ours ends
        _log().exception("admin_request_failed")


@dataclass(frozen=True, slots=True)
class _Site:
    """What may be got, and what may be posted."""

    routes: Routes
    actions: Actions


class _Visitor:
    """One connection: its stream, and what h11 knows of it."""

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_SIZE)

    async def attend(self, site: _Site) -> None:
        goes_on = True
        while goes_on:
            goes_on = False
            with trio.move_on_after(PATIENCE):
                goes_on = await self._exchange(site)
        await self._linger()

    async def _exchange(self, site: _Site) -> bool:
        """Answer one request; say whether there may be another."""
        try:
            request = await self._request()
            ends = isinstance(self._http.next_event(), h11.EndOfMessage)
        except h11.RemoteProtocolError as error:
            refusal = Answer(error.error_status_hint, [b"this is not a request of HTTP/1.1\n"])
            await self._send(refusal, (_CLOSE,))
            return False
        if request is None:
            return False
        found = _answer(request, site)
        answer = await found if isinstance(found, Awaitable) else found
        answer, headers = _prepared(request, answer)
        await self._send(answer, headers if ends else (*headers, _CLOSE))
        return self._is_renewed()

    async def _request(self) -> h11.Request | None:
        """Wait for the head of a request; None where the client has closed."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(bytes(await self._stream.receive_some(_READ_SIZE)))
        return event if isinstance(event, h11.Request) else None

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


def _answer(request: h11.Request, site: _Site) -> Answer | Awaitable[Answer]:
    target, _, query = request.target.decode("latin-1").partition("?")
    route, action = site.routes.get(target), site.actions.get(target)
    if action is not None and request.method == b"POST":
        return action(dict(parse_qsl(query, keep_blank_values=True)))
    if route is not None and request.method in {b"GET", b"HEAD"}:
        return route()
    if route is None and action is None:
        paths = sorted({*site.routes, *site.actions})
        return Answer(404, [f"not here; {' '.join(paths)}\n".encode()])
    allowed = ["GET", "HEAD"] * (route is not None) + ["POST"] * (action is not None)
    text = f"only {' and '.join(allowed)}\n".encode()
    return Answer(405, [text], headers=(("Allow", ", ".join(allowed)),))


def _prepared(request: h11.Request, answer: Answer) -> tuple[Answer, tuple[Header, ...]]:
    """Fit an answer to its request: no body for HEAD, a compressed one where that is welcome."""
    if request.method == b"HEAD":
        return replace(answer, body=()), ()
    if answer.large and _takes_gzip(request):
        return replace(answer, body=_compressed(answer.body)), (("Content-Encoding", "gzip"),)
    return answer, ()


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
