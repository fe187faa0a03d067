"""Protects the console: decides which requests reach it.

A client that can reach the console can close connections and end the gateway. So:

- With a token, each request of the API needs it (`Authorization: Bearer`). The page itself has no
  secrets, and asks for the token.
- Without a token, the console is for this machine alone. A web page of another origin, open in a
  browser on this machine, can still send requests here. The name of that origin may resolve to
  127.0.0.1 (DNS rebinding), so `Host` must be an address or `localhost`. And requests that do
  something need a header that a browser sends to another origin only after a preflight request
  (`x-gateway-action`), to which the console never consents.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ACTION = b"x-gateway-action"

HEADERS = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Headers of each response: no page of another origin can show or read it."""

LARGEST_BODY = 4096
"""Bytes of a request's body. The page and the examples send less than a hundred."""


class Guard:
    """ASGI middleware that refuses a request or hands it to `app`. `token`: what requests of the
    API must show; None: nothing. `names_are_free`: `Host` may be any name, as behind a load
    balancer."""

    def __init__(self, app: ASGIApp, token: bytes | None, *, names_are_free: bool) -> None:
        self._app = app
        self._token = token
        self._names_are_free = names_are_free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification, version 3."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        answer = self._app if refusal is None else refusal
        await answer(scope, receive, send_guarded)

    def is_operator(self, scope: Scope) -> bool:
        """Return whether a request shows that its client may use the API."""
        return scope["path"].startswith("/api/") and self._refusal(scope) is None

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = dict(scope["headers"])
        if not self._names_are_free and not _is_here(headers.get(b"host", b"")):
            return _refused(421, "the console is reached by an address or as localhost")
        is_api = scope["path"].startswith("/api/")
        if is_api and self._token is not None and not self._shows_token(headers):
            return _refused(401, "a token is needed: Authorization: Bearer ...", bearer=True)
        if scope["method"] not in ("GET", "HEAD"):
            if ACTION not in headers:
                return _refused(403, "requests that do something need the header x-gateway-action")
            if _length(headers) > LARGEST_BODY or b"transfer-encoding" in headers:
                return _refused(413, f"a body has at most {LARGEST_BODY} bytes")
        return None

    def _shows_token(self, headers: dict[bytes, bytes]) -> bool:
        assert self._token is not None
        kind, _, shown = headers.get(b"authorization", b"").partition(b" ")
        # In constant time, so that no token is found byte by byte.
        return kind.lower() == b"bearer" and hmac.compare_digest(shown.strip(), self._token)


def _refused(status: int, text: str, *, bearer: bool = False) -> JSONResponse:
    headers = {"www-authenticate": "Bearer"} if bearer else None
    return JSONResponse({"error": text}, status, headers)


def _length(headers: dict[bytes, bytes]) -> int:
    text = headers.get(b"content-length", b"0")
    return int(text) if text.isdigit() else LARGEST_BODY + 1


def _is_here(host: bytes) -> bool:
    """Return whether a `Host` header names an address, or this machine as such."""
    name = host.decode("latin-1").strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name in ("localhost", ""):
        return name != ""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
