"""The gateway's own OAuth token, which brokers are shown. It is requested from an issuer, and
renewed before it expires."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from gateway.errors import ConfigurationError
from gateway.identity.credential import LARGEST_TOKEN, read_secret
from gateway.wire.contract import Credential, Denial, Refusal

USUAL_LIFETIME = 300.0
"""Seconds of a token's lifetime if its issuer does not state it (RFC 6749 section 5.1)."""

RENEWED_AT = 0.7
"""The part of its lifetime after which a token is renewed: what is left is for retries."""

SHORTEST_PAUSE = 1.0
"""Seconds between two requests, however short tokens last."""

FIRST_BACK_OFF, LONGEST_BACK_OFF = 1.0, 30.0
"""Seconds after a failed request, and after many."""

NO_TOKEN = Denial(Refusal.NOT_READY, "the gateway has no token of its own now")

Ask = Callable[[dict[str, str]], Awaitable[bytes]]
"""Sends a form to the token endpoint, and returns the response's body. Raises `OSError`."""

Log = Callable[..., object]


class ClientCredentials:
    """The gateway's own token, requested by OAuth's client credentials. `ask`: sends the requests.
    `secret`: the file with the client secret, which is read again for each request. `scope`,
    `audience`: stated in the request if given."""

    def __init__(
        self,
        ask: Ask,
        client_id: str,
        secret: Path,
        *,
        scope: str | None = None,
        audience: str | None = None,
        log: Log = lambda *_, **__: None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        _text_of(secret)
        self._ask = ask
        self._form = {"grant_type": "client_credentials", "client_id": client_id}
        self._form |= {"scope": scope} if scope else {}
        self._form |= {"audience": audience} if audience else {}
        self._secret = secret
        self._log = log
        self._clock = clock
        self._wall_clock = wall_clock
        self._credential = Credential("token", b"")
        self._ends = self._renewed_at = -math.inf
        self._failed = False

    def current(self) -> Credential | Denial:
        """Return the token as a credential; a denial if there is no token that is still valid."""
        return NO_TOKEN if self._clock() >= self._ends else self._credential

    async def run(self) -> None:
        """Request the token, and renew it before it expires, until cancelled."""
        back_off = FIRST_BACK_OFF
        while True:
            try:
                await self.renew()
            except (OSError, ValueError, ConfigurationError) as error:
                if not self._failed:
                    self._log("own_token_unavailable", error=str(error))
                self._failed = True
                await trio.sleep(back_off)
                back_off = min(2 * back_off, LONGEST_BACK_OFF)
                continue
            if self._failed:
                self._log("own_token_back")
            self._failed, back_off = False, FIRST_BACK_OFF
            await trio.sleep(max(SHORTEST_PAUSE, self._renewed_at - self._clock()))

    async def renew(self) -> float:
        """Request a new token; return its lifetime in seconds. Raises `OSError`, `ValueError`,
        `ConfigurationError`."""
        secret = _text_of(self._secret)
        # Its life may have begun with the request, and the answer taken long.
        began, began_wall = self._clock(), self._wall_clock()
        answer = await self._ask(self._form | {"client_secret": secret})
        token, lifetime = _read(answer)
        self._credential = Credential("token", token, began_wall + lifetime)
        self._ends = began + lifetime
        self._renewed_at = began + RENEWED_AT * lifetime
        return lifetime


def _text_of(secret: Path) -> str:
    """Return the secret in a file. Raises `ConfigurationError`, whose text shows none of it."""
    what = "The client secret file"
    try:
        return read_secret(secret, what).decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{what} {secret} is not UTF-8") from None


def _read(answer: bytes) -> tuple[bytes, float]:
    """Return the token of an answer and its lifetime (RFC 6749 section 5.1). Raises `ValueError`,
    whose text does not repeat the answer."""
    try:
        said = json.loads(answer)
        token = said["access_token"].encode()
        stated = said.get("expires_in")
        lifetime = USUAL_LIFETIME if stated is None else float(stated)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise ValueError("the issuer's answer holds no token") from None
    if not 0 < len(token) <= LARGEST_TOKEN or not 0 < lifetime < float("inf"):
        raise ValueError("the issuer's token is empty, too large, or expired")
    return token, lifetime
