"""The first message to a worker."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
import yaml

from gateway.assembly import make_names
from gateway.config.load import build, load
from gateway.config.model import Configuration
from gateway.wire.address import Address
from gateway.workers.briefing import Briefing, decode, encode

ROOT = Path(__file__).resolve().parents[3]
SMALLEST = {
    "version": 1,
    "listeners": [{"name": "clients", "bind": "127.0.0.1:0", "cluster": "main"}],
    "clusters": {"main": {"brokers": "pulsar://127.0.0.1:16650"}},
}


def configuration() -> Configuration:
    found, mistakes = build(SMALLEST, Path())
    assert found is not None
    assert not mistakes
    return found


def test_a_briefing_is_decoded_as_it_was_encoded() -> None:
    briefing = Briefing(3, 4, configuration(), True, {"clients": [7, 8]}, {"main": os.urandom(32)})
    assert decode(encode(briefing)) == briefing


@pytest.mark.parametrize("use", ["sidecar", "edge", "shaper"])
def test_every_configuration_can_be_encoded(use: str, tmp_path: Path) -> None:
    from gateway.config.init import write

    path = tmp_path / "gateway.yaml"
    write(use, path)
    loaded = load(path, {})
    assert yaml.safe_load(path.read_text())["version"] == loaded.version
    passed = decode(encode(Briefing(1, 1, loaded, False, {}, {}))).configuration
    assert passed == loaded


def test_all_workers_inherit_the_same_secret() -> None:
    briefings = (Briefing(it, 2, configuration(), False, {}, {}, b"secret") for it in (1, 2))
    assert [decode(encode(it)).inherited().secret for it in briefings] == [b"secret"] * 2


def test_descriptors_become_sockets_that_no_child_inherits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        inherited = os.dup(listening.fileno())
        os.set_inheritable(inherited, True)
        briefing = Briefing(1, 1, configuration(), False, {"clients": [inherited]}, {})
        (taken,) = briefing.inherited().sockets["clients"]
        with taken:
            assert taken.getsockname() == listening.getsockname()
            assert (taken.get_inheritable(), taken.getblocking()) == (False, False)


def test_workers_with_one_secret_open_each_others_names() -> None:
    cluster = configuration().clusters["main"]
    broker, secret = Address("127.0.0.1", 16650), os.urandom(32)
    one, other = make_names("main", cluster, secret), make_names("main", cluster, secret)
    name = one.advertise(broker)
    assert isinstance(name, Address)
    assert other.open(str(name)) == broker
    assert make_names("main", cluster).open(str(name)) != broker
