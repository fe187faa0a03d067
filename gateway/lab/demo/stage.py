"""The parts of the demonstration: brokers, the gateway in front of them, and clients."""

from __future__ import annotations

import http.client
import json
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import trio
import yaml

from gateway.lab.demo import ports as demo_ports
from gateway.lab.demo.children import Child, running
from gateway.lab.demo.figures import without_partition
from gateway.lab.demo.plan import FLOWS_OF, KAFKA, PULSAR
from gateway.lab.demo.ports import HOST, KAFKA_BROKERS, Ports

if TYPE_CHECKING:
    from gateway.lab.kafka.cluster import KafkaCluster

START_SECONDS = 20.0
"""For the gateway to become ready. It needs one on an idle machine."""

OPEN_SECONDS = 60.0
"""For the clients to open. They need one; longer if a busy machine's brokers create topics."""

FINISH_SECONDS = 30.0
"""For the clients to receive the remaining messages: more than all of their own timeouts."""

CLOSE_SECONDS = 10.0
"""For the clients to close. They need a tenth of a second if all connections answer."""

RESPONSE_SECONDS = 5.0
"""For one HTTP response."""

GRACE = "3s"
"""How long the drain waits for the user's clients; the demonstration's are gone by then."""

RULES = "rules.yaml"
"""The file of rules, beside that of the configuration."""

_POLL_SECONDS = 0.05
_OK = 200


@dataclass(frozen=True, slots=True)
class Upstream:
    """The brokers behind the gateway. `control`: port of the HTTP control of a Pulsar sandbox.
    `cluster`: the brokers of a Kafka sandbox. Both are None if the brokers are no sandbox."""

    service_url: str
    control: int | None = None
    cluster: KafkaCluster | None = None

    @property
    def is_sandbox(self) -> bool:
        return self.control is not None or self.cluster is not None

    @property
    def protocol(self) -> str:
        return PULSAR if self.cluster is None else KAFKA


def brokers(
    given: str | None, ports: Ports, protocol: str
) -> AbstractAsyncContextManager[Upstream]:
    """Return a context whose value is the brokers at the URL `given`. If `given` is None, a sandbox
    runs during the context."""
    if given is not None:
        return nullcontext(Upstream(given))
    return _kafka_sandbox() if protocol == KAFKA else _pulsar_sandbox(ports)


@asynccontextmanager
async def _kafka_sandbox() -> AsyncIterator[Upstream]:
    from gateway.lab.kafka.server import KafkaSandbox, KafkaSettings
    from gateway.wire.address import Address

    sandbox = KafkaSandbox(KafkaSettings(brokers=(Address(HOST, 0),) * KAFKA_BROKERS))
    async with trio.open_nursery() as nursery:
        await nursery.start(sandbox.serve)
        for flow in FLOWS_OF[KAFKA]:
            sandbox.cluster.create(flow.topic, flow.partitions or 1)
        yield Upstream(sandbox.service_url, cluster=sandbox.cluster)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _pulsar_sandbox(ports: Ports) -> AsyncIterator[Upstream]:
    # Not needed in front of real brokers.
    from gateway.lab.sandbox.server import Sandbox, SandboxSettings
    from gateway.wire.address import Address

    free = Address(HOST, 0)
    sandbox = Sandbox(SandboxSettings(brokers=(free, free), control=Address(HOST, ports.control)))
    async with trio.open_nursery() as nursery:
        await nursery.start(sandbox.serve)
        for flow in FLOWS_OF[PULSAR]:
            if flow.partitions:
                name = quote(flow.topic, safe="")
                path = f"/topics?name={name}&partitions={flow.partitions}"
                status, text = await request("POST", ports.control, path)
                assert status == _OK, text
        yield Upstream(sandbox.service_url, ports.control)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def gateway(upstream: Upstream, ports: Ports, folder: Path) -> AsyncIterator[Child]:
    """Run the gateway as a child process during the context, which begins when the gateway is
    ready.

    Raises `ChildError` if the gateway does not become ready.
    """
    file = folder / "gateway.yaml"
    file.write_text(yaml.safe_dump(configuration(upstream, ports), sort_keys=False))
    if upstream.cluster is not None:
        (folder / RULES).write_text(yaml.safe_dump(rules(), sort_keys=False))
    command = [sys.executable, "-m", "gateway", "run", str(file)]
    async with running("the gateway", command, folder / "gateway.log") as child:
        await _until_ready(child, ports.admin)
        yield child


def clients(upstream: Upstream, ports: Ports, folder: Path) -> AbstractAsyncContextManager[Child]:
    """Run the demonstration's clients as a child process during the context. `read_report` reads
    their reports."""
    url = f"{upstream.protocol}://{HOST}:{ports.clients}"
    command = [sys.executable, "-m", "gateway.lab.demo.load", url]
    return running("the client process", command, folder / "clients.log", piped=True)


async def read_report(child: Child, name: str, seconds: float) -> Any:
    """Return the value of the next report that the clients' process writes. `name`: the expected
    report. Raises `ChildError` if it does not come within `seconds`."""
    with trio.move_on_after(seconds):
        return json.loads(await child.read_line())[name]
    raise child.failure(f"did not say {name!r} within {seconds:.0f} s")


async def owners(upstream: Upstream) -> dict[str, str]:
    """Return, by topic, the number of the broker that owns it, such as `2`; for a partitioned topic
    the number for each partition, such as `1 2 1`. Brokers are numbered from 1.

    The result is empty if the brokers are no sandbox.
    """
    if upstream.cluster is not None:
        return leaders(upstream.cluster)
    if upstream.control is None:
        return {}
    status, text = await request("GET", upstream.control, "/topics")
    assert status == _OK, text
    return owner_numbers(json.loads(text), upstream.service_url)


def owner_numbers(topics: Mapping[str, Any], service_url: str) -> dict[str, str]:
    """Return, by topic, the number of its broker, as `owners` does. `topics`: the response of a
    sandbox to GET /topics. `service_url`: the brokers' addresses, in the order of their numbers."""
    hosts = service_url.removeprefix("pulsar://").split(",")
    numbers = {f"pulsar://{host}": str(number) for number, host in enumerate(hosts, start=1)}
    by_topic: dict[str, list[str]] = defaultdict(list)
    for topic in sorted(topics):
        by_topic[without_partition(topic)].append(numbers.get(topics[topic]["owner"], "?"))
    return {topic: " ".join(each) for topic, each in by_topic.items()}


def leaders(cluster: KafkaCluster) -> dict[str, str]:
    """Return the node ids of the leaders of each topic's partitions, such as `1 2` for two
    partitions."""
    return {
        name: " ".join(str(partition.leader) for partition in topic.partitions)
        for name, topic in cluster.topics.items()
    }


async def request(method: str, port: int, path: str) -> tuple[int, str]:
    """Send an HTTP request to a server on this machine. Return the response's status and text.
    Raises `OSError`."""
    return await trio.to_thread.run_sync(_send_request, method, port, path, abandon_on_cancel=True)


def _send_request(method: str, port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, port, timeout=RESPONSE_SECONDS)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except http.client.HTTPException as error:
        raise ConnectionError(str(error)) from error
    finally:
        connection.close()


async def _until_ready(child: Child, port: int) -> None:
    why = "no answer"
    with trio.move_on_after(START_SECONDS):
        while True:
            child.require_running()
            try:
                status, why = await request("GET", port, "/readyz")
            except OSError:  # not listening yet
                status = 0
            if status == _OK:
                return
            await trio.sleep(_POLL_SECONDS)
    raise child.failure(f"is not ready after {START_SECONDS:.0f} s ({why.strip()})")


def configuration(upstream: Upstream, ports: Ports) -> dict[str, Any]:
    """Return the content of the gateway's configuration file."""
    listener: dict[str, Any] = {
        "name": "demo",
        "bind": f"{HOST}:{ports.clients}",
        "cluster": "demo",
    }
    more: dict[str, Any] = {}
    if upstream.cluster is None:
        broker_ports = {address.port for address in demo_ports.brokers(upstream.service_url)}
    else:
        nodes = upstream.cluster.nodes
        broker_ports = {address.port for address in nodes.values()}
        first, *_ = ports.kafka_brokers
        advertised = {"host": HOST, "ids": ",".join(map(str, nodes)), "first_port": first}
        listener |= {"protocol": KAFKA, "advertise": {"ports": advertised}}
        more = {"rules": RULES}
    # Brokers may advertise other hosts than the user named. Any host is right here: only this
    # machine connects.
    targets = {"hosts": ["*"], "ports": sorted(broker_ports)}
    return {
        "version": 1,
        "listeners": [listener],
        "clusters": {"demo": {"brokers": upstream.service_url, "targets": targets}},
        "admin": {"bind": f"{HOST}:{ports.admin}"},
        "console": {"bind": f"{HOST}:{ports.console}"},
        "deadlines": {"grace": GRACE},
        "log": {"format": "console"},
        **more,
    }


def rules() -> dict[str, Any]:
    """Return the content of the gateway's file of rules: limits for topics of the Kafka demo."""
    limited = [
        {
            "id": flow.topic,
            "match": {"protocol": KAFKA, "topic": flow.topic},
            "limit": {"publish": {"messages": f"{flow.limit}/s"}},
        }
        for flow in FLOWS_OF[KAFKA]
        if flow.limit
    ]
    return {"version": 1, "rules": limited}
