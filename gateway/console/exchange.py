"""Puts one HTTP request to the console's ASGI application, and sends what the application responds.

Source: the ASGI specification, version 3, "HTTP & WebSocket".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import h11
import structlog
import trio

from gateway.admin.http import PATIENCE, Talk

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Scope

GONE = (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError)


class Exchange:
    """One request and its response. `body`: of the request; None: it is too large."""

    def __init__(self, talk: Talk, scope: Scope, body: bytes | None) -> None:
        self._talk = talk
        self._scope = scope
        self._body = body
        self._begun = self._ended = self._is_gone = False

    async def run(self, app: ASGIApp) -> bool:
        """Run the application; return whether it has sent a complete response."""
        if self._body is None:
            await self.refuse(413)
            return False
        try:
            await app(self._scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001 - it ends its own request
            if not self._is_gone:
                _log().error("console_request_failed", path=self._scope["path"], exc_info=error)
                await self.refuse(500)
        return self._ended

    async def refuse(self, status: int) -> None:
        """Respond with this status, if no response has begun."""
        if not self._begun:
            with trio.fail_after(PATIENCE):
                head = self._talk.head(status, [("Content-Length", "0"), ("Connection", "close")])
                await self._talk.send(head + self._talk.end())

    async def _receive(self) -> Message:
        body, self._body = self._body, None
        if body is None:  # `_send` says when the client has gone, as the specification allows
            await trio.sleep_forever()
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            data = self._talk.head(message["status"], list(message.get("headers", ())))
        else:
            chunk = message.get("body", b"")
            data = self._talk.data(chunk) if chunk and self._scope["method"] != "HEAD" else b""
            if not message.get("more_body", False):
                data += self._talk.end()
                self._ended = True
        try:
            with trio.fail_after(PATIENCE):
                await self._talk.send(data)
        except GONE as error:
            self._is_gone = True
            raise OSError("the client has gone") from error


def _log() -> structlog.typing.FilteringBoundLogger:
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger


def scope_of(request: h11.Request, *, has_tls: bool) -> dict[str, Any]:
    """Return the ASGI scope of a request."""
    path, _, query = request.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": request.http_version.decode(),
        "method": request.method.decode(),
        "scheme": "https" if has_tls else "http",
        "path": unquote_to_bytes(path).decode(errors="replace"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(request.headers),
    }
