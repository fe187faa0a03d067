"""The result of verifying a client, by whatever method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verified:
    """A principal, and the wall time (seconds) at which its credential expires, or None for
    never."""

    name: str
    expires_at: float | None
