"""Producers and consumers as a topic knows them, and the connection of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gateway.lab.sandbox.identity import ClientRoles

MOST_PERMITS = 1 << 31
"""Bound of a consumer's permits; clients that request more get no fewer messages."""


class ClientLink(Protocol):
    """The part of a client's connection that its producers and consumers use."""

    @property
    def roles(self) -> ClientRoles:
        """Return the roles under which the broker knows the client."""

    @property
    def is_congested(self) -> bool:
        """Return whether so many bytes wait to be sent that no more messages should be
        dispatched."""

    def send(self, frame: bytes) -> None:
        """Queue a frame, to be sent to the client after all earlier frames."""

    def close_producer(self, producer: Producer, url: str | None) -> None:
        """Close a producer, and send the client a CLOSE_PRODUCER. `url`: the topic's new broker,
        which that command states; None: it states no broker."""

    def close_consumer(self, consumer: Consumer, url: str | None) -> None:
        """Close a consumer, and send the client a CLOSE_CONSUMER. `url`: the topic's new broker,
        which that command states; None: it states no broker."""


@dataclass(slots=True, eq=False)
class Producer:
    """An open producer. `epoch`: how often the client has reopened it. `is_user_named`: the user
    chose the producer's name."""

    link: ClientLink
    id: int
    name: str
    epoch: int = 0
    is_user_named: bool = True


@dataclass(slots=True, eq=False)
class Consumer:
    """An open consumer. `permits`: how many messages the broker may still send; below zero after a
    batch that was larger.

    `epoch`: the number of the client's last rewind, if the client counts its rewinds.
    """

    link: ClientLink
    id: int
    name: str
    priority: int = 0
    epoch: int | None = None
    permits: int = 0

    @property
    def is_ready(self) -> bool:
        return self.permits > 0 and not self.link.is_congested

    def allow(self, permits: int) -> None:
        """Add the permits of a FLOW to those that the consumer has."""
        self.permits = min(self.permits + permits, MOST_PERMITS)
