"""The doctor in front of real brokers: with and without authentication, and two that redirect.

No specification says how brokers answer an invalid CONNECT; the verdicts come from these tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.doctor.command import FAILS, WORKS, doctor
from tests.real.brokers.cluster import Cluster
from tests.real.brokers.standalone import Standalone
from tests.real.brokers.tokens import Authority
from tests.real.fixtures import StartBroker, StartGateway

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Output:
    """The command's output and exit status."""

    status: int
    table: str

    def row(self, what: str) -> str:
        """Return status and detail of a row, on one line."""
        lines = self.table.splitlines()
        (at,) = [n for n, line in enumerate(lines) if re.match(rf"  \w+ +{re.escape(what)} ", line)]
        text = lines[at]
        for line in lines[at + 1 :]:
            if not line.startswith(" " * 20):  # the next row, a remedy, a title
                break
            text += " " + line
        return " ".join(text.replace(what, "").split())


Examine = Callable[..., Output]


@pytest.fixture
def examine(tmp_path: Path, capsys: pytest.CaptureFixture[str], authority: Authority) -> Examine:
    """Run the command in front of brokers; `role`: of the gateway's token."""

    def run(
        url: str, mode: str = "pass-through", role: str | None = None, **cluster: Any
    ) -> Output:
        identity: dict[str, Any] = {"mode": mode}
        if mode != "pass-through":
            _keep(tmp_path / "secret.key", authority.secret)
            identity["token"] = {"secret_file": "secret.key"}
        if role is not None:
            _keep(tmp_path / "own.token", authority.token(role).encode())
            cluster["credential"] = {"token_file": "own.token"}
        return _told(tmp_path, capsys, identity, {"brokers": url} | cluster)

    return run


def _told(
    folder: Path, capsys: pytest.CaptureFixture[str], identity: dict[str, Any], cluster: Any
) -> Output:
    listener = {"name": "edge", "bind": "127.0.0.1:0", "cluster": "main", "identity": identity}
    path = folder / "gateway.yaml"
    path.write_text(
        yaml.safe_dump({"version": 1, "listeners": [listener], "clusters": {"main": cluster}})
    )
    status = doctor(path)
    return Output(status, capsys.readouterr().out)


def _keep(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)


def _address(broker: Standalone) -> str:
    return f"{broker.host}:{broker.port}"


# -- a broker that lets everybody in ---------------------------------------------------------


def test_a_plain_broker_works(pulsar: Standalone, examine: Examine) -> None:
    told, at = examine(pulsar.service_url), _address(pulsar)
    assert told.status == WORKS, told.table
    assert re.match(
        r"ok Pulsar Server.*, protocol 2\d, messages up to 5 MiB;", told.row(f"broker {at}")
    )
    assert told.row(f"lookups at {at}") == f"ok lead to {at}"
    assert told.row(f"advertised {at}") == "ok allowed, and can be connected to"


def test_the_web_port_is_recognized(pulsar: Standalone, examine: Examine) -> None:
    at = f"{pulsar.host}:{pulsar.web_port}"
    told = examine(f"pulsar://{at}")
    assert told.status == FAILS
    assert told.row(f"broker {at}") == "FAIL speaks HTTP: not a broker's plain port"


def test_no_topic_is_created(pulsar: Standalone, examine: Examine) -> None:
    examine(pulsar.service_url)
    topics = pulsar.admin.request("GET", "admin/v2/persistent/public/default")
    assert not [topic for topic in topics if "gateway-doctor" in topic]


def test_a_running_gateway_is_not_disturbed(
    pulsar: Standalone, gateway: StartGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    running = gateway(pulsar)
    status = doctor(running.log.parent / "gateway.yaml")
    told = Output(status, capsys.readouterr().out)
    assert status == WORKS, told.table
    assert "a gateway seems to run here" in told.row(f"clients 127.0.0.1:{running.port}")
    assert "says that it is alive" in told.row(f"admin 127.0.0.1:{running.admin_port}")
    assert running.ask("readyz")[0] == 200


def test_the_command_itself(pulsar: Standalone, tmp_path: Path) -> None:
    listener = {"name": "edge", "bind": "127.0.0.1:0", "cluster": "main"}
    clusters = {"main": {"brokers": pulsar.service_url}}
    (tmp_path / "gateway.yaml").write_text(
        yaml.safe_dump({"version": 1, "listeners": [listener], "clusters": clusters})
    )
    command = [sys.executable, "-m", "gateway", "doctor", str(tmp_path / "gateway.yaml")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "lookups at" in ended.stdout


# -- one that wants tokens -------------------------------------------------------------------


def test_pass_through_clients_need_tokens(pulsar_auth: Standalone, examine: Examine) -> None:
    told, at = examine(pulsar_auth.service_url), _address(pulsar_auth)
    assert told.status == WORKS, told.table
    assert told.row(f"clients at {at}") == "ok wants authentication; clients have to bring it"
    assert told.row(f"lookups at {at}").startswith("skip ")


@pytest.mark.parametrize(
    ("mode", "role", "row"),
    [
        ("verify", "proxy", 'ok accepts the credential, and the role "proxy" as a proxy'),
        ("verify", "alice", 'FAIL accepts the credential, but the role "alice" may not speak'),
        ("verify", "admin", 'FAIL accepts the credential, but the role "admin" may not speak'),
        ("verify", None, "FAIL wants a credential, and the gateway has none"),
        ("verify-and-forward", "proxy", 'warn accepts the role "proxy" as a proxy, and does not'),
    ],
)
def test_roles_at_a_broker_with_proxy_roles(
    pulsar_auth: Standalone, examine: Examine, mode: str, role: str | None, row: str
) -> None:
    told = examine(pulsar_auth.service_url, mode, role)
    assert told.row(f"gateway at {_address(pulsar_auth)}").startswith(row)
    assert told.status == (FAILS if row.startswith("FAIL") else WORKS), told.table


def test_a_token_of_another_key_is_rejected(
    pulsar_auth: Standalone, examine: Examine, tmp_path: Path
) -> None:
    _keep(tmp_path / "false.token", Authority().token("proxy").encode())
    credential = {"token_file": "false.token"}
    told = examine(pulsar_auth.service_url, "verify", credential=credential)
    row = told.row(f"gateway at {_address(pulsar_auth)}")
    assert row.startswith("FAIL does not accept the gateway's credential")


def test_a_broker_without_authentication_is_a_warning(pulsar: Standalone, examine: Examine) -> None:
    told = examine(pulsar.service_url, "verify", "proxy")
    row = told.row(f"gateway at {_address(pulsar)}")
    assert row == "warn lets the gateway in, and everybody without a credential too"


@pytest.fixture(scope="module")
def strict(start_broker: StartBroker, authority: Authority) -> Standalone:
    """Yield a broker that accepts a proxy only with the client's own token."""
    return start_broker(
        "strict", authority=authority, extra={"authenticateOriginalAuthData": "true"}
    )


@pytest.mark.parametrize(
    ("mode", "row"),
    [
        ("verify", "FAIL accepts the credential, but wants each client's own token too"),
        ("verify-and-forward", "ok accepts the credential, and verifies forwarded tokens itself"),
    ],
)
def test_a_broker_that_also_requires_client_tokens(
    strict: Standalone, examine: Examine, mode: str, row: str
) -> None:
    told = examine(strict.service_url, mode, "proxy")
    assert told.row(f"gateway at {_address(strict)}").startswith(row)


# -- two that redirect -----------------------------------------------------------------------


def test_redirects_between_listed_brokers_are_allowed(modular: Cluster, examine: Examine) -> None:
    told = examine(modular.service_url)
    assert told.status == WORKS, told.table
    assert len(re.findall("ok +advertised", told.table)) == 2


def test_an_unlisted_broker_is_found_by_a_lookup(modular: Cluster, examine: Examine) -> None:
    one, two = modular.service_url.removeprefix("pulsar://").split(",")
    told = examine(f"pulsar://{one}")
    assert told.status == FAILS
    assert told.row(f"advertised {two}").startswith("FAIL brokers lead clients there")
    hosts = ", ".join(address.rpartition(":")[0] for address in (one, two))
    assert f"targets: {{hosts: [{hosts}], ports: [{one.rpartition(':')[2]}]}}" in told.table


def test_a_broker_outside_the_targets_is_reported(modular: Cluster, examine: Examine) -> None:
    """The configured broker is allowed anyway."""
    one, two = modular.service_url.removeprefix("pulsar://").split(",")
    targets = {"hosts": ["pulsar-*.internal"], "ports": [6650]}
    told = examine(f"pulsar://{one}", targets=targets)
    assert told.status == FAILS
    assert told.row(f"advertised {one}").startswith("ok allowed")
    assert told.row(f"advertised {two}").startswith("FAIL brokers lead clients there")
    host, port = two.rsplit(":", 1)
    assert f"targets: {{hosts: [pulsar-*.internal, {host}], ports: [6650, {port}]}}" in told.table
