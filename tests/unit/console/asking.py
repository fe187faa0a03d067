"""Asks an ASGI application, without a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

ACTION = {"x-gateway-action": "1"}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: ASGIApp,
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
) -> Answer:
    """Return the answer to a request."""
    where, _, query = path.partition("?")
    sent = {"host": "127.0.0.1:8090", "content-length": str(len(body))} | (headers or {})
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": where,
        "raw_path": where.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(k.encode(), v.encode()) for k, v in sent.items() if v],
    }
    given = [{"type": "http.request", "body": body, "more_body": False}]
    taken: list[Message] = []

    async def receive() -> Message:
        if given:
            return given.pop()
        await trio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        taken.append(message)

    await app(scope, receive, send)
    start = taken[0]
    told = {k.decode(): v.decode() for k, v in start["headers"]}
    return Answer(start["status"], told, b"".join(it.get("body", b"") for it in taken[1:]))
