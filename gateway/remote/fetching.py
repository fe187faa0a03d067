"""HTTP requests to issuers: for the keys that verify tokens, and for the gateway's own tokens.

The server that responds decides which clients may connect. So a request follows no redirects, and
uses no proxy that the environment names; its URL must be `https`, except on this machine. A request
is bounded in time and bytes.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from pathlib import Path

import httpx
import trio

from gateway.config.units import https
from gateway.tls.files import certificates_of

TIMEOUT = 4.0
"""Seconds for one fetch, discovery included: clients wait 10 s for a response to their CONNECT."""

LARGEST_ANSWER = 256 * 1024
"""Bytes. Key sets with certificates in them have 20 KB."""

# Compressed responses could be a thousand times larger than what is received.
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}

_CONFIGURATION = "/.well-known/openid-configuration"


class Fetcher:
    """Makes requests to one issuer. `authorities`: the file of the authorities that may sign the
    certificate of the issuer's server; None: the authorities that the machine trusts. Raises
    `ConfigurationError` if the file has no authority."""

    def __init__(self, authorities: Path | None = None) -> None:
        if authorities is not None:
            certificates_of(authorities)
        self._context = ssl.create_default_context(cafile=authorities)

    async def key_set(self, url: str) -> bytes:
        """Return the JSON Web Key Set at a URL, as unparsed bytes. Raises `OSError`."""
        with _bounded():
            return await self._ask("GET", url)
        raise TimeoutError("no answer in time")

    async def token(self, url: str, form: Mapping[str, str]) -> bytes:
        """Send a form to a token endpoint; return the body of the response. Raises `OSError`."""
        with _bounded():
            return await self._ask("POST", url, form)
        raise TimeoutError("no answer in time")

    async def issued(self, issuer: str, form: Mapping[str, str]) -> bytes:
        """Send a form to the token endpoint that is named in an issuer's OpenID configuration;
        return the body of the response. Raises `OSError`."""
        with _bounded():
            configuration = await self._ask("GET", issuer.rstrip("/") + _CONFIGURATION)
            return await self._ask("POST", _named(issuer, configuration, "token_endpoint"), form)
        raise TimeoutError("no answer in time")

    async def discovered(self, issuer: str) -> bytes:
        """Return the key set that is named in an issuer's OpenID configuration (OpenID Connect
        Discovery 1.0 section 4), as unparsed bytes. Raises `OSError`."""
        with _bounded():
            configuration = await self._ask("GET", issuer.rstrip("/") + _CONFIGURATION)
            return await self._ask("GET", _named(issuer, configuration, "jwks_uri"))
        raise TimeoutError("no answer in time")

    async def _ask(self, method: str, url: str, form: Mapping[str, str] | None = None) -> bytes:
        content = bytearray()
        try:
            async with (
                httpx.AsyncClient(verify=self._context, trust_env=False) as client,
                client.stream(method, url, data=form, headers=_HEADERS) as answer,
            ):
                if answer.status_code != httpx.codes.OK:
                    raise ConnectionError(f"{url} answered {answer.status_code}")
                async for chunk in answer.aiter_raw():
                    content += chunk
                    if len(content) > LARGEST_ANSWER:
                        raise ConnectionError(f"{url} answered more than {LARGEST_ANSWER} bytes")
        # ValueError: the host is no name that can be looked up.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ConnectionError(f"{url}: {_why(error)}") from None
        return bytes(content)


def _why(error: BaseException) -> str:
    """Return the text of an error, or of its first cause that has one, such as TLS. What breaks
    HTTP is not quoted, as that library does behind a colon: it may be a token."""
    if isinstance(error, httpx.RemoteProtocolError):
        return str(error).partition(":")[0]
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__ if cause is None else str(cause)


def _bounded() -> trio.CancelScope:
    return trio.move_on_after(TIMEOUT)


def _named(issuer: str, configuration: bytes, what: str) -> str:
    """Return a URL that an issuer's configuration names. The configuration must name the issuer by
    the same name as tokens do, or the configuration of any issuer could be taken for it."""
    where = issuer.rstrip("/") + _CONFIGURATION
    try:
        read = json.loads(configuration)
        named, url = read["issuer"], read[what]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise ConnectionError(f"{where} is no configuration of an issuer") from None
    if named != issuer:
        raise ConnectionError(f"{where} is of another issuer")
    try:
        return https(url)
    except ValueError:
        raise ConnectionError(f"{where} names a {what} that is not secured by TLS") from None
