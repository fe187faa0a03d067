"""One TubeMQ for all scenes, and one gateway for those that need nothing special.

Clients reach that gateway through a tap: in no scene may they read where a server is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
import yaml

from tests.apache_kafka.gateways import TAP, Tap
from tests.apache_tubemq.broker import TubeMQ
from tests.apache_tubemq.gateways import in_front_of
from tests.real.artifacts import Artifacts
from tests.real.clients import wait_until
from tests.real.gateways import Gateway
from tests.real.metrics import totals

RATE = 100
"""Messages in a second that may be sent to the topic with a limit."""

PATIENCE_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/scenes/tubemq/"):
            item.add_marker(pytest.mark.real)


class Route(NamedTuple):
    """How clients reach servers. `address`: their master; `denied`: a topic that nobody may use;
    `limited`: one with a limit of `RATE`."""

    gateway: Gateway
    tap: Tap
    address: str
    denied: str
    limited: str

    def passed(self, topic: str) -> float:
        """Return how many messages of a topic have passed, in both directions."""
        told = self.gateway.ask("metrics/topics")[1]
        return totals(told, "gateway_topic_messages_total", "topic").get((topic,), 0.0)

    def await_passed(self, topic: str, count: int) -> None:
        """Return when so many have."""
        wait_until(lambda: self.passed(topic) >= count, PATIENCE_S)


@pytest.fixture(scope="session")
def shared_route(
    tubemq: TubeMQ,
    topics: Iterator[str],
    artifacts: Artifacts,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Route]:
    denied, limited = next(topics), next(topics)
    secret = {"id": "secret", "match": {"topic": denied}, "deny": ["produce", "consume"]}
    few = {"id": "few", "match": {"topic": limited}, "per": "topic"}
    few["limit"] = {"publish": {"messages": f"{RATE}/s"}}
    rules = tmp_path_factory.mktemp("scenes") / "rules.yaml"
    rules.write_text(yaml.safe_dump({"version": 1, "rules": [secret, few]}))
    plan = in_front_of(tubemq, host=TAP, rules=rules)
    started = Gateway(tubemq, plan, artifacts.directory("gateway-tubemq"))
    started.start()
    tap = Tap(started, plan)
    yield Route(started, tap, f"{TAP}:{started.port}", denied, limited)
    tap.close()
    started.stop()


@pytest.fixture
def route(tubemq: TubeMQ, shared_route: Route) -> Iterator[Route]:
    """Return the route that scenes share. No client may read where a server is."""
    told = shared_route.tap.told
    told.clear()
    yield shared_route
    assert told
    assert [it for it in tubemq.traces if it.encode() in told] == []
    shared_route.gateway.assert_no_new_traceback()
