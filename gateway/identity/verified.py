"""The result of verifying a client's credential, by whatever method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verified:
    """A principal, and the wall-clock time (seconds) at which its credential expires; None:
    never."""

    name: str
    expires_at: float | None
