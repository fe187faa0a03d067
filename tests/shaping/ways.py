"""How clients reach the broker, and which component limits them there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.bench import javaproxy
from tests.bench.machine import Cores
from tests.bench.proxies import running
from tests.real.brokers.admin import Admin
from tests.real.gateways import Gateway, Plan, Settings, Upstream

from .scenarios import LIMITED, Limit, Scenario, Way


@dataclass(frozen=True)
class Route:
    """What clients connect to."""

    url: str
    gateway: Gateway | None = None


@dataclass(frozen=True)
class Ruled(Plan):
    """A gateway with rules from a file."""

    rules: Path = Path()

    def settings(self, broker: Upstream, port: int, admin_port: int) -> Settings:
        return super().settings(broker, port, admin_port) | {"rules": [str(self.rules)]}


def ruled(folder: Path, limit: Limit, topic: str = f"{LIMITED}*") -> Ruled:
    """Return a plan with one rule."""
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump({"version": 1, "rules": [limit.rule(topic)]}))
    return Ruled(rules=file)


@contextmanager
def limited(
    broker: Upstream, limit: Limit, folder: Path, topic: str = f"{LIMITED}*"
) -> Iterator[Gateway]:
    """Yield a gateway that limits each of these topics."""
    gateway = Gateway(broker, ruled(folder, limit, topic), folder)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


@contextmanager
def route(scenario: Scenario, broker: Upstream, folder: Path) -> Iterator[Route]:
    """Yield the way of a scenario while it is open."""
    if scenario.way is Way.GATEWAY:
        with limited(broker, scenario.limit, folder) as gateway:
            yield Route(gateway.untapped_url, gateway)
    elif scenario.way is Way.PROXY:
        address = broker.service_url.removeprefix("pulsar://")
        relay, _ = javaproxy.recipes(folder, address)
        with running(relay, Cores.of_this_process()) as proxy:
            yield Route(f"pulsar://{proxy.target}")
    else:
        yield Route(broker.service_url)


def prepare(scenario: Scenario, admin: Admin, namespace: str) -> None:
    """Create a namespace with the broker's own policies for the scenario."""
    admin.create_namespace(namespace)
    if scenario.way is not Way.GATEWAY:
        path = f"admin/v2/namespaces/{namespace}/publishRate"
        admin.request("POST", path, scenario.limit.policy)
    if scenario.deduplicated:
        admin.request("POST", f"admin/v2/namespaces/{namespace}/deduplication", body=True)
