"""The gateway as a service of a machine, installed as a reader of the pages does it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.packages.building import ROOT
from tests.packages.environments import RULES
from tests.real.brokers.ports import free_ports
from tests.real.gateways import HOST, Plan, Upstream
from tests.systemd.machine import PYTHON, Machine

PAGE = ROOT / "docs" / "operating.md"
ETC = "/etc/broker-gateway"
LOG = "/run/gateway.log"
UNITS = "/etc/systemd/system"
FIRST = "/opt/broker-gateway-first"
"""The environment from which an upgrade leads to another one."""
SERVICE, SOCKET = "broker-gateway.service", "broker-gateway.socket"

PLAN = Plan(
    key=Path("${CREDENTIALS_DIRECTORY:-secrets}/seal.key"),
    rules=Path("rules.yaml"),
    deadlines={"grace": "3s"},
)
OWN_SERVICE = f"""\
StandardError=append:{LOG}
LoadCredential=seal.key:{ETC}/secrets/seal.key
"""
OWN_SOCKET = "ListenStream=\nListenStream={host}:{port}\n"


def commands(heading: str) -> str:
    """Return the commands of the page's section, for a shell of root."""
    section = PAGE.read_text().partition(f"# {heading}\n")[2].partition("\n##")[0]
    (block,) = re.findall(r"^```\n(.*?)^```$", section, re.M | re.S)
    return str(block).replace("sudo ", "")


class Service:
    def __init__(self, machine: Machine, brokers: Upstream) -> None:
        self.machine = machine
        self.port, self._admin_port = free_ports(HOST, 2)
        self.untapped_url = f"pulsar://{HOST}:{self.port}"
        self._brokers = brokers
        self._packages = ""

    def install(self, wheel: Path) -> None:
        """Install the package, with what ships usage records; write what is this machine's own, and
        do as the page says."""
        self._packages = str(wheel.parent)
        self.machine.run(f"{PYTHON} -m venv {FIRST}\nln -s {FIRST} /opt/broker-gateway")
        pip = "/opt/broker-gateway/bin/pip install --quiet --constraint constraints.txt"
        self.machine.run(f"{pip} '{wheel}[topic]'", folder=str(ROOT))
        self.machine.write(f"{ETC}/secrets/seal.key", "0123456789abcdef0123456789abcdef")
        self.machine.file(f"{ETC}/secrets/seal.key").chmod(0o600)
        self.configure()
        self._drop_in(SERVICE, "own", f"[Service]\n{OWN_SERVICE}")
        address = OWN_SOCKET.format(host=HOST, port=self.port)
        self._drop_in(SOCKET, "own", f"[Socket]\n{address}")
        self.machine.run(commands("Under systemd"), folder=str(ROOT))

    @contextmanager
    def upgraded(self) -> Iterator[None]:
        """Do as the page says, with the package that was built here, and go back in the end."""
        own = f"export PIP_FIND_LINKS={self._packages} PIP_CONSTRAINT={ROOT}/constraints.txt\n"
        self.machine.run(own + commands("On one machine"))
        yield
        self.machine.run(f"ln -s {FIRST} /opt/back\nmv -T /opt/back /opt/broker-gateway")

    def configure(self, plan: Plan = PLAN, rules: str = RULES) -> None:
        settings = plan.settings(self._brokers, self.port, self._admin_port)
        self.machine.write(f"{ETC}/gateway.yaml", yaml.safe_dump(settings, sort_keys=False))
        self.machine.write(f"{ETC}/rules.yaml", rules)

    def _drop_in(self, unit: str, name: str, text: str) -> None:
        self.machine.write(f"{UNITS}/{unit}.d/{name}.conf", text)

    @contextmanager
    def changed(self, settings: str) -> Iterator[None]:
        """Have other settings of the service from its next start on."""
        self._drop_in(SERVICE, "changed", f"[Service]\n{settings}\n")
        self.machine.run("systemctl daemon-reload")
        try:
            yield
        finally:
            self.machine.file(f"{UNITS}/{SERVICE}.d/changed.conf").unlink()
            self.machine.run("systemctl daemon-reload")

    def control(self, what: str, *units: str) -> str:
        """Have systemctl do something with the service, or with these units."""
        done = self.machine.attempt(f"systemctl {what} {' '.join(units or (SERVICE,))}")
        assert done.returncode == 0, f"{what}: {done.stdout}{self.log()[-2000:]}"
        return done.stdout

    def shows(self, *names: str, unit: str = SERVICE) -> list[str]:
        """Return the values of a unit's properties."""
        said = self.control(f"show --property={','.join(names)}", unit)
        found = dict(line.split("=", 1) for line in said.splitlines())
        return [found[name] for name in names]

    @property
    def process(self) -> str:
        """The id of the gateway's process, in the machine."""
        return self.shows("MainPID")[0]

    def status(self) -> dict[str, str]:
        """Return what the kernel says of the gateway's process."""
        lines = self.machine.run(f"cat /proc/{self.process}/status").splitlines()
        return {name: value.strip() for name, _, value in (it.partition(":") for it in lines)}

    def log(self) -> str:
        path = self.machine.file(LOG)
        return path.read_text() if path.exists() else ""

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of an event in the log, by all processes so far."""
        lines = [it for it in self.log().splitlines() if it.startswith("{")]
        return [event for it in lines if (event := json.loads(it))["event"] == name]
