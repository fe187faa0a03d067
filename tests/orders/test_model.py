"""The model broker behaves as recorded of real ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model.links import Direct, Gateway

from .model import Modelled
from .script import Script, all_scripts, differences, read_scripts, written
from .through import ALWAYS

SCRIPTS = list(all_scripts())


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_the_model_behaves_as_real_brokers_do(script: Script) -> None:
    """Versions differ in what becomes of a producer that is closed during its opening: the model
    knows both ways, and one of them must match the record."""
    found = [
        differences(script, Modelled(script, opens_after_close=after).run())
        for after in (False, True)
    ]
    assert not all(found), "\n".join(found[0])


def plain() -> Gateway:
    link = Gateway()
    link.finds_fault = True
    return link


def limited() -> Gateway:
    """Return a gateway with limits far above the traffic."""
    link = plain()
    link.limit(100_000)
    return link


@pytest.mark.parametrize("between", [plain, limited])
def test_a_client_notices_only_the_listed_differences_of_the_gateway(
    between: Callable[[], Direct],
) -> None:
    found = set()
    for script in SCRIPTS:
        runs = [
            Modelled(script, opens_after_close=after, between=between).run()
            for after in (False, True)
        ]
        if all(differences(script, played) for played in runs):
            found.add(script.name)
    assert found == set(ALWAYS)


def test_each_script_has_a_name_of_its_own() -> None:
    names = [script.name for script in SCRIPTS]
    assert len(names) > 70
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_another_answer_is_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text(
        "== wrong\n> PRODUCER 1 #1\n< PRODUCER_SUCCESS #1\n> FLOW 1 1\n> SEND 1 0\n< CLOSED\n"
    )
    (script,) = read_scripts(path)
    (found,) = differences(script, Modelled(script, opens_after_close=False).run())
    assert "SEND_RECEIPT 1 0" in found


def test_a_run_can_be_written_and_read_back(tmp_path: Path) -> None:
    for script in SCRIPTS:
        played = Modelled(script, opens_after_close=False).run()
        path = tmp_path / "again.txt"
        path.write_text(written(script, played))
        (again,) = read_scripts(path)
        assert differences(again, played) == []
