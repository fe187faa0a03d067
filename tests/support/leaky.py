"""The gateway with exactly one way of hiding brokers switched off.

    python -m tests.support.leaky LEAK run FILE

Tests use it to show that they would detect each leak. No setting of the gateway does this: a leak
replaces one function, or one entry of a table, before the command runs.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

from gateway.__main__ import main
from gateway.wire.address import Address
from gateway.wire.contract import FORWARD, Denial, Direction, Effects, EndReason, Refused
from gateway.wire.pulsar import addresses, incarnations, opening, session
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.chase import Chase, is_redirect
from gateway.wire.pulsar.commands import encode
from gateway.wire.pulsar.fields import Act
from gateway.wire.pulsar.frames import Kind
from gateway.wire.pulsar.lookups import Lookups
from gateway.wire.pulsar.rows import Row
from gateway.wire.pulsar.table import COMMANDS
from gateway.wire.pulsar.urls import write
from gateway.wire.services import LookupOutcome
from tests.support.commands import ADDRESSES, TEXTS

TO_CLIENT = COMMANDS.rows[Direction.TO_CLIENT]

Leak = Callable[[], object]
"""Switches one way of hiding off in this process."""


def _instead(of: Any, name: str, replacement: Callable[..., object]) -> Leak:
    return patch.object(of, name, replacement).start


def _as_it_came(_owner: object, command: BaseCommand) -> bytes:
    return encode(command)


def _connects_as_it_came(_owner: object, command: BaseCommand) -> tuple[LookupOutcome, bytes]:
    return LookupOutcome.CONNECT, encode(command)


def _forwarded(*_: object) -> Effects:
    return FORWARD


def _answered(lookups: Lookups, command: BaseCommand, now: float) -> Effects:
    """Leave a redirect to the client."""
    return FORWARD if is_redirect(command.lookupTopicResponse) else ANSWERED(lookups, command, now)


def _reply(chase: Chase, command: BaseCommand, kind: int, **how: Any) -> object:
    """Send the broker's own words of a refusal on a side connection."""
    reply = REPLY(chase, command, kind, **how)
    if kind == Kind.ERROR and isinstance(reply, Denial):
        return Denial(reply.refusal, command.error.message)
    return reply


def _broker_no(command: BaseCommand, _listener: object) -> Refused:
    return Refused(EndReason.BROKER_REFUSED, encode(command))


def _alias_url(rewriter: addresses.AddressRewriter, broker: Address) -> str:
    return write(broker, tls=rewriter.tls)


ANSWERED, REPLY = Lookups.answered, Chase._reply


def _without(kind: Kind, *acts: Act) -> Leak:
    """Leave out what happens to some fields of a command."""

    def leave_out() -> None:
        if Act.ADDRESS in acts:
            addresses._ADDRESSES.pop(kind, None)
        left = (place for place in addresses._CLEANED.get(kind, ()) if place.act not in acts)
        addresses._CLEANED[kind] = tuple(left)

    return leave_out


def _instead_of(row: Row) -> Leak:
    return partial(TO_CLIENT.__setitem__, row.kind, row)


LEAKS: dict[str, Leak] = {
    **{f"fields of {it.name}": _without(it, Act.ADDRESS, Act.REMOVED) for it in ADDRESSES},
    **{f"text of {it.name}": _without(it, Act.TEXT) for it in TEXTS},
    "lookup that connects": _instead(Lookups, "_connect", _connects_as_it_came),
    "lookup that redirects": _instead(Lookups, "answered", _answered),
    "lookup that fails": _instead(Lookups, "_no", _as_it_came),
    "text of a chased lookup": _instead(Chase, "_reply", _reply),
    "text of a refused connection": _instead(opening, "_broker_no", _broker_no),
    "migration": _instead_of(TO_CLIENT[Kind.TOPIC_MIGRATED]._replace(decide=_forwarded)),
    "alias": _instead(addresses.AddressRewriter, "alias_url", _alias_url),
    "topics of the brokers' own": _instead(incarnations, "is_brokers_own", lambda _topic: False),
    "unknown command": _instead(session.PulsarSession, "_unknown", _forwarded),
    "unknown fields": _instead(opening, "_connected", lambda _command, frame, _listener: frame),
}
"""The leaks by name."""


if __name__ == "__main__":
    LEAKS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
