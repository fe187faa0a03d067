"""The messages between a gateway and its shipper: one JSON object a line, in both directions.

The gateway writes to the shipper's standard input, so that no secret is on a command line or in an
environment: first a `Brief`, then a `Shown` with its credential, and another `Shown` each time that
the credential changes. When the input ends, the gateway has ended. The shipper writes reports to
its standard output.
"""

from __future__ import annotations

import base64

import msgspec

LONGEST = 1 << 20
"""Most bytes of a line: a credential has thousands, and names of topics hundreds."""


class Message(msgspec.Struct, tag=True):
    """A message between a gateway and its shipper. Each message is one line."""


class Brief(Message):
    """Tells the shipper which files to send to which topics. `folder`, `gateway`: the files of this
    gateway in this folder. `topics`: topic names by stream. `url`: the service URL of the brokers.
    `ca_file`, `certificate_file`, `key_file`: empty without TLS."""

    folder: str
    gateway: str
    topics: dict[str, str]
    url: str
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    verify_host: bool = True


class Shown(Message):
    """Tells the shipper which credential to show to brokers from now on. `method`: the
    authentication method. `data`: the credential in base64."""

    method: str
    data: str

    @classmethod
    def of(cls, method: str, data: bytes) -> Shown:
        """Return the message for a credential. `data`: the credential, which is encoded in base64
        here."""
        return cls(method, base64.b64encode(data).decode())

    @property
    def secret(self) -> bytes:
        """Return the credential's decoded data."""
        return base64.b64decode(self.data)


class Finish(Message):
    """Tells the shipper to send all closed files, and to end after that."""


class Sent(Message):
    """Reports that a file was sent. `records`: how many records the file had."""

    stream: str
    records: int


class Waiting(Message):
    """Reports how many files wait to be sent. `files`: the number of these files by stream."""

    files: dict[str, int]


class Away(Message):
    """Reports that files could not be sent. The shipper will try again."""

    reason: str


class Unreadable(Message):
    """Reports that some records of a file cannot be read. `file`: the path of the file."""

    file: str


Order = Brief | Shown | Finish
Report = Sent | Waiting | Away | Unreadable

ORDERS: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
REPORTS: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def line_of(message: Message) -> bytes:
    """Return a message as a line of JSON, with its line feed."""
    return msgspec.json.encode(message) + b"\n"
