"""What all connections of one listener share, and the client of one of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.wire.budget import Allotment
from gateway.wire.plugin import EntrySettings
from gateway.wire.services import Seat
from gateway.wire.subject import Subject
from gateway.wire.tubemq.hiding import Hiding

CLIENT_SIZE = 4096
"""Bytes of the budget that a connection takes: its session and scanners."""


@dataclass(slots=True)
class Listener:
    """`hiding`: changes the messages of all its connections. `knows_brokers`: a master has said
    where they are."""

    settings: EntrySettings
    knows_brokers: bool = False
    hiding: Hiding = field(init=False)

    def __post_init__(self) -> None:
        self.hiding = Hiding(self.settings.services, tls=self.settings.brokers_tls)


@dataclass(slots=True)
class Client:
    """Who is at the other end of a connection.

    `subject`: without a topic. `seat`: its place among the connections that it may have. `node`:
    the broker that it wants, by id; None: the master.
    """

    subject: Subject
    allotment: Allotment
    node: int | None
    seat: Seat | None = None

    def leave(self) -> None:
        """Give back what the connection has of the process's bounds."""
        self.allotment.close()
        if self.seat is not None:
            self.seat.leave()
            self.seat = None
