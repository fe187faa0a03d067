"""Reads the records that gateways have sent to topics, as `reading` does from folders.

`usage` and `events` read all messages that a topic has, from the first to the last one. `take`
reads the messages that a subscription has not acknowledged. All three raise `UnavailableError` if
the brokers do not respond, or refuse the request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gateway.usage.client import Client, Service
from gateway.usage.reading import Ledger
from gateway.usage.records import Event, Identity, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gateway.usage.client import Proof

_Record = TypeVar("_Record", bound=Identity)


@dataclass(frozen=True, slots=True)
class Access:
    """The credential for brokers, and whom to trust. `token_file`: the file of the token; None: no
    token is sent. `ca_file`: the file of trusted authorities; None: those that this machine trusts.
    """

    token_file: Path | None = None
    ca_file: Path | None = None

    def proof(self) -> Proof:
        """Return the method and the data of the current credential: the token in `token_file`, or
        the method `none` if `token_file` is None. Raises `OSError`."""
        if self.token_file is None:
            return "none", b""
        return "token", self.token_file.read_bytes().strip()


def usage(
    url: str, topic: str, ledger: Ledger | None = None, access: Access | None = None
) -> Iterator[Usage]:
    """Yield each usage record of a topic once. `url`: the URL of the brokers. `ledger`: counts the
    records. `access`: the credential for the brokers."""
    return _read(url, topic, msgspec.json.Decoder(Usage), ledger or Ledger(), access or Access())


def events(
    url: str, topic: str, ledger: Ledger | None = None, access: Access | None = None
) -> Iterator[Event]:
    """Yield the event records of a topic, as `usage` yields usage records."""
    return _read(url, topic, msgspec.json.Decoder(Event), ledger or Ledger(), access or Access())


def take(
    url: str, topic: str, subscription: str, access: Access | None = None
) -> Iterator[list[bytes]]:
    """Yield the payloads of messages that a subscription of a topic has not acknowledged, in
    batches; see `Client.take`. Raises `OSError` if the file of the token cannot be read."""
    client = _client(url, access or Access())
    try:
        yield from client.take(topic, subscription)
    finally:
        client.close()


def _client(url: str, access: Access) -> Client:
    return Client(Service(url, str(access.ca_file) if access.ca_file else None), access.proof)


def _read(
    url: str,
    topic: str,
    decoder: msgspec.json.Decoder[_Record],
    ledger: Ledger,
    access: Access,
) -> Iterator[_Record]:
    client = _client(url, access)
    try:
        for message in client.read(topic):
            try:
                record = decoder.decode(message)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                ledger.unreadable += 1
                continue
            if ledger.note(record):
                yield record
    finally:
        client.close()
