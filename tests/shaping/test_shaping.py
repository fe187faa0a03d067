"""Every kind of scenario in a few seconds, with Python clients: properties that hold at any speed.

`make shaping` measures for longer, and how exactly limits hold.
"""

from dataclasses import replace

import pytest

from tests.clients.loads import Offer, python_load
from tests.real.artifacts import Artifacts
from tests.real.brokers.standalone import Standalone
from tests.real.gateways import Upstream

from .play import Setting, play
from .results import Passed, Trial
from .scenarios import FREE, LIMITED, Flow, Limit, Scenario, Unit

pytestmark = pytest.mark.gateway_only

PATIENT = Offer(pending=100, patience=20)
"""All sent messages have their receipts in the end."""


@pytest.fixture(params=["sandbox", pytest.param("pulsar", marks=pytest.mark.real)])
def setting(request: pytest.FixtureRequest, artifacts: Artifacts) -> Setting:
    broker: Upstream = request.getfixturevalue(request.param)
    admin = broker.admin if isinstance(broker, Standalone) else None
    programs = {"python": python_load(print)}
    return Setting(broker, admin, programs, artifacts.directory("shaping"))


def short(limit: Limit, *flows: Flow, offer: Offer = PATIENT, programs: int = 1) -> Scenario:
    """Return a scenario of two seconds."""
    return Scenario(
        *("test", "short", "python", limit, flows),
        offer=offer,
        programs=programs,
        warm_up=0.5,
        seconds=1.5,
    )


def flow(trial: Trial, topic: str = LIMITED) -> Passed:
    (found,) = (it for it in trial.flows if it.topic == topic)
    return found


def assert_whole(trial: Trial) -> None:
    """Assert that no message and no connection was lost, and that nothing remains in the
    gateway."""
    for it in trial.flows:
        print(it)
        assert it.acknowledged == it.stored
        assert it.acknowledged > 0
        assert (it.failed, it.waiting) == ({}, 0)
        assert (it.missing, it.doubled, it.disordered) == (0, 0, 0)
    assert (trial.gateway["ended"], trial.gateway["left"]) == (0, 0)


@pytest.mark.parametrize("batch", [0, 20], ids=["single", "batched"])
def test_messages_above_a_limit_wait_without_loss(setting: Setting, batch: int) -> None:
    limit = Limit(200)
    trial = play(short(limit, Flow(2000), offer=replace(PATIENT, batch=batch)), setting)
    assert_whole(trial)
    assert trial.gateway["buffered"] > 0
    assert flow(trial).acknowledged <= limit.most(trial.elapsed, max(1, batch))


def test_bytes_above_a_limit_wait_without_loss(setting: Setting) -> None:
    limit = Limit(500_000, Unit.BYTES)
    trial = play(short(limit, Flow(500), offer=replace(PATIENT, size=10_000)), setting)
    assert_whole(trial)
    assert trial.gateway["buffered"] > 0
    assert flow(trial).acknowledged * trial.size <= limit.most(trial.elapsed, trial.size)


def test_several_programs_share_a_limit(setting: Setting) -> None:
    limit = Limit(300)
    trial = play(short(limit, Flow(500, producers=2), programs=2), setting)
    assert_whole(trial)
    assert flow(trial).producers == 4
    assert flow(trial).acknowledged <= limit.most(trial.elapsed, 1)
    assert flow(trial).fairness > 0.9


def test_an_unlimited_client_does_not_wait_beside_a_limited_one(setting: Setting) -> None:
    """A queue of a hundred messages takes a second to pass."""
    trial = play(short(Limit(100), Flow(1000), Flow(200, FREE)), setting)
    assert_whole(trial)
    assert flow(trial, FREE).waits.longest < flow(trial).waits.longest


def test_a_window_of_large_messages_waits_whole_and_is_stored_once(setting: Setting) -> None:
    """A single producer may have 32 MiB waiting."""
    offer = Offer(size=10_000, pending=700, patience=30)
    trial = play(short(Limit(300), Flow(3000), offer=offer), setting)
    assert_whole(trial)
    window = offer.pending * (offer.size + 100)
    assert window / 2 < trial.gateway["buffered"] < window
    assert flow(trial).acknowledged <= Limit(300).most(trial.elapsed, 1)
