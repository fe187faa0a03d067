"""What the page promises of the gateway as a service, under systemd."""

from __future__ import annotations

import re
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.deploy.rendering import VERSION
from tests.packages.building import ROOT, Builder
from tests.real.clients import assert_works, fresh_topic, wait_until
from tests.real.fixtures import Connect, Tapped
from tests.real.frames import Connection, Kind
from tests.real.gateways import HOST
from tests.real.probes import TOKEN
from tests.shared.test_drain import Load
from tests.support.sandbox import Sandbox
from tests.systemd.machine import booted, or_skip
from tests.systemd.service import ETC, PLAN, SERVICE, SOCKET, Service

pytestmark = [
    pytest.mark.gateway_only,
]


@pytest.fixture(scope="module")
def installed(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    or_skip()
    folder = tmp_path_factory.mktemp("machine")
    wheel = Builder(folder / "environment").build(folder / "dist").wheel
    with booted(folder, ROOT, wheel.parent) as machine:
        made = Service(machine, sandbox)
        made.install(wheel)
        yield made


@pytest.fixture
def service(installed: Service) -> Iterator[Service]:
    """The service, started anew with the usual configuration."""
    installed.configure()
    installed.control("restart")
    yield installed
    assert "Traceback" not in installed.log()


@pytest.fixture
def url(service: Service, sandbox: Sandbox, tapped: Tapped) -> str:
    return tapped(service.untapped_url, sandbox.traces).url


def test_both_units_are_active_and_serve(service: Service, connect: Connect, url: str) -> None:
    """As soon as `systemctl start` returns: the service is active once its listeners are open."""
    assert service.shows("ActiveState", "SubState", "Type") == ["active", "running", "notify"]
    assert service.shows("ActiveState", unit=SOCKET) == ["active"]
    assert service.machine.run(f"systemctl is-enabled {SERVICE} {SOCKET}") == "enabled\nenabled\n"
    ((listening,), *_) = [it["addresses"] for it in service.events("listening")]
    assert listening == f"{HOST}:{service.port}"
    assert_works(connect(url), fresh_topic())


def test_an_upgrade_as_the_page_has_it_starts_another_process(
    service: Service, connect: Connect, url: str
) -> None:
    before = service.process
    with service.upgraded():
        assert service.process != before
        assert service.machine.run("readlink /opt/broker-gateway") == f"broker-gateway-{VERSION}\n"
        assert_works(connect(url), fresh_topic())


PROBE = f"""\
for it in {ETC} /opt/broker-gateway /usr /home /root /var/lib /var/lib/broker-gateway; do
    if touch "$it/probe" 2> /dev/null; then echo "probe: writes to $it"; fi
    if ls "$it" > /dev/null 2>&1; then echo "probe: reads $it"; fi
done >&2
"""


def test_the_service_may_do_nothing_that_it_need_not(service: Service) -> None:
    service.machine.write(f"{ETC}/probe.sh", PROBE)
    with service.changed(f"ExecStartPost=/bin/sh {ETC}/probe.sh"):
        service.control("restart")
    status = service.status()
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {0}
    (user,) = set(status["Uid"].split())
    assert int(user) in DYNAMIC_USERS
    probed = {it.removeprefix("probe: ") for it in service.log().splitlines() if "probe: " in it}
    assert {it for it in probed if it.startswith("writes")} == {"writes to /var/lib/broker-gateway"}
    assert {"reads /home", "reads /root"}.isdisjoint(probed)
    assert f"reads {ETC}" in probed


DYNAMIC_USERS = range(61184, 65520)
"""The ids that systemd gives to users that exist as long as a service runs."""


def test_a_secret_that_only_root_can_read_is_passed_as_a_credential(service: Service) -> None:
    """The service has one, by which it seals names. The file itself it cannot read."""
    secret = f"{ETC}/secrets/seal.key"
    status = service.machine.file(secret).stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (0, 0o600)
    service.configure(replace(PLAN, key=Path(secret)))
    assert service.machine.attempt(f"systemctl restart {SERVICE}").returncode == 1
    assert "names.sealed.keys[0].file: cannot be read: permission denied" in service.log()


def test_root_can_check_a_configuration_with_credentials(service: Service) -> None:
    """As the page says: the variable has a default for those who have it not."""
    said = service.machine.run(f"/opt/broker-gateway/bin/gateway check {ETC}/gateway.yaml")
    assert said.startswith(f"{ETC}/gateway.yaml: ok")


@contextmanager
def knocking(port: int) -> Iterator[list[int]]:
    """Yield what connect(2) answers, again and again until the end."""
    answers: list[int] = []
    over = threading.Event()

    def knock() -> None:
        while not over.wait(0.005):
            with socket.socket() as sock:
                answers.append(sock.connect_ex((HOST, port)))

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def _has_sent(load: Load, messages: int) -> bool:
    return len(load.acknowledged) >= messages


@pytest.mark.parametrize("workers", [1, 2])
def test_restarts_refuse_nobody_and_lose_nothing(
    service: Service, connect: Connect, url: str, workers: int
) -> None:
    service.configure(replace(PLAN, workers=workers))
    service.control("restart")
    shared = client_library.ConsumerType.Shared
    loads = [Load(connect(url), fresh_topic())]
    loads.append(Load(connect(url), fresh_topic(), consumers=3, kind=shared))
    processes = [service.process]
    with knocking(service.port) as answers:
        for _ in range(3):
            for load in loads:
                wait_until(partial(_has_sent, load, len(load.acknowledged) + 300))
            service.control("restart")
            processes.append(service.process)
    for load in loads:
        load.finish()
    for load in loads:
        load.assert_exact()
    assert len(set(processes)) == 4
    assert set(answers) == {0}
    ended = {it["reason"] for it in service.events("connection_ended")}
    assert ended <= {"client_closed", "broker_closed", "drained"}


CLOSED = """\
version: 1
rules: [{id: nobody, match: {topic: "public/default/closed*"}, deny: produce}]
"""


def test_reload_has_changed_rules_in_force(service: Service, connect: Connect, url: str) -> None:
    """The gateway looks for changed files by itself, too: so the first reload, of which only the
    signal can be the cause, is of the files with which it started."""
    before, loaded = service.process, len(service.events("rules_loaded"))
    service.control("reload")
    wait_until(lambda: len(service.events("rules_loaded")) > loaded)
    client = connect(url)
    client.create_producer(fresh_topic("closed")).close()
    service.configure(rules=CLOSED)
    service.control("reload")
    wait_until(lambda: service.events("rules_loaded")[-1]["added"] == 1)
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(fresh_topic("closed"))
    assert service.process == before


def test_usage_records_are_shipped(
    service: Service, sandbox: Sandbox, connect: Connect, url: str
) -> None:
    """By a process of the gateway's, of files in the only folder that it may write to."""
    records = fresh_topic("usage")
    usage = {"folder": "/var/lib/broker-gateway/usage", "interval": "1s", "close_after": "1s"}
    topic = {"topic": {"cluster": "main", "records": records}}
    service.configure(replace(PLAN, more={"usage": usage | topic}))
    service.control("restart")
    assert_works(connect(url), fresh_topic())
    wait_until(lambda: sandbox.topics().get(records, {}).get("entries", 0) > 0)
    assert service.events("usage_shipper_ended") == []


def test_the_watchdog_replaces_a_gateway_that_stands_still(
    service: Service, connect: Connect, url: str
) -> None:
    with service.changed("WatchdogSec=5s\nLimitCORE=0"):
        service.control("restart")
        before = service.process
        service.machine.run(f"kill -STOP {before}")
        wait_until(lambda: service.process not in (before, "0"))
        wait_until(lambda: service.shows("ActiveState") == ["active"])
    assert service.shows("NRestarts") == ["1"]
    assert_works(connect(url), fresh_topic())


def test_a_stop_takes_as_long_as_the_drain_asks(
    service: Service, sandbox: Sandbox, url: str
) -> None:
    """A client whose question no broker answers keeps its connection until `deadlines.grace` is
    over, which is longer than TimeoutStopSec= allows."""
    with service.changed("TimeoutStopSec=1s"):
        service.control("restart")
        with Connection(url) as client:
            client.connect(TOKEN)
            for broker in range(len(sandbox.urls)):
                sandbox.fault(broker, "freeze", FROZEN_S)
            client.send(Kind.LOOKUP, {1: fresh_topic(), 2: 1})
            service.control("stop", SOCKET, SERVICE)
    found = service.shows("ActiveState", "Result", "ExecMainStatus")
    assert found == ["inactive", "success", "0"]
    assert service.shows("ActiveState", unit=SOCKET) == ["inactive"]
    assert service.events("connection_ended")[-1]["reason"] == "drained"
    assert service.events("stopped")


FROZEN_S = 6
"""Longer than `deadlines.grace`."""


def test_a_wrong_configuration_is_named_until_it_is_right(
    service: Service, connect: Connect, url: str
) -> None:
    """The address stays open: who connects meanwhile is served as soon as the file is right."""
    service.configure(replace(PLAN, more={"listener": []}))
    assert service.machine.attempt(f"systemctl restart {SERVICE}").returncode == 1
    said = service.machine.attempt(f"systemctl status --lines=0 --full {SERVICE}").stdout
    assert f"gateway run {ETC}/gateway.yaml (code=exited, status=2)" in said
    mistake = f"{ETC}/gateway.yaml:\\d+: listener: is not a key known here"
    wait_until(lambda: len(re.findall(mistake, service.log())) > USUAL_LIMIT)
    assert service.shows("ActiveState") == ["activating"]
    with socket.create_connection((HOST, service.port)):
        service.configure()
        assert_works(connect(url), fresh_topic())
    assert service.shows("ActiveState") == ["active"]


USUAL_LIMIT = 5
"""After so many starts within 10 s systemd by itself gives up."""


def test_socket_and_service_start_each_other(service: Service, connect: Connect, url: str) -> None:
    service.control("stop", SOCKET, SERVICE)
    assert service.shows("ActiveState", unit=SOCKET) == ["inactive"]
    service.control("start", SERVICE)
    assert service.shows("ActiveState", unit=SOCKET) == ["active"]
    service.control("stop", SERVICE)
    assert_works(connect(url), fresh_topic())
    assert service.shows("ActiveState") == ["active"]
