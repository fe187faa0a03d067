"""Producers and consumers as a topic knows them, and the connection behind each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gateway.sandbox.identity import Who

MOST_PERMITS = 1 << 31
"""Whatever a client asks for beyond is as good as this."""


class Link(Protocol):
    """A connection, as those behind it are reached."""

    @property
    def who(self) -> Who:
        """Whom the broker takes it for."""

    @property
    def is_congested(self) -> bool:
        """So much waits to be sent that no more messages should."""

    def send(self, frame: bytes) -> None:
        """Send a frame after all those before."""

    def close_producer(self, producer: Producer, url: str | None) -> None:
        """The broker closes it; `url`: of the broker that has the topic now, if that is told."""

    def close_consumer(self, consumer: Consumer, url: str | None) -> None:
        """The same for a consumer."""


@dataclass(slots=True, eq=False)
class Producer:
    """`epoch`: how often its client has opened it again. `named`: by its user, not by us."""

    link: Link
    id: int
    name: str
    epoch: int = 0
    named: bool = True


@dataclass(slots=True, eq=False)
class Consumer:
    """`permits`: messages that it may still be sent; below zero where a batch was larger.

    `epoch`: of the client's last rewind, where it counts them.
    """

    link: Link
    id: int
    name: str
    priority: int = 0
    epoch: int | None = None
    permits: int = 0

    @property
    def is_ready(self) -> bool:
        return self.permits > 0 and not self.link.is_congested

    def allow(self, permits: int) -> None:
        """A FLOW."""
        self.permits = min(self.permits + permits, MOST_PERMITS)
