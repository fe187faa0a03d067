"""Real brokers behave as recorded in `tests/orders`, which the model broker must match."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from tests.orders.real import play_all
from tests.orders.script import RECORDED, Script, differences, read_scripts
from tests.orders.through import ALWAYS, SOMETIMES
from tests.real.brokers.jars import PULSAR_VERSION
from tests.real.brokers.standalone import Standalone
from tests.real.fixtures import BrokerOf, StartGateway
from tests.real.gateways import Plan
from tests.real.test_order import RULES

FILES = sorted(path.name for path in RECORDED.glob("*.txt"))


@pytest.fixture(scope="module", params=["4.0.8", PULSAR_VERSION])
def broker(request: pytest.FixtureRequest, broker_of: BrokerOf) -> Standalone:
    return broker_of(request.param)


@pytest.mark.parametrize("name", FILES)
def test_a_broker_answers_as_recorded(broker: Standalone, name: str) -> None:
    scripts = read_scripts(RECORDED / name)
    found = played(broker, broker.service_url, scripts)
    assert not found, "\n".join(found.values())


@pytest.mark.gateway_only
@pytest.mark.parametrize("name", FILES)
def test_a_broker_answers_the_same_through_a_gateway(
    broker: Standalone, gateway: StartGateway, tmp_path: Path, name: str
) -> None:
    """The gateway's rules are far above the traffic; each difference has a name."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    started = gateway(broker, Plan(rules=rules))
    scripts = read_scripts(RECORDED / name)
    surprises = played(broker, started.untapped_url, scripts, ALWAYS | SOMETIMES)
    assert not surprises, "\n".join(surprises.values())


TRIES = 4
"""How often to play a script that deviates. A broker races with itself over commands in one write:
a SUBSCRIBE that completes at once is there when the next command is read."""


def played(
    broker: Standalone, url: str, scripts: list[Script], named: Collection[str] = ()
) -> dict[str, str]:
    """Return how each try deviated from the record, by the name of the script; `named` scripts may
    deviate."""
    found: dict[str, str] = {}
    for _ in range(TRIES):
        if not scripts:
            break
        runs = zip(scripts, play_all(url, broker.admin, scripts), strict=True)
        differing = {script.name: differences(script, heard) for script, heard in runs}
        found = {
            name: f"{name}: " + "; ".join(it)
            for name, it in differing.items()
            if it and name not in named
        }
        scripts = [script for script in scripts if script.name in found]
    return found
