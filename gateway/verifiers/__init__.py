"""Authentication that takes more than memory: files of users, fetched keys, slow hashes.

- `tokens`: JSON Web Tokens, with the keys of all issuers
- `changing`: the key set of one issuer, fetched again and again
- `passwords`: names and passwords, verified by an htpasswd file
- `scram`: passwords that clients prove without showing them
- `signatures`: signatures that clients make with their passwords, and tokens that replace them
- `users`: the files of users, which change
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError

if TYPE_CHECKING:
    from gateway.telemetry.figures import AgentFigures, IssuerFigures

Log = Callable[..., object]
"""Called with an event for operators, and its values by name."""


_SECRET = 32
"""Bytes, so 256 random bits, which nobody guesses."""


def fresh_secret() -> bytes:
    """Return a new secret of 32 random bytes."""
    return os.urandom(_SECRET)


@dataclass(slots=True)
class Needs:
    """What verifiers need from their process, and what they add to it. `tasks`: functions to run as
    long as the process runs. `issuers`: figures for metrics, by the issuer of tokens. `agent`:
    figures of the policy agent. `secret`: random bytes, the same in all workers of a gateway."""

    log: Log
    tasks: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    issuers: dict[str, IssuerFigures] = field(default_factory=dict)
    agent: AgentFigures | None = None
    secret: bytes = field(default_factory=fresh_secret, repr=False)


_EXTRAS = {
    "httpx": "http",
    "bcrypt": "basic",
    "argon2": "basic",
    "msgspec": "usage",
    "pulsar": "topic",
    "opentelemetry": "otlp",
    "requests": "otlp",
    "starlette": "console",
    "rich": "console",
}
"""Extras of the gateway's own package, by the packages that they bring."""


def explained(missing: ModuleNotFoundError) -> Exception:
    """Return the error to raise if a package cannot be imported. It is a `ConfigurationError` that
    names the extra to install; if no extra is known for the package, it is `missing` itself."""
    extra = _EXTRAS.get(missing.name or "")
    if extra is None:
        return missing
    return ConfigurationError(
        f"The configuration needs the package {missing.name}, which is not installed. "
        f"Install it with: pip install 'broker-gateway[{extra}]'"
    )
