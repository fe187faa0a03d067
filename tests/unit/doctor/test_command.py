"""The whole command: a file in, a table and a status out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
import trio
import yaml

from gateway.config import init
from gateway.doctor.command import FAILS, INTERRUPTED, WORKS, doctor
from gateway.errors import ConfigurationError
from tests.support.certificates import DAY, CertificateAuthority, Wanted
from tests.unit.doctor.fakes import HOST, FakeBroker, connect_to, free_port, peer
from tests.unit.doctor.fronts import front, serving

Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(broker: str, **more: object) -> Path:
        data = {
            "version": 1,
            "listeners": [{"name": "edge", "bind": f"{HOST}:0", "cluster": "main"}],
            "clusters": {"main": {"brokers": f"pulsar://{broker}"}},
        }
        path = tmp_path / "gateway.yaml"
        path.write_text(yaml.safe_dump(data | more))
        return path

    return write


def _point(path: Path, port: int) -> None:
    path.write_text(path.read_text().replace(":1\n", f":{port}\n"))


def _run(path: Path, broker: FakeBroker) -> int:
    """Run the command in front of a broker in another event loop."""
    statuses = []

    async def serve() -> None:
        async with peer(broker) as address:
            broker.on_lookup = connect_to(address)
            _point(path, address.port)
            statuses.append(await trio.to_thread.run_sync(doctor, path))

    thread = Thread(target=trio.run, args=[serve])
    thread.start()
    thread.join()
    return statuses[0]


def test_rules_that_are_wrong_are_a_mistake_of_the_configuration(
    written: Write, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules:\n  - id: empty\n")
    with pytest.raises(ConfigurationError, match=r"rules\.yaml:3"):
        doctor(written(f"{HOST}:1", rules="rules.yaml"))


def test_without_failures_the_status_is_0(
    written: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    status = _run(written(f"{HOST}:1"), FakeBroker())
    output = capsys.readouterr().out
    assert status == WORKS, output
    titles = [line for line in output.splitlines() if line and not line.startswith(" ")]
    assert titles[:-1] == ["files", "ports", "cluster main", "machine"]
    assert titles[-1].endswith("nothing fails")
    assert "\x1b" not in output


def test_a_failure_is_status_1(written: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(written(f"{HOST}:{free_port()}")) == FAILS
    assert "nothing listens there" in capsys.readouterr().out


def test_an_invalid_configuration_is_an_error_before_any_check(written: Write) -> None:
    with pytest.raises(ConfigurationError, match="limitz: is not a key known here"):
        doctor(written(f"{HOST}:1", limitz={}))


def test_an_invalid_key_is_a_row_and_other_checks_run(
    written: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.token").write_text(" \n")
    path = written(f"{HOST}:{free_port()}")
    data = yaml.safe_load(path.read_text())
    data["clusters"]["main"]["credential"] = {"token_file": "own.token"}
    path.write_text(yaml.safe_dump(data))
    assert doctor(path) == FAILS
    output = capsys.readouterr().out
    assert "FAIL  own.token" in output
    assert "nothing listens there" in output


def test_a_terminal_gets_colours_unless_no_color_is_set(
    written: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(f"{HOST}:{free_port()}")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    doctor(path)
    assert "\x1b[1;31mFAIL\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    doctor(path)
    assert "\x1b" not in capsys.readouterr().out


def test_ctrl_c_ends_without_output(
    written: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gateway.doctor.brokers.examine", interrupted)
    assert doctor(written(f"{HOST}:1")) == INTERRUPTED
    assert capsys.readouterr().out == ""


@pytest.mark.tier("test")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_first_configuration_with_tls_works_once_its_files_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gateway init edge --tls`, the command that it prints, the brokers' authority, `doctor`."""
    path, secrets = tmp_path / "gateway.yaml", tmp_path / "secrets"
    init.write("edge", path, tls=True)
    authority = CertificateAuthority()
    (secrets / "brokers-ca.crt").write_bytes(authority.certificate)
    command = init.TRIAL_CERTIFICATE.format(folder=secrets)
    subprocess.run(command.split(), check=True, capture_output=True)
    wanted = Wanted([HOST], ends=60 * DAY, lives=365 * DAY)
    context = serving(authority.issue(wanted).written(tmp_path, "broker"))
    monkeypatch.setenv("GATEWAY_BIND", f"{HOST}:0")
    monkeypatch.setenv("GATEWAY_ADMIN_BIND", f"{HOST}:0")
    broker, statuses = FakeBroker(), []

    async def serve() -> None:
        async with peer(broker) as plain:
            with front(context, plain) as at:
                monkeypatch.setenv("GATEWAY_BROKERS", f"pulsar+ssl://{at}")
                statuses.append(await trio.to_thread.run_sync(doctor, path))

    thread = Thread(target=trio.run, args=[serve])
    thread.start()
    thread.join()
    output = capsys.readouterr().out
    assert statuses == [WORKS], output
    said = " ".join(output.split())
    for row in (
        "ok secrets/tls.crt for localhost, 127.0.0.1, until ",
        "ok secrets/tls.key the key of secrets/tls.crt ",
        "ok TLS of edge secrets/tls.crt works: TLSv1.3",
        "Pulsar Server of a test, protocol 20",
        "TLSv1.3, TLS_AES_256_GCM_SHA384; its certificate is for 127.0.0.1",
    ):
        assert row in said, output
