"""docs/reliability.md and the tests: each fault has one, and each end reason too."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from gateway.wire.contract import Direction, EndReason
from gateway.wire.pulsar.frames import KNOWN, kind_name
from tests.soak.costs import BOUND
from tests.soak.largest import KINDS, directions

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"


class Fault(NamedTuple):
    """A row of the table. `reason`: None where the fault ends nothing, or many things."""

    what: str
    reason: str | None
    path: str
    test: str


def _faults() -> list[Fault]:
    row = r"^\| (.+) \| .+ \| .+ \| (?:`(\w+)`|\S) \| `(.+)::(.+)` \|$"
    rows = re.findall(row, PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [Fault(what, reason or None, path, test) for what, reason, path, test in rows]


FAULTS = _faults()


def _source(fault: Fault) -> str:
    """The test, and the tables of its file, which it may be given."""
    tree = ast.parse((ROOT / fault.path).read_text(encoding="utf-8"))
    chosen = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        or (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == fault.test)
    ]
    return "\n".join(map(ast.unparse, chosen))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_the_test_of_a_fault_is_there_and_is_about_it(fault: Fault) -> None:
    source = _source(fault)
    assert f"def {fault.test}(" in source
    if fault.reason is not None:
        reason = EndReason(fault.reason)
        assert f"EndReason.{reason.name}" in source or repr(reason.value) in source


def test_every_end_reason_has_a_test() -> None:
    assert {fault.reason for fault in FAULTS} - {None} == {reason.value for reason in EndReason}


def test_the_table_of_costs_has_every_command_and_none_above_the_bound() -> None:
    command, cost = r"(?:`(\w+)`|an unknown one) \| (broker|client)", r"([\d.]+) ms"
    row = rf"^\| {command} \| [\d,]+ \| .+ \| {cost} \| .+ \|$"
    rows = re.findall(row, PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    peers = {Direction.TO_BROKER: "broker", Direction.TO_CLIENT: "client"}
    listed = [(name, peer) for name, peer, _ in rows]
    assert listed == [
        (kind_name(kind) if kind in KNOWN else "", peers[direction])
        for kind in KINDS
        for direction in directions(kind)
    ]
    assert max(float(took) for _, _, took in rows) <= BOUND
