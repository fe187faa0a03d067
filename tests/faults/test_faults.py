"""A few faults, once each: `make faults` causes more of them, repeatedly."""

import pytest

from tests.clients.programs import Program
from tests.real.artifacts import Artifacts
from tests.real.brokers.cluster import LoadManager
from tests.real.brokers.jars import Say
from tests.real.fixtures import or_skip

from .clients import programs
from .faults import FAULTS
from .results import THROUGH
from .trial import Setting, hold

pytestmark = [pytest.mark.real, pytest.mark.gateway_only]


@pytest.fixture(scope="session")
def built_programs(say: Say) -> list[Program]:
    return or_skip(programs, say)


@pytest.fixture(params=["modular", "extensible"])
def setting(
    request: pytest.FixtureRequest, built_programs: list[Program], artifacts: Artifacts
) -> Setting:
    cluster, manager = request.getfixturevalue(request.param), LoadManager[request.param.upper()]
    return Setting(cluster, manager, built_programs, artifacts.directory("faults"), times=1)


@pytest.mark.parametrize("name", ["move", "kill-gateway"])
def test_nothing_is_lost_or_reordered(setting: Setting, name: str) -> None:
    trial = hold(setting, name, FAULTS[name])
    through = [it for it in trial.outcomes if it.way == THROUGH]
    assert {it.client for it in through} == {it.name for it in setting.programs}
    for it in through:
        print(it)
        assert (it.broken, it.errors) == ("", ())
        assert it.acknowledged > 0
        assert (it.missing, it.unconfirmed, it.disordered) == (0, 0, 0)
    assert (trial.gateway["tracebacks"], trial.gateway["complaints"]) == (0, [])
    if name == "move" and setting.load_manager is LoadManager.EXTENSIBLE:
        assert trial.gateway["lookups"] == 0
