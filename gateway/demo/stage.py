"""What is on the stage: brokers, the gateway in front of them, the clients."""

from __future__ import annotations

import http.client
import json
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import trio
import yaml

from gateway.demo import plan
from gateway.demo import ports as demo_ports
from gateway.demo.children import Child, running
from gateway.demo.figures import whole
from gateway.demo.ports import HOST, Ports

START_SECONDS = 20.0
"""For the gateway to be ready. It takes one on an idle machine."""

OPEN_SECONDS = 60.0
"""For the clients to open. They take one; brokers that create topics on a busy machine, more."""

FINISH_SECONDS = 30.0
"""For the clients to receive what was sent: above all that they wait for themselves."""

CLOSE_SECONDS = 10.0
"""For the clients to close. They take a tenth of a second, where all connections answer."""

ASK_SECONDS = 5.0
"""For one answer over HTTP."""

GRACE = "3s"
"""How long the drain waits for the person's own clients; those of the demo are gone by then."""

_LOOK = 0.05
_OK = 200


@dataclass(frozen=True, slots=True)
class Behind:
    """What lies behind the gateway. `control`: the port of the sandbox's control, if it is one."""

    service_url: str
    control: int | None = None


@asynccontextmanager
async def brokers(given: str | None, ports: Ports) -> AsyncIterator[Behind]:
    """The given brokers; without any the sandbox, which runs as long as the context."""
    if given is not None:
        yield Behind(given)
        return
    async with _sandbox(ports) as behind:
        yield behind


@asynccontextmanager
async def _sandbox(ports: Ports) -> AsyncIterator[Behind]:
    # Imported only where it is wanted: it is not needed in front of real brokers.
    from gateway.sandbox.server import Sandbox, SandboxSettings
    from gateway.wire.address import Address

    free = Address(HOST, 0)
    sandbox = Sandbox(SandboxSettings(brokers=(free, free), control=Address(HOST, ports.control)))
    async with trio.open_nursery() as nursery:
        await nursery.start(sandbox.serve)
        for flow in plan.FLOWS:
            if flow.partitions:
                name = quote(flow.topic, safe="")
                path = f"/topics?name={name}&partitions={flow.partitions}"
                status, text = await ask("POST", ports.control, path)
                assert status == _OK, text
        yield Behind(sandbox.service_url, ports.control)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def gateway(behind: Behind, ports: Ports, folder: Path) -> AsyncIterator[Child]:
    """The gateway as anybody starts it; it is ready when the context is entered.

    Raises `ChildError` where it does not become so.
    """
    file = folder / "gateway.yaml"
    file.write_text(yaml.safe_dump(configuration(behind, ports), sort_keys=False))
    command = [sys.executable, "-m", "gateway", "run", str(file)]
    async with running("the gateway", command, folder / "gateway.log") as child:
        await _until_ready(child, ports.admin)
        yield child


def clients(ports: Ports, folder: Path) -> AbstractAsyncContextManager[Child]:
    """The demo's clients; `opened` says when they are ready, `finished` what they counted."""
    url = f"pulsar://{HOST}:{ports.clients}"
    command = [sys.executable, "-m", "gateway.demo.load", url]
    return running("the client process", command, folder / "clients.log", speaks=True)


async def report(child: Child, name: str, seconds: float) -> Any:
    """What the clients' next report holds under a name. Raises `ChildError`."""
    with trio.move_on_after(seconds):
        return json.loads(await child.line())[name]
    raise child.failure(f"did not say {name!r} within {seconds:.0f} s")


async def owners(behind: Behind) -> dict[str, str]:
    """Which broker has a topic, by the brokers' numbers from 1 on: `2`, of partitions `1 2 1`.

    Empty where the brokers are no sandbox.
    """
    if behind.control is None:
        return {}
    status, text = await ask("GET", behind.control, "/topics")
    assert status == _OK, text
    return numbered(json.loads(text), behind.service_url)


def numbered(topics: Mapping[str, Any], service_url: str) -> dict[str, str]:
    """The owners in an answer of the sandbox, as the numbers of the brokers in a service URL."""
    hosts = service_url.removeprefix("pulsar://").split(",")
    numbers = {f"pulsar://{host}": str(number) for number, host in enumerate(hosts, start=1)}
    found: dict[str, list[str]] = defaultdict(list)
    for topic in sorted(topics):
        found[whole(topic)].append(numbers.get(topics[topic]["owner"], "?"))
    return {topic: " ".join(each) for topic, each in found.items()}


async def ask(method: str, port: int, path: str) -> tuple[int, str]:
    """One request to a server on loopback: status and text. Raises `OSError`."""
    return await trio.to_thread.run_sync(_ask, method, port, path, abandon_on_cancel=True)


def _ask(method: str, port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, port, timeout=ASK_SECONDS)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except http.client.HTTPException as error:
        raise ConnectionError(str(error)) from error
    finally:
        connection.close()


async def _until_ready(child: Child, port: int) -> None:
    why = "no answer"
    with trio.move_on_after(START_SECONDS):
        while True:
            child.require()
            try:
                status, why = await ask("GET", port, "/readyz")
            except OSError:  # nobody listens yet
                status = 0
            if status == _OK:
                return
            await trio.sleep(_LOOK)
    raise child.failure(f"is not ready after {START_SECONDS:.0f} s ({why.strip()})")


def configuration(behind: Behind, ports: Ports) -> dict[str, Any]:
    """The content of the gateway's configuration file."""
    broker_ports = {address.port for address in demo_ports.brokers(behind.service_url)}
    listener = {"name": "demo", "bind": f"{HOST}:{ports.clients}", "cluster": "demo"}
    # Brokers may call themselves otherwise than the person did. Any host is right here, where
    # only this machine connects.
    targets = {"hosts": ["*"], "ports": sorted(broker_ports)}
    return {
        "version": 1,
        "listeners": [listener],
        "clusters": {"demo": {"brokers": behind.service_url, "targets": targets}},
        "admin": {"bind": f"{HOST}:{ports.admin}"},
        "deadlines": {"grace": GRACE},
        "log": {"format": "console"},
    }
