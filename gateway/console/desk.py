"""The actions that operators can take in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

LONGEST = 3600.0
"""Seconds for which a log level or a trace is set at most: nobody forgets one for a week."""


class Desk(Protocol):
    """Carries out what operators ask for. A text that is returned says why that cannot be."""

    def close(self, connection: int) -> str | None:
        """Close a client connection. Its client connects again, and repeats what has no receipt."""
        ...

    def drain(self) -> str | None:
        """Stop as at SIGTERM."""
        ...

    def reload(self) -> str | None:
        """Read rules again, as at SIGHUP."""
        ...

    def set_level(self, level: str, event: str | None, seconds: float) -> str | None:
        """Write log lines from this level on, of one event or of all, for some time."""
        ...

    def trace(self, network: IPv4Network | IPv6Network, seconds: float) -> str | None:
        """Trace clients from a network that connect in this time."""
        ...
