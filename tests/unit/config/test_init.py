"""`gateway init` writes valid files, and overwrites nothing."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from gateway.__main__ import main
from gateway.assembly import make_endpoints
from gateway.config import init, source
from gateway.config.init import TRIAL_CERTIFICATE, template, write
from gateway.config.load import load
from gateway.config.model import Configuration
from gateway.config.trial import LIFETIME, issue
from gateway.doctor.certificates import facts_of
from gateway.errors import ConfigurationError
from gateway.identity.keys import public_key
from gateway.identity.token import EXPIRED, TokenVerifier
from gateway.identity.verified import Verified
from gateway.wire.address import Address
from tests.support.certificates import CertificateAuthority

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = ROOT / "gateway" / "config" / "templates"
USES = tuple(init.USES)
OF_PULSAR = ("sidecar", "edge", "shaper")

MADE = {
    "sidecar": set[str](),
    "edge": {
        "rules/access.yaml",
        "secrets/seal.key",
        "secrets/trial-issuer.pem",
        "secrets/trial.token",
    },
    "shaper": {"secrets/seal.key"},
    "kafka": set[str](),
    "tubemq": set[str](),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Enter an empty folder without GATEWAY_ variables; undo changes to logging."""
    for name in os.environ:
        if name.startswith("GATEWAY_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    structlog.reset_defaults()


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("use", USES)
def test_the_written_file_is_valid(
    use: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", use, "f.yaml"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"f.yaml: written, for {init.USES[use]}\n")
    assert main(["check", "f.yaml"]) == 0
    assert capsys.readouterr().out == "f.yaml: ok (1 listener, 1 cluster)\n"
    assert files(folder) == {"f.yaml", *MADE[use]}


@pytest.mark.parametrize("use", USES)
def test_init_prints_what_it_made_and_the_next_commands(use: str) -> None:
    said = write(use, Path("a file.yaml"))
    for command in ("check", "doctor", "run"):
        assert f"gateway {command} 'a file.yaml' " in said
    assert all(f"{name}: made: " in said for name in MADE[use])


def test_there_is_a_template_for_each_use() -> None:
    assert {path.stem for path in TEMPLATES.glob("*.yaml")} == set(USES)


# -- nothing is lost -----------------------------------------------------------------------------


@pytest.mark.parametrize("use", USES)
def test_an_existing_file_is_kept(use: str, folder: Path) -> None:
    (folder / "f.yaml").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"^f\.yaml: already exists; choose another name"):
        write(use, Path("f.yaml"))
    assert files(folder) == {"f.yaml"}
    assert (folder / "f.yaml").read_text() == "mine"


def test_a_dangling_link_is_kept(folder: Path) -> None:
    (folder / "f.yaml").symlink_to("elsewhere")
    with pytest.raises(ConfigurationError, match="already exists"):
        write("sidecar", Path("f.yaml"))


def test_existing_secrets_are_kept(folder: Path) -> None:
    write("edge", Path("a.yaml"))
    before = {name: (folder / name).read_bytes() for name in MADE["edge"]}
    said = write("edge", Path("b.yaml"))
    assert {name: (folder / name).read_bytes() for name in MADE["edge"]} == before
    assert "secrets/seal.key: kept as it was" in said
    assert "secrets/trial-issuer.pem: kept as it was" in said


def test_a_missing_folder_is_reported(folder: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        write("edge", Path("a b/f.yaml"))
    assert (
        str(caught.value)
        == "a b/f.yaml: its folder does not exist; create it first: mkdir -p 'a b'"
    )
    assert not files(folder)


def test_a_read_only_folder_is_reported(folder: Path) -> None:
    (folder / "secrets").write_text("not a folder")
    with pytest.raises(ConfigurationError) as caught:
        write("edge", Path("f.yaml"))
    assert str(caught.value) == (
        "secrets: cannot be written: file exists; choose another folder, or let this user "
        "write there"
    )
    assert files(folder) == {"secrets"}


# -- secrets -------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_secrets(folder: Path) -> None:
    write("edge", Path("f.yaml"))
    assert mode(folder / "secrets") & 0o077 == 0
    assert mode(folder / "secrets/seal.key") & 0o077 == 0
    assert mode(folder / "secrets/trial.token") & 0o077 == 0


def test_each_file_gets_its_own_secrets(folder: Path) -> None:
    seals = set()
    for name in "ab":
        (folder / name).mkdir()
        write("shaper", Path(name, "f.yaml"))
        seals.add((folder / name / "secrets/seal.key").read_bytes())
    assert len(seals) == 2
    assert {len(seal) for seal in seals} == {32}


def test_no_private_key_is_kept(folder: Path) -> None:
    write("edge", Path("f.yaml"))
    assert not [it for it in folder.rglob("*") if it.is_file() and b"PRIVATE" in it.read_bytes()]


def test_the_trial_token_is_valid_for_a_while(folder: Path) -> None:
    trial = issue(1_000_000)
    path = folder / "issuer.pem"
    path.write_bytes(trial.public_key)
    verifier = TokenVerifier([public_key(path)], ["RS256"])
    token = trial.token.strip()
    ends = 1_000_000 + LIFETIME
    assert verifier.verify(token, 1_000_000.0) == Verified("trial", ends)
    assert verifier.verify(token, float(ends)) == EXPIRED


# -- what the files say --------------------------------------------------------------------------


def written(use: str, environment: dict[str, str] | None = None) -> Configuration:
    write(use, Path("f.yaml"))
    return load(Path("f.yaml"), environment or {})


@pytest.mark.parametrize("use", USES)
def test_listeners_are_local_by_default(use: str) -> None:
    found = written(use)
    assert found.admin is not None
    assert {found.listeners[0].bind[0].host, found.admin.bind.host} == {"127.0.0.1"}


@pytest.mark.parametrize("use", USES)
def test_the_default_targets_include_this_machine(use: str) -> None:
    first = {"kafka": 19092, "tubemq": 18715}.get(use, 16650)
    cluster = written(use).clusters["main"]
    assert cluster.brokers == (Address("127.0.0.1", first),)
    assert cluster.targets is not None
    # Masters of TubeMQ are no brokers.
    others = {8123} if use == "tubemq" else {first, first + 1}
    assert others <= set(cluster.targets.ports)


@pytest.mark.parametrize(
    ("use", "scheme", "port"),
    [
        *((it, "pulsar", 6650) for it in OF_PULSAR),
        ("kafka", "kafka", 9092),
        ("tubemq", "tubemq", 8715),
    ],
)
def test_a_container_is_configured_by_variables(use: str, scheme: str, port: int) -> None:
    found = written(
        use,
        {
            "GATEWAY_BIND": f":{port}",
            "GATEWAY_ADMIN_BIND": ":8080",
            "GATEWAY_BROKERS": f"{scheme}://a.example:{port},b.example:{port}",
            "GATEWAY_TARGET_HOSTS": "*.example",
            "GATEWAY_TARGET_PORTS": str(port),
            "GATEWAY_CONNECTIONS": "12",
            "GATEWAY_BUFFERED": "64MiB",
            "GATEWAY_GRACE": "1s",
            "GATEWAY_LOG_FORMAT": "json",
            "GATEWAY_LOG_LEVEL": "debug",
        },
    )
    cluster = found.clusters["main"]
    assert found.admin is not None
    assert cluster.targets is not None
    assert found.listeners[0].bind == (Address("", port),)
    assert found.admin.bind == Address("", 8080)
    assert cluster.brokers == (Address("a.example", port), Address("b.example", port))
    assert (cluster.targets.hosts, cluster.targets.ports) == (("*.example",), (port,))
    assert (found.limits.connections, found.limits.buffered) == (12, 64 * 2**20)
    assert (found.deadlines.grace, found.log.format, found.log.level) == (1, "json", "debug")


def test_a_gateway_of_kafka_has_a_port_for_each_broker() -> None:
    (listener,) = written("kafka").listeners
    assert listener.protocol == "kafka"
    assert [it.port for it in listener.binds] == [9092, 9093, 9094, 9095, 9096]
    assert {it.host for it in listener.binds} == {"127.0.0.1"}


def test_a_gateway_of_kafka_advertises_as_variables_say() -> None:
    variables = {
        "GATEWAY_BIND": ":9092",
        "GATEWAY_ADVERTISED_HOST": "kafka.example",
        "GATEWAY_BROKER_IDS": "1-2,7",
        "GATEWAY_FIRST_PORT": "9100",
    }
    (listener,) = written("kafka", variables).listeners
    endpoints = make_endpoints(listener)
    assert endpoints is not None
    assert [endpoints.of(id) for id in (1, 2, 7)] == [
        Address("kafka.example", port) for port in (9100, 9101, 9102)
    ]
    assert endpoints.any == Address("kafka.example", 9092)


@pytest.mark.parametrize("tls", [False, True])
def test_a_gateway_of_kafka_has_no_names_of_brokers(tls: bool) -> None:
    keys = re.findall(r"^ *(\w+):", template("kafka", tls=tls), re.MULTILINE)
    assert "advertise" in keys
    assert not {"names", "sealed", "unknown"} & set(keys)


def test_a_gateway_of_tubemq_has_a_port_for_each_broker_and_knows_who_signs() -> None:
    (listener,) = written("tubemq").listeners
    assert listener.protocol == "tubemq"
    assert [it.port for it in listener.binds] == [8715, 8723, 8724, 8725]
    commented = re.search(r"#   (signature: .*?) +#", template("tubemq", tls=False))
    assert commented is not None
    assert commented[1] == "signature: {users_file: secrets/users}"


def test_an_edge_masks_unknown_features() -> None:
    (listener,) = written("edge").listeners
    assert (listener.identity.mode, listener.unknown) == ("verify", "mask")


def test_an_edge_accepts_any_audience_of_its_issuer_by_default() -> None:
    write("edge", Path("f.yaml"))
    variables = {"GATEWAY_TOKEN_AUDIENCE": "pulsar", "GATEWAY_TOKEN_ALGORITHMS": "RS256,ES256"}
    told = load(Path("f.yaml"), variables).listeners[0].identity.token
    untold = load(Path("f.yaml"), {}).listeners[0].identity.token
    assert told is not None
    assert untold is not None
    assert (told.audience, told.issuer, told.algorithms) == ("pulsar", None, ("RS256", "ES256"))
    assert (untold.audience, untold.issuer, untold.algorithms) == (None, None, ("RS256",))


@pytest.mark.parametrize("use", ["edge", "shaper"])
def test_several_gateways_can_share_a_sealing_key(use: str) -> None:
    sealed = written(use).clusters["main"].names.sealed
    assert sealed is not None
    assert [key.file.name for key in sealed.keys] == ["seal.key"]


@pytest.mark.parametrize("use", USES)
def test_commented_settings_are_valid_too(use: str, folder: Path) -> None:
    """These are the settings that a user may uncomment."""
    write(use, Path("f.yaml"))
    text = (folder / "f.yaml").read_text()
    setting = re.compile(r"^( *)# (  )?((?:credential|token_file):.*)$", re.MULTILINE)
    text, found = setting.subn(r"\1\2\3", text)
    assert found == (2 if use == "edge" else 0)
    (folder / "secrets").mkdir(exist_ok=True)
    (folder / "secrets/gateway.token").write_text("a.token")
    (folder / "f.yaml").write_text(text)
    assert not source.parse(text, "f.yaml", {}).repeated
    assert load(Path("f.yaml"), {})


# -- with TLS ------------------------------------------------------------------------------------

AUTHORITY = CertificateAuthority("the brokers' authority")

LISTENERS = "listeners[0].tls.certificates[0]"
MISSING = {
    "sidecar": ["clusters.main.tls.ca_file"],
    "edge": [f"{LISTENERS}.certificate_file", f"{LISTENERS}.key_file", "clusters.main.tls.ca_file"],
}
MISSING["shaper"] = MISSING["kafka"] = MISSING["edge"]
MISSING["tubemq"] = MISSING["edge"][:2]  # its brokers are spoken to without TLS


def provide(folder: Path) -> None:
    """Do what the printed text and the comments ask for."""
    (folder / "secrets/brokers-ca.crt").write_bytes(AUTHORITY.certificate)
    text = (folder / "f.yaml").read_text()
    for command in re.findall(r"^ +# +(openssl .*)$", text, re.MULTILINE):
        subprocess.run(command, shell=True, check=True, capture_output=True, cwd=folder)


@pytest.mark.parametrize("use", USES)
def test_with_tls_check_names_the_files_that_are_missing(
    use: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", use, "f.yaml", "--tls"]) == 0
    assert capsys.readouterr().out.startswith(f"f.yaml: written, for {init.USES[use]} with TLS\n")
    assert main(["check", "f.yaml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in lines] == MISSING[use]
    assert all("cannot be read: no such file or directory" in line for line in lines)


@pytest.mark.tier("test")
@pytest.mark.parametrize("use", USES)
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_with_tls_the_file_is_valid_once_its_files_exist(
    use: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(use, Path("f.yaml"), tls=True)
    provide(folder)
    assert main(["check", "f.yaml"]) == 0
    found = load(Path("f.yaml"), {})
    (listener,), cluster = found.listeners, found.clusters["main"]
    port = {"kafka": 19093, "tubemq": 18715}.get(use, 16651)
    assert cluster.brokers == (Address("127.0.0.1", port, tls=use != "tubemq"),)
    assert (listener.tls is None) == (use == "sidecar")
    ports = {"sidecar": 6650, "kafka": 9093, "tubemq": 8716}
    assert listener.bind[0].port == ports.get(use, 6651)


@pytest.mark.tier("test")
@pytest.mark.parametrize("use", ["edge", "shaper", "kafka", "tubemq"])
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_command_makes_a_certificate_for_this_machine(use: str, folder: Path) -> None:
    said = write(use, Path("f.yaml"), tls=True)
    command = TRIAL_CERTIFICATE.format(folder="secrets")
    assert f"    {command}\n" in said
    assert f"        #   {command}\n" in (folder / "f.yaml").read_text()
    provide(folder)
    certificate = x509.load_pem_x509_certificate((folder / "secrets/tls.crt").read_bytes())
    facts = facts_of(certificate)
    assert facts.names == ("localhost", "127.0.0.1")
    assert facts.is_own_issuer
    key = certificate.public_key()
    assert isinstance(key, EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"
    assert mode(folder / "secrets/tls.key") & 0o077 == 0


def test_the_folder_for_certificates_is_the_owners(folder: Path) -> None:
    write("sidecar", Path("f.yaml"), tls=True)
    assert mode(folder / "secrets") & 0o077 == 0


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("tls", [False, True])
def test_no_mark_of_the_template_is_left(use: str, tls: bool) -> None:
    text = template(use, tls=tls)
    assert "#:" not in text
    assert ("+ssl://" in text) == (tls and use != "tubemq")


@pytest.mark.tier("test")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_commented_settings_of_tls_are_valid_too(folder: Path) -> None:
    write("edge", Path("f.yaml"), tls=True)
    provide(folder)
    for name in ("clients-ca.crt", "gateway.crt", "gateway.key"):
        (folder / "secrets" / name).write_text("something")
    text = (folder / "f.yaml").read_text()
    setting = re.compile(r"^( *)# ((?:client_|certificate:).*)$", re.MULTILINE)
    text, found = setting.subn(r"\1\2", text)
    assert found == 3
    (folder / "f.yaml").write_text(text)
    assert load(Path("f.yaml"), {}).listeners[0].tls is not None
