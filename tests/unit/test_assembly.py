"""The settings that the data plane gets from the configuration."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import trio
from structlog.testing import capture_logs

from gateway import assembly
from gateway.app import Application
from gateway.config.load import build
from gateway.config.model import (
    Anonymous,
    Audit,
    Basic,
    Certificates,
    Configuration,
    Identity,
    Scram,
)
from gateway.errors import ConfigurationError
from gateway.identity.scram import line
from gateway.plane.state import PlaneSettings
from gateway.policy.access import Refused
from gateway.telemetry.witness import Ended
from gateway.verifiers import Needs
from gateway.wire.account import Right
from gateway.wire.contract import EndReason
from gateway.wire.subject import Caller, Subject
from tests.support.certificates import CertificateAuthority, Wanted

MIB = 1 << 20


def configured(**limits: str) -> Configuration:
    """Return a configuration with these limits."""
    data = {
        "version": 1,
        "listeners": [{"name": "clients", "bind": "127.0.0.1:0", "cluster": "main"}],
        "clusters": {"main": {"brokers": "pulsar://127.0.0.1:1"}},
        "deadlines": {"frame": "7s"},
        "limits": limits,
    }
    configuration, mistakes = build(data, Path())
    assert configuration is not None, mistakes
    return configuration


def settings(**limits: str) -> PlaneSettings:
    """Return the settings of the data plane with these limits."""
    return assembly.plane_settings(configured(**limits))


@pytest.mark.parametrize(
    ("settings", "let_in"),
    [
        ({}, None),
        ({"each_address": {"connects": 1}}, ["192.0.2.1", "192.0.2.1", None]),
        ({"proxy_protocol": {"from": ["192.0.2.1"]}}, [None] * 3),
    ],
)
async def test_who_may_connect_to_the_admin_server_is_set_as_for_listeners(
    settings: dict[str, Any], let_in: list[str | None] | None
) -> None:
    data = {
        "version": 1,
        "listeners": [{"name": "clients", "bind": "127.0.0.1:0", "cluster": "main"}],
        "clusters": {"main": {"brokers": "pulsar://127.0.0.1:1"}},
        "admin": {"bind": "127.0.0.1:0", **settings},
    }
    configuration, mistakes = build(data, Path())
    assert configuration is not None, mistakes
    assert configuration.admin is not None
    arrivals = assembly.make_arrivals(configuration.admin)
    if arrivals is None:
        assert let_in is None
        return
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        found = [await arrivals.client(ours, "192.0.2.1", nullcontext) for _ in range(3)]
    assert found == let_in


@pytest.mark.parametrize("worker", [None, 3])
def test_lines_of_the_audit_name_the_worker_if_there_are_several(
    worker: int | None, tmp_path: Path
) -> None:
    """A worker that replaces another gives numbers of connections again."""
    file = tmp_path / "audit.jsonl"
    configuration = with_audit(configured(), file)
    inherited = None if worker is None else assembly.Inherited({}, {}, worker, 3)
    audit = assembly.make_audit(configuration, inherited)
    assert audit is not None
    audit.ended(Ended("clients", 1, "192.0.2.1:1", None, EndReason.CLIENT_CLOSED, 1.0, ""))
    audit.close()
    assert json.loads(file.read_text()).get("worker") == worker


async def test_an_audit_is_written_whole_when_a_bug_ends_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = Application(with_audit(configured(), tmp_path / "audit.jsonl"))
    audit = application._audit
    assert audit is not None

    async def bug(_nursery: trio.Nursery) -> None:
        audit.ended(Ended("clients", 1, "192.0.2.1:1", None, EndReason.INTERNAL_ERROR, 1.0, ""))
        raise RuntimeError("a bug")

    monkeypatch.setattr(application, "_start_admin", bug)
    monkeypatch.setattr(audit, "close", Mock(wraps=audit.close))
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="a bug")):
        await application.serve()
    assert audit.close.call_count == 1  # type: ignore[attr-defined]


def test_without_settings_there_is_no_audit() -> None:
    assert assembly.make_audit(configured()) is None


def test_an_audit_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"The audit file .* cannot be written: Is a"):
        assembly.make_audit(with_audit(configured(), tmp_path))


def with_audit(configuration: Configuration, file: Path) -> Configuration:
    return configuration.model_copy(update={"audit": Audit.model_construct(file=file)})


def test_memory_is_divided_by_default_as_documented() -> None:
    found = settings()
    assert (found.collected, found.opening) == (32 * MIB, 16 * MIB)
    assert found.memory == (256 - 32 - 16 - 12) * MIB
    assert found.held == 64 * MIB
    assert found.frame == 7.0


@pytest.mark.parametrize("buffered", ["24MiB", "32MiB", "1GiB"])
def test_the_parts_and_room_for_deciding_add_up_to_the_whole(buffered: str) -> None:
    found = settings(buffered=buffered)
    assert found.collected is not None
    assert found.opening is not None
    assert found.held is not None
    deciding = 2 * 6 * MIB
    whole = int(buffered[:-3]) * (1024 if buffered.endswith("GiB") else 1) * MIB
    assert found.memory + found.collected + found.opening + deciding == whole
    assert found.collected >= 6 * MIB
    assert found.held <= found.memory * 3 // 4
    assert found.memory >= whole // 8


def test_one_frame_has_no_more_room_than_all_frames_together() -> None:
    found = assembly.frame_bounds(configured(collected="10MiB", collected_frame="1MiB").limits)
    assert (found.collected_from(5 * MIB), found.collected_from(100 * MIB)) == (5 * MIB, 10 * MIB)
    assert found.collected_from(0) == MIB


def test_the_parts_are_configurable() -> None:
    found = settings(collected="10MiB", handshakes="1MiB", held="2MiB", collected_frame="1MiB")
    assert (found.collected, found.opening, found.held) == (10 * MIB, MIB, 2 * MIB)
    assert found.memory == (256 - 10 - 1 - 5) * MIB  # room to decide a frame and four commands


def test_sessions_may_keep_twice_the_buffered_bytes_unless_configured() -> None:
    assert configured().limits.all_remembered == 512 * MIB
    assert configured(buffered="32MiB").limits.all_remembered == 64 * MIB
    assert configured(remembered="5MiB").limits.all_remembered == 5 * MIB


# -- identity ----------------------------------------------------------------------------------


def test_each_way_to_verify_is_found_by_what_clients_call_it(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice:$2y$10$" + "a" * 53)
    credentials = tmp_path / "scram"
    credentials.write_text(line("alice", "secret"))
    identity = Identity(
        mode="verify",
        tls=Certificates(),
        basic=Basic.model_construct(htpasswd_file=users),
        scram=Scram.model_construct(credentials_file=credentials),
        anonymous=Anonymous(),
    )
    found = assembly.make_verifiers(identity, Needs(pytest.fail))
    assert {name: type(it).__name__ for name, it in found.items()} == {
        "tls": "CertificateVerifier",
        "basic": "PasswordVerifier",
        "scram": "ScramVerifier",
        "": "Anonymous",
        "none": "Anonymous",
    }


def test_workers_share_a_secret_and_others_have_their_own() -> None:
    """Otherwise each worker would make something else up for a name that nobody has."""
    inherited = assembly.Inherited({}, {}, 1, 2, b"secret")
    assert assembly.make_needs(pytest.fail, inherited).secret == b"secret"
    alone = [assembly.make_needs(pytest.fail).secret for _ in range(2)]
    assert len(set(alone)) == 2


def test_nobody_is_verified_in_pass_through() -> None:
    assert assembly.make_verifiers(Identity(), Needs(pytest.fail)) == {}


def test_names_are_written_anew_as_configured() -> None:
    rules = [{"match": "(.*)@a", "principal": "{1}"}, {"match": "b", "principal": "c"}]
    identity = Identity.model_validate({"mode": "verify", "anonymous": {}, "principals": rules})
    naming = assembly.make_naming(identity)
    assert [naming(name) for name in ("alice@a", "b", "d")] == ["alice", "c", None]
    assert assembly.make_naming(Identity())("d") == "d"


# -- records for a topic -------------------------------------------------------------------


def sending(cluster: Mapping[str, object], folder: Path) -> Configuration:
    """Return a configuration whose records go to a cluster that no listener uses."""
    topic = {"cluster": "ops", "records": "persistent://ops/usage/records"}
    data = {
        "version": 1,
        "listeners": [{"name": "clients", "bind": "127.0.0.1:0", "cluster": "main"}],
        "clusters": {"main": {"brokers": "pulsar://127.0.0.1:1"}, "ops": cluster},
        "usage": {"folder": str(folder), "gateway": "edge", "topic": topic},
    }
    configuration, mistakes = build(data, Path())
    assert configuration is not None, mistakes
    return configuration


def test_a_shipper_gets_the_brokers_of_its_cluster(tmp_path: Path) -> None:
    made = assembly.make_shipping(sending({"brokers": "pulsar://a:1,b:2"}, tmp_path), Mock())
    assert made is not None
    brief = made._brief
    assert (brief.url, brief.gateway, brief.folder) == ("pulsar://a:1,b:2", "edge", str(tmp_path))
    assert brief.topics == {"usage": "persistent://ops/usage/records"}
    assert (brief.ca_file, brief.certificate_file, brief.verify_host) == ("", "", True)


def test_a_shipper_gets_the_settings_of_tls(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    own = authority.issue(Wanted(common="own")).written(tmp_path, "own")
    pair = {"certificate_file": str(own.certificate), "key_file": str(own.key)}
    tls = {"ca_file": str(tmp_path / "ca.crt"), "certificate": pair, "verify_host": False}
    cluster = {"brokers": "pulsar+ssl://a:1", "tls": tls}
    made = assembly.make_shipping(sending(cluster, tmp_path), Mock())
    assert made is not None
    brief = made._brief
    assert brief.url == "pulsar+ssl://a:1"
    assert (brief.ca_file, brief.verify_host) == (str(tmp_path / "ca.crt"), False)
    assert (brief.certificate_file, brief.key_file) == tuple(pair.values())


def test_a_topic_needs_the_client_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'broker-gateway\[topic\]'"):
        assembly.make_shipping(sending({"brokers": "pulsar://a:1"}, tmp_path), Mock())


def test_without_a_topic_there_is_no_shipper() -> None:
    assert assembly.make_shipping(configured(), Mock()) is None


def test_a_cluster_that_no_listener_uses_makes_nobody_wait(tmp_path: Path) -> None:
    application = Application(sending({"brokers": "pulsar://a:1"}, tmp_path))
    assert application.unready() == ["no healthy broker in cluster main"]


def test_the_log_names_the_group_that_was_denied() -> None:
    subject = Subject(Caller(principal="mallory"), None, "alice-g")
    with capture_logs() as lines:
        assembly._tell_denied(None, Refused(subject, Right.CONSUME, "", shadow=False))
    (line,) = lines
    assert (line["topic"], line["subscription"]) == (None, "alice-g")
