"""An issuer of tokens: its keys, and the server that publishes them and grants tokens, which can
misbehave."""

from __future__ import annotations

import json
import re
import ssl
import threading
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import trio
from joserfc import jws
from joserfc.jwk import ECKey, OKPKey, RSAKey

HOST = "127.0.0.1"
KEYS = "/keys"
TOKEN = "/token"
CONFIGURATION = "/.well-known/openid-configuration"

Answer = Callable[[trio.abc.Stream], Awaitable[None]]
"""Writes the answer to one request; the connection is closed behind it."""

Grant = Callable[[Mapping[str, str]], Mapping[str, object] | None]
"""Returns the answer to a form that asks for a token; None: the form is refused."""


@dataclass(frozen=True)
class SigningKey:
    """A key of an issuer. `id`: by which tokens name it."""

    id: str | None = None
    key: ECKey | RSAKey | OKPKey = field(default_factory=lambda: ECKey.generate_key("P-256"))
    algorithm: str = "ES256"

    @property
    def published(self) -> dict[str, Any]:
        """Return the public key as it stands in a set."""
        named = {} if self.id is None else {"kid": self.id}
        return {**self.key.as_dict(private=False), **named}

    def token(
        self,
        subject: str = "alice",
        *,
        header: Mapping[str, object] | None = None,
        **claims: object,
    ) -> str:
        """Return a token that is signed with it. `header`: fields that replace the usual ones;
        they need not be right."""
        fields: dict[str, object] = {"alg": self.algorithm}
        fields |= {} if self.id is None else {"kid": self.id}
        fields |= header or {}
        signed = ".".join(encoded(json.dumps(it)) for it in (fields, {"sub": subject, **claims}))
        signature = jws.JWSRegistry.algorithms[self.algorithm].sign(signed.encode(), self.key)
        return f"{signed}.{encoded(signature)}"


def encoded(part: str | bytes) -> str:
    """Return a part of a token."""
    data = part.encode() if isinstance(part, str) else part
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def published(*keys: SigningKey) -> bytes:
    """Return the text of a key set."""
    return json.dumps({"keys": [key.published for key in keys]}).encode()


class Issuer:
    """Publishes keys on loopback. `tls`: None for plain HTTP.

    `keys`: those that are in force. `asked`: the paths of all requests. `answers`: by path, in
    place of the usual ones. `is_down`: connections are closed at once. `grant`: answers forms.
    """

    def __init__(self, *keys: SigningKey, tls: ssl.SSLContext | None = None) -> None:
        self.keys = list(keys)
        self.asked: list[str] = []
        self.heads: list[bytes] = []
        self.answers: dict[str, Answer] = {}
        self.grant: Grant = lambda _: None
        self.is_down = False
        self.port = 0
        self._tls = tls

    @property
    def url(self) -> str:
        """Return the URL by which tokens and the configuration name the issuer."""
        return f"{'http' if self._tls is None else 'https'}://{HOST}:{self.port}"

    @property
    def keys_url(self) -> str:
        """Return the URL of the key set."""
        return self.url + KEYS

    @property
    def token_url(self) -> str:
        """Return the URL of the token endpoint."""
        return self.url + TOKEN

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Answer until cancelled."""
        (listener,) = await trio.open_tcp_listeners(0, host=HOST)
        self.port = listener.socket.getsockname()[1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, self._answer, [listener])
            task_status.started()

    async def _answer(self, stream: trio.abc.Stream) -> None:
        try:
            if self.is_down:
                return
            if self._tls is not None:
                tls = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
                await tls.do_handshake()
                stream = tls
            head, body = await _request_of(stream)
            path = head.split(b" ")[1].decode() if head else ""
            self.asked.append(path)
            self.heads.append(head)
            await self.answers.get(path, self._usual(path, body))(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the other side has given up
        finally:
            await trio.aclose_forcefully(stream)

    def _usual(self, path: str, body: bytes) -> Answer:
        if path == KEYS:
            return whole(published(*self.keys))
        if path == CONFIGURATION:
            return whole(configuration(self.url, self.keys_url, token_endpoint=self.token_url))
        if path == TOKEN:
            granted = self.grant(dict(parse_qsl(body.decode())))
            refused = json.dumps({"error": "invalid_client"}).encode(), "401 Unauthorized"
            return whole(json.dumps(granted).encode()) if granted else whole(*refused)
        return whole(b"not here", "404 Not Found")


def configuration(issuer: object, keys: object, **others: object) -> bytes:
    """Return an OpenID configuration."""
    return json.dumps({"issuer": issuer, "jwks_uri": keys, **others}).encode()


async def _request_of(stream: trio.abc.Stream) -> tuple[bytes, bytes]:
    """Return head and body of a request; without a whole one, nothing."""
    received = b""
    while True:
        head, ended, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"(?im)^content-length: *(\d+)", head)
        if ended and len(body) >= (int(length[1]) if length else 0):
            return head + ended, body
        more = await stream.receive_some()
        if not more:
            return b"", b""
        received += more


# -- answers -----------------------------------------------------------------------------------


def whole(body: bytes, status: str = "200 OK", *headers: str) -> Answer:
    """Return the answer that is sent at once."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]

    async def answer(stream: trio.abc.Stream) -> None:
        await stream.send_all("\r\n".join(lines).encode() + body)

    return answer


def trickling(body: bytes) -> Answer:
    """Return the answer that comes a byte each second."""

    async def answer(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        for byte in body:
            await trio.sleep(1)
            await stream.send_all(bytes([byte]))

    return answer


async def endless(stream: trio.abc.Stream) -> None:
    """Send a body that never ends."""
    await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await stream.send_all(b" " * 65_536)


async def silent(_stream: trio.abc.Stream) -> None:
    """Never answer."""
    await trio.sleep_forever()


# -- for tests without trio --------------------------------------------------------------------


@contextmanager
def in_thread(issuer: Issuer) -> Iterator[None]:
    """Let an issuer serve from a thread."""
    ready = threading.Event()
    scope = trio.CancelScope()
    tokens: list[trio.lowlevel.TrioToken] = []

    async def main() -> None:
        tokens.append(trio.lowlevel.current_trio_token())
        with scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(issuer.serve)
                ready.set()

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    assert ready.wait(10), "the issuer does not serve"
    try:
        yield
    finally:
        tokens[0].run_sync_soon(scope.cancel)
        thread.join()
