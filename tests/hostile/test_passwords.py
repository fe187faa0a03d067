"""A stranger who tries many passwords while others log in for the first time."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from select import select
from typing import Any

import bcrypt
import pytest

from gateway.identity.htpasswd import LEAST_COST
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import simple

from .peers import HOST, PATIENCE, Broker, Wire
from .process import Addressed, Gateway

STRANGER = "127.0.0.2"
GUESSES = 300


class Guarded(Gateway):
    """A gateway whose listener `verifying` verifies passwords. Its clients wait as long as tests
    do, so none gets in or out by a deadline."""

    def __init__(self, brokers: list[Addressed], folder: Path) -> None:
        self._users = folder / "users"
        lines = (b"%s:%s\n" % (user, _hashed(user)) for user in (b"alice", b"bob"))
        self._users.write_bytes(b"".join(lines))
        super().__init__(brokers, folder, {"handshake": f"{PATIENCE:.0f}s"})

    def _settings(self, *args: Any) -> dict[str, Any]:
        settings = super()._settings(*args)
        for listener in settings["listeners"]:
            if listener["name"] == "verifying":
                basic = {"htpasswd_file": str(self._users)}
                listener["identity"] = {"mode": "verify", "basic": basic}
        return settings


def _hashed(password: bytes) -> bytes:
    return bcrypt.hashpw(password, bcrypt.gensalt(LEAST_COST))


def logs_in(user: bytes, password: bytes) -> bytes:
    """Return the CONNECT of a client that shows a password."""
    shown = {"auth_method_name": "basic", "auth_data": user + b":" + password}
    return simple(Kind.CONNECT, client_version="hostile", protocol_version=20, **shown)


@pytest.mark.parametrize("user", [b"alice", b"nobody"])
def test_a_first_login_waits_for_few_of_the_hashes_of_wrong_passwords(
    broker: Broker, tmp_path: Path, user: bytes
) -> None:
    gateway = Guarded([broker], tmp_path)
    with ExitStack() as cleaned:
        cleaned.callback(gateway.stop)
        address = HOST, gateway.ports["verifying"]
        strangers = []
        for number in range(GUESSES):
            sock = socket.create_connection(address, source_address=(STRANGER, 0))
            strangers.append(cleaned.enter_context(sock))
            sock.sendall(logs_in(user, b"guess-%d" % number))
        bob = cleaned.enter_context(Wire(socket.create_connection(address)))
        bob.say(logs_in(b"bob", b"bob"))
        assert bob.hear().type == BaseCommand.CONNECTED
        refused, _, _ = select(strangers, [], [], 0)
        assert len(refused) < GUESSES / 4
