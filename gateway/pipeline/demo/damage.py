"""Damage to closed files of usage records, as copies, disks and clocks cause it.

Each kind happens to one file, which is known by the gateway and the hour of its records. None of
them is the last of its process: nobody could see that it is missing.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gateway.pipeline.demo.cast import GATEWAYS
from gateway.pipeline.demo.load import DAY_MS
from gateway.pipeline.demo.plan import HOUR_MS
from gateway.pipeline.demo.planted import Fact, What
from gateway.pipeline.demo.processes import folder_of
from gateway.usage.records import VERSION, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.pipeline.demo.plan import Plan
    from gateway.pipeline.demo.processes import Account, Closed

AHEAD_MS = 90_000
"""Of a clock that goes wrong."""

LATE_DAYS = 3
"""By which a late file is late: that of the third day is in the folder of the sixth."""

UNKNOWN_VERSION = 99
"""Of a hostile record. It has a process of its own, or it would look like one that is lost."""

_CUT = 13
"""Bytes of a member that are left of it: its header, and too few to unpack anything of it."""

_HUGE = 10**12
"""Messages and bytes that a hostile record claims: they would be seen in any sum."""


class Place(NamedTuple):
    """A file: that of a gateway with the records of an hour."""

    gw: str
    hour_ms: int


def places_of(plan: Plan) -> dict[Place, What]:
    """Return which files are damaged, and how."""
    one, two = GATEWAYS
    return {
        Place(one, plan.day(4, 0) + 7 * HOUR_MS): What.DUPLICATE,
        Place(two, plan.first_ms + 2 * DAY_MS + 9 * HOUR_MS): What.LATE,
        Place(one, plan.day(10) + 5 * HOUR_MS): What.GAP,
        Place(two, plan.day(16) + 12 * HOUR_MS): What.TORN,
        Place(one, plan.day(20, 2) + 6 * HOUR_MS): What.HOSTILE,
        Place(two, plan.day(24, 2) + 16 * HOUR_MS): What.CLOCK_AHEAD,
    }


def damage(what: What, closed: Closed, folder: Path, account: Account) -> Fact:
    """Damage a file, add to the account what can be read of it, and return what was done.

    `folder`: that of all records, for the paths of the fact.
    """
    path, other, number = closed.path, None, 0
    if what is What.GAP:
        path.unlink()
        number = account.add(closed, 0)
    elif what is What.TORN:
        members = len(closed.members) // 2
        _cut(closed, members)
        number = account.add(closed, members)
    else:
        account.add(closed)
    if what is What.DUPLICATE:
        number, other = closed.records, _elsewhere(closed, 1)
        other.write_bytes(path.read_bytes())
    elif what is What.LATE:
        path = path.rename(_elsewhere(closed, LATE_DAYS))
        number = closed.records
    elif what is What.HOSTILE:
        number = _spoil(closed)
    elif what is What.CLOCK_AHEAD:  # done when its records were made
        number = AHEAD_MS
    return Fact(
        what,
        closed.start_ms,
        closed.end_ms,
        gateway=closed.gw,
        boot=closed.boot,
        file=str(path.relative_to(folder)),
        other=None if other is None else str(other.relative_to(folder)),
        number=number,
    )


def _cut(closed: Closed, members: int) -> None:
    """Leave some members, and the begin of the next."""
    end = closed.members[members - 1].end if members else 0
    closed.path.write_bytes(closed.path.read_bytes()[: end + _CUT])


def _elsewhere(closed: Closed, days: int) -> Path:
    """Return the path of the same name in the folder of a later day."""
    stream = closed.path.parents[2]
    folder = folder_of(stream, closed.end_ms + days * DAY_MS)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / closed.path.name


def _spoil(closed: Closed) -> int:
    """Add lines that are no records of this version; return how many."""
    content = closed.path.read_bytes()
    whole = gzip.decompress(content).splitlines()[0]
    stranger = Usage(
        v=UNKNOWN_VERSION,
        gw=closed.gw,
        boot="f" * 16,
        seq=1,
        start_ms=closed.start_ms,
        dur_ms=closed.end_ms - closed.start_ms,
        op="send",
        tenant="nobody",
        msgs=_HUGE,
        bytes_wire=_HUGE,
    )
    assert stranger.v != VERSION
    lines = (b"this is no JSON", whole[: len(whole) // 2], msgspec.json.encode(stranger))
    spoiled = gzip.compress(b"\n".join((*lines, b"")), mtime=0)
    closed.path.write_bytes(content + spoiled)
    return len(lines)
