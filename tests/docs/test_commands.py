"""Every command that the pages show is run as it stands there, or named here with a reason.

A page's commands use usual ports, a broker of the reader's, and go on until somebody ends them.
Here they get ports of their own, the sandbox, and a signal after some seconds (`EDITS`); nothing
else of them is changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from gateway.config.init import write
from tests.real.brokers.ports import free_ports, free_range
from tests.support.named_files import contents
from tests.support.sandbox import Sandbox

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
HOST = "127.0.0.1"
PATIENCE = 120
ASK = f"curl -sS --fail --retry {PATIENCE} --retry-delay 1 --retry-all-errors"
"""Asks again until what is asked is there."""
SOME_PASSED = 'gateway_topic_messages_total{.*direction="to_client".*} [1-9]'

NOT_OURS = "a command of Pulsar's own distribution"
SPARK = "each starts Spark: tests/pipeline/test_commands.py runs them one after the other"
BENCHES = "a benchmark takes minutes: only what the command line says is tried"

NOT_RUN = {
    r"bin/pulsar tokens create .*": NOT_OURS,
    r"bin/pulsar-admin .*": NOT_OURS,
    r"BENCH_PYTHON=\S+ make bench": "it names an interpreter that this machine may lack",
    r"gateway pipeline (?!store|subscriptions|snapshot)\w+ .*": SPARK,
    r"gateway pipeline (store|subscriptions) .*": "tests/pipeline/test_storage.py has snapshots",
    r"gateway rules promote .*": SPARK,
    r"gateway pipeline snapshot .*": "tests/real/test_ledgers.py runs it on a real ZooKeeper",
    r"(helm|kubectl) .*": "tests/kubernetes/test_pages.py runs them in a cluster",
    r"make test": "it runs these very tests",
    r"make shaping( .*)?": "it takes half an hour; tests/shaping has a short run of all",
    r"\.venv/bin/python -m tests\.shaping .*": "the same, and the tables of such a run",
}
"""By pattern, with the reason. Whatever matches none of these is run."""

AWHILE = Path(__file__).with_name("awhile.py")

UNTIL_ENDED = r"^(GATEWAY_\S+ )?(gateway|\.venv/bin/gateway) (run|sandbox)\b"


class Block(NamedTuple):
    """The commands of one block of a page. `number`: counted from 1 on the page."""

    page: str
    number: int
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


def blocks() -> Iterator[Block]:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        found = re.findall(r"^```(?:console|sh)\n(.*?)^```$", page.read_text(), re.M | re.S)
        for number, text in enumerate(found, start=1):
            yield Block(page.relative_to(ROOT).as_posix(), number, tuple(commands(text)))


def commands(text: str) -> list[str]:
    """What is typed: where some lines begin with `$`, the others are what is answered."""
    lines = [line.partition("  #")[0].strip() for line in text.splitlines() if line.strip()]
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return typed or lines


BLOCKS = list(blocks())


def test_the_pages_show_commands() -> None:
    assert {"README.md", "docs/tutorial.md"} <= {it.page for it in BLOCKS}
    assert sum(len(block.commands) for block in BLOCKS) >= 20


def test_what_is_not_run_is_on_a_page() -> None:
    shown = [command for block in BLOCKS for command in block.commands]
    assert not [
        pattern for pattern in NOT_RUN if not any(re.fullmatch(pattern, it) for it in shown)
    ]


# -- running -----------------------------------------------------------------------------------


class Scene(NamedTuple):
    """Where commands run: a folder, and what stands for the usual ports and brokers."""

    folder: Path
    edits: Mapping[str, str]
    environment: Mapping[str, str]


@pytest.fixture
def scene(tmp_path: Path, sandbox: Sandbox) -> Scene:
    admin, console, control = map(str, free_ports(HOST, 3))
    clients = str(free_range(3))  # and those of Kafka's brokers, behind it
    environment = {
        "GATEWAY_BROKERS": sandbox.service_url,
        "GATEWAY_BIND": f"{HOST}:{clients}",
        "GATEWAY_ADMIN_BIND": f"{HOST}:{admin}",
        "GATEWAY_DEMO_PORTS": ",".join((clients, admin, console, control)),
    }
    edits = {
        "pulsar://127.0.0.1:16650": sandbox.service_url,
        "pulsar://broker.example:6650": sandbox.service_url,
        "127.0.0.1:8080": f"{HOST}:{admin}",
        "127.0.0.1:16680": f"{HOST}:{control}",
        "26650,28080,28090,26680": ",".join((clients, admin, console, control)),
        "getpass()": '"a password"',  # nobody types
    }
    return Scene(tmp_path, edits, environment)


def prepared(scene: Scene, block: Block) -> None:
    """What a reader has by then: the environment, a configuration, keys and certificates."""
    (scene.folder / ".venv").symlink_to(ROOT / ".venv")
    (scene.folder / "tests").symlink_to(ROOT / "tests")
    (scene.folder / "rules").symlink_to(ROOT / "rules")
    (scene.folder / "Makefile").symlink_to(ROOT / "Makefile")
    if not any("gateway init" in command for command in block.commands):
        write("sidecar", scene.folder / "gateway.yaml")
    (scene.folder / "usage" / "usage").mkdir(parents=True)
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key = generate_private_key(65537, 2048).private_bytes(*form)
    (scene.folder / "issuer.key").write_bytes(key)
    held = contents()
    files = {"tls.crt": "certificate", "tls.key": "key", "ca.crt": "CA", "new-ca.crt": "CA"}
    for name, content in {**files, "clients.crl": "CRL"}.items():
        (scene.folder / name).write_bytes(held[content])


def edited(command: str, edits: Mapping[str, str]) -> str:
    for usual, own in edits.items():
        command = command.replace(usual, own)
    if re.match(UNTIL_ENDED, command):
        own = "" if "--brokers" in command else SANDBOX_PORTS if " sandbox" in command else ""
        return f"{sys.executable} {AWHILE} env {command}{own}"
    if re.fullmatch(r"(GATEWAY_\S+ )?make run(-real|-kafka)?", command):
        return f"{command.replace('make', f'make -C {ROOT}')} SECONDS=2"
    if " demo " in command:
        return f"{command} --seconds 2"
    if "make bench" in command:
        return f"{command.replace('make', f'make -n -C {ROOT}')}"
    return f"{command} --list" if "-m tests.bench" in command else command


SANDBOX_PORTS = " --brokers 127.0.0.1:0,127.0.0.1:0 --control 127.0.0.1:0"


def run(script: str, scene: Scene) -> subprocess.CompletedProcess[str]:
    environment = os.environ | scene.environment
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        # It ends what the script has started, too.
        ["timeout", str(PATIENCE), "bash", "-euo", "pipefail", "-c", script],
        cwd=scene.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def of_kind(*, curls: bool, real: bool) -> list[Block]:
    """The blocks that need a running demo, or a real broker, or neither."""

    def chosen(block: Block) -> bool:
        text = "\n".join(block.commands)
        return ("curl " in text) == curls and ("run-real" in text) == real

    return [block for block in BLOCKS if chosen(block) and runnable(block)]


def runnable(block: Block) -> list[str]:
    return [it for it in block.commands if not any(re.fullmatch(no, it) for no in NOT_RUN)]


def needs_environment(block: Block) -> None:
    text = "\n".join(runnable(block))
    if ("make " in text or ".venv/" in text) and not (ROOT / ".venv" / ".runnable").exists():
        pytest.skip("make has not made .venv here: the tests run in another environment")
    for tool in ("openssl", "curl", "make"):
        if re.search(rf"\b{tool}\b", text) and shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


@pytest.mark.parametrize("block", of_kind(curls=False, real=False), ids=str)
def test_a_page_s_commands_do_what_they_should(block: Block, scene: Scene) -> None:
    needs_environment(block)
    prepared(scene, block)
    script = "\n".join(edited(command, scene.edits) for command in runnable(block))
    done = run(script, scene)
    assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("block", of_kind(curls=True, real=False), ids=str)
def test_what_is_asked_of_a_running_demo_is_answered(block: Block, scene: Scene) -> None:
    needs_environment(block)
    script = f"{sys.executable} -m gateway demo > demo.log 2>&1 & trap 'kill $!' EXIT; "
    asked = (edited(command, scene.edits) for command in block.commands)
    script += "; ".join(command.replace("curl", ASK) for command in asked)
    # A demonstration that ends before a message has passed has failed.
    metrics = f"{scene.environment['GATEWAY_ADMIN_BIND']}/metrics/topics"
    script += f"; until {ASK} {metrics} | grep '{SOME_PASSED}' > some; do sleep 0.2; done"
    done = run(f"{script}; trap - EXIT; kill $!; wait $!", scene)
    log = (scene.folder / "demo.log").read_text()
    assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{log}"


@pytest.mark.real
@pytest.mark.parametrize("block", of_kind(curls=False, real=True), ids=str)
@pytest.mark.usefixtures("jars")
def test_a_page_s_commands_work_on_a_real_broker(block: Block, scene: Scene) -> None:
    needs_environment(block)
    script = "\n".join(edited(command, scene.edits) for command in runnable(block))
    done = run(script, scene)
    assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
