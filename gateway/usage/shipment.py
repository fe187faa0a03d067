"""The messages between a gateway and its shipper: one JSON object a line, in both directions.

The gateway sends a `Brief` first, then a `Shown` each time that its credential changes, through the
shipper's standard input, so that no secret is on a command line or in an environment. When that
input ends, the gateway has ended. The shipper sends reports through its standard output.
"""

from __future__ import annotations

import base64

import msgspec

LONGEST = 1 << 20
"""Most bytes of a line: a credential has thousands, and names of topics hundreds."""


class Message(msgspec.Struct, tag=True):
    """A message between a gateway and its shipper, which is one line."""


class Brief(Message):
    """Tells the shipper which files to send where. `folder`, `gateway`: the files of this gateway
    in this folder. `topics`: by stream. `url`: the brokers' service URL. `ca_file`,
    `certificate_file`, `key_file`: empty without TLS."""

    folder: str
    gateway: str
    topics: dict[str, str]
    url: str
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    verify_host: bool = True


class Shown(Message):
    """Tells the shipper which credential to send to brokers from now on. `method`: of
    authentication. `data`: the credential in base64."""

    method: str
    data: str

    @classmethod
    def of(cls, method: str, data: bytes) -> Shown:
        """Return the message for a credential; `data` is encoded in base64."""
        return cls(method, base64.b64encode(data).decode())

    @property
    def secret(self) -> bytes:
        """Return the credential's decoded data."""
        return base64.b64decode(self.data)


class Finish(Message):
    """Tells the shipper to send all closed files, and then to end."""


class Sent(Message):
    """Reports that a file was sent. `records`: how many it had."""

    stream: str
    records: int


class Waiting(Message):
    """Reports how many files wait to be sent. `files`: their number by stream."""

    files: dict[str, int]


class Away(Message):
    """Reports that files could not be sent. The shipper will try again."""

    reason: str


class Unreadable(Message):
    """Reports that some records of a file cannot be read. `file`: its path."""

    file: str


Order = Brief | Shown | Finish
Report = Sent | Waiting | Away | Unreadable

ORDERS: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
REPORTS: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def line_of(message: Message) -> bytes:
    """Return a message as a line of JSON, with its line feed."""
    return msgspec.json.encode(message) + b"\n"
