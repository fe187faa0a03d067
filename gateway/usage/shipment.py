"""What a gateway and its shipper say to each other: one JSON object a line, in both directions.

The gateway speaks first: a `Brief`, then a `Shown` each time that its credential changes. All of it
goes through the standard input of the shipper, so that no secret is on a command line or in an
environment. The end of that input is the end of the gateway.
"""

from __future__ import annotations

import base64

import msgspec

LONGEST = 1 << 20
"""Bytes of a line: a credential has thousands, and names of topics hundreds."""


class Message(msgspec.Struct, tag=True):
    """A line."""


class Brief(Message):
    """What to send where. `gateway`: whose files. `topics`: by stream. `url`: of the brokers.
    Files of TLS are empty if there are none."""

    folder: str
    gateway: str
    topics: dict[str, str]
    url: str
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    verify_host: bool = True


class Shown(Message):
    """The credential to show to brokers from now on. `data`: in base64."""

    method: str
    data: str

    @classmethod
    def of(cls, method: str, data: bytes) -> Shown:
        """Return the credential as text."""
        return cls(method, base64.b64encode(data).decode())

    @property
    def secret(self) -> bytes:
        """Return the data."""
        return base64.b64decode(self.data)


class Finish(Message):
    """Send what is there now, and end."""


class Sent(Message):
    """A file was sent: so many records of a stream."""

    stream: str
    records: int


class Waiting(Message):
    """So many files of each stream are to be sent."""

    files: dict[str, int]


class Away(Message):
    """Nothing could be sent; it is tried again."""

    reason: str


class Unreadable(Message):
    """A file cannot be read from some place on."""

    file: str


Order = Brief | Shown | Finish
Report = Sent | Waiting | Away | Unreadable

ORDERS: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
REPORTS: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def line_of(message: Message) -> bytes:
    """Return a message as a line."""
    return msgspec.json.encode(message) + b"\n"
