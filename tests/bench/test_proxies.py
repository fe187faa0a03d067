"""The configurations of the gateways that are compared."""

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.config.model import Configuration
from tests.bench.machine import Interpreter
from tests.bench.proxies import Observed, Recipe, gateway
from tests.bench.rows import Door


def configured(folder: Path, observed: Observed) -> Configuration:
    recipe = gateway(folder, "127.0.0.1:6650", 10, Interpreter.chosen(), observed=observed)
    return load(Path(recipe.command[-1]))


@pytest.mark.parametrize(
    ("observed", "told"),
    [
        (Observed.COUNTS, {"admin"}),
        (Observed.NOTHING, set()),
        (Observed.EVERYTHING, {"admin", "usage", "console", "audit"}),
    ],
)
def test_a_gateway_tells_what_it_is_to_be_observed_by(
    tmp_path: Path, observed: Observed, told: set[str]
) -> None:
    found = configured(tmp_path, observed)
    parts = "admin", "usage", "console", "audit", "otlp"
    assert {it for it in parts if getattr(found, it) is not None} == told


def test_what_is_compared_differs_in_nothing_else(tmp_path: Path) -> None:
    folders = tmp_path / "nothing", tmp_path / "everything"
    for folder in folders:
        folder.mkdir()
    nothing = configured(folders[0], Observed.NOTHING)
    everything = configured(folders[1], Observed.EVERYTHING)
    assert nothing.listeners[0].identity == everything.listeners[0].identity
    assert nothing.limits == everything.limits
    assert everything.usage is not None
    assert everything.usage.events
    assert everything.log.principals == "plain"


def test_a_proxy_is_measured_where_it_has_a_door(tmp_path: Path) -> None:
    ours = gateway(tmp_path, "127.0.0.1:6650", 10, Interpreter.chosen())
    theirs = Recipe("one of Kafka", (), 9092, tmp_path / "log", serves=frozenset({Door.KAFKA}))
    assert [door for door in Door if ours.has(door)] == [Door.PLAIN, Door.KAFKA, Door.TUBEMQ]
    assert [door for door in Door if theirs.has(door)] == [Door.KAFKA]
