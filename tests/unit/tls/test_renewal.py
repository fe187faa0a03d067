"""Files of TLS that change are put in force while streams are open."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog
import trio
import trio.testing
from structlog.testing import capture_logs

from gateway.system.files import LOOK
from gateway.tls.files import KeyPair
from gateway.tls.renewal import Renewal
from tests.support.certificates import DAY
from tests.unit.tls.samples import House, met

T = TypeVar("T")

Clock = trio.testing.MockClock

Lines = Sequence[MutableMapping[str, Any]]

OWNER = "listener clients"


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Return the captured log lines."""
    structlog.reset_defaults()
    with capture_logs() as captured:
        yield captured


class Scene:
    """A server with a pair of files, and its renewal."""

    def __init__(self, house: House, pair: KeyPair) -> None:
        self.house = house
        self.pair = pair
        self.side = house.server(pair)
        self.renewal = Renewal({OWNER: self.side})
        self.figures = self.renewal.figures

    @property
    def counts(self) -> tuple[int, int]:
        """Return how often files were loaded and refused."""
        return self.figures.loaded, self.figures.refused

    @property
    def shown(self) -> bytes | None:
        """Return the certificate that a new client is shown."""
        with met(self.side, self.house.client()) as (_, client):
            return client.certificate

    @property
    def wanted(self) -> bytes:
        """Return the certificate in the file."""
        return der(self.pair.certificate)


def der(certificate: Path) -> bytes:
    """Return a certificate in DER."""
    return ssl.PEM_cert_to_DER_cert(certificate.read_text())


@pytest.fixture
def scene(house: House) -> Scene:
    """Return a server with files in a folder."""
    return Scene(house, house.pair())


@pytest.fixture
async def looking(
    scene: Scene,
    lines: Lines,
    nursery: trio.Nursery,
    autojump_clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> Scene:
    """Return the server after the first look of its renewal, between two looks."""
    at_once(monkeypatch)
    nursery.start_soon(scene.renewal.run)
    await trio.sleep(LOOK / 2)
    return scene


def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have threads' work done at once: the clock would jump while one runs."""

    async def run(work: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint()
        return work()

    monkeypatch.setattr(trio.to_thread, "run_sync", run)


async def looks(number: int) -> None:
    """Let the renewal look some times."""
    await trio.sleep(number * LOOK)


async def test_files_that_stay_as_they_are_are_not_loaded(
    looking: Scene, lines: Lines, autojump_clock: Clock
) -> None:
    context = looking.side._context
    await looks(5)
    assert looking.side._context is context
    assert looking.counts == (0, 0)
    assert lines == []


async def test_a_changed_pair_is_loaded_when_two_looks_have_seen_the_same(
    looking: Scene, lines: Lines, autojump_clock: Clock
) -> None:
    before = looking.shown
    looking.house.renew(looking.pair)
    await looks(1)
    assert looking.shown == before
    assert lines == []
    await looks(1)
    assert looking.shown == looking.wanted != before
    assert lines == [{"event": "tls_files_loaded", "log_level": "info", "owner": OWNER}]
    await looks(5)
    assert looking.counts == (1, 0)


async def test_files_that_still_change_are_not_loaded(
    looking: Scene, autojump_clock: Clock
) -> None:
    for _ in range(3):
        looking.house.renew(looking.pair)
        await looks(1)
    assert looking.counts == (0, 0)
    await looks(1)
    assert looking.counts == (1, 0)
    assert looking.shown == looking.wanted


async def test_a_change_after_the_load_and_before_the_first_look_is_taken(
    scene: Scene,
    lines: Lines,
    nursery: trio.Nursery,
    autojump_clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once(monkeypatch)
    scene.house.renew(scene.pair)
    nursery.start_soon(scene.renewal.run)
    await looks(2)
    assert scene.shown == scene.wanted


async def test_a_swapped_folder_is_a_change(
    house: House,
    lines: Lines,
    nursery: trio.Nursery,
    autojump_clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kubernetes swaps a link to a folder: the links that are configured stay the same."""
    at_once(monkeypatch)
    folder = house.folder
    for name in ("old", "new"):
        (folder / name).mkdir()
        house.pair(file=f"{name}/tls")
    (folder / "..data").symlink_to("old")
    pair = KeyPair(folder / "shown.crt", folder / "shown.key")
    for path, name in zip(pair, ("tls.crt", "tls.key"), strict=True):
        path.symlink_to(f"..data/{name}")
    scene = Scene(house, pair)
    before = scene.shown
    nursery.start_soon(scene.renewal.run)
    await trio.sleep(LOOK / 2)

    (folder / "..next").symlink_to("new")
    (folder / "..next").rename(folder / "..data")
    await looks(2)
    assert scene.shown == scene.wanted != before
    assert scene.counts == (1, 0)


async def test_a_broken_pair_changes_nothing_until_it_is_repaired(
    looking: Scene, lines: Lines, autojump_clock: Clock
) -> None:
    before, expiries = looking.shown, looking.figures.expiries[OWNER]
    good = looking.pair.key.rename(looking.pair.key.with_name("good"))
    looking.house.renew(looking.pair)
    looking.pair.key.write_bytes(b"nothing")
    await looks(5)
    assert looking.shown == before
    assert looking.figures.expiries[OWNER] == expiries
    assert looking.counts == (0, 1)
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("tls_files_refused", "error")
    assert line["owner"] == OWNER
    assert f"The key file {looking.pair.key} holds no private key" in line["error"]

    good.replace(looking.pair.key)  # of the old certificate
    await looks(2)
    assert looking.shown == before
    assert looking.counts == (0, 2)
    looking.house.renew(looking.pair)
    await looks(2)
    assert looking.shown == looking.wanted != before
    assert looking.counts == (1, 2)
    assert [it["event"] for it in lines[1:]] == ["tls_files_refused", "tls_files_loaded"]


async def test_a_missing_file_changes_nothing(
    looking: Scene, lines: Lines, autojump_clock: Clock
) -> None:
    before = looking.shown
    aside = looking.pair.certificate.rename(looking.house.folder / "aside")
    await looks(5)
    assert looking.shown == before
    assert looking.counts == (0, 1)
    aside.rename(looking.pair.certificate)
    await looks(5)
    assert looking.shown == before
    assert lines[0]["event"] == "tls_files_refused"


async def test_expiries_follow_the_files_in_force(looking: Scene, autojump_clock: Clock) -> None:
    before = looking.figures.expiries[OWNER]
    assert before == looking.side.expiries
    looking.house.renew(looking.pair, ends=5 * DAY)
    await looks(1)
    assert looking.figures.expiries[OWNER] == before
    await looks(1)
    (expiry,) = looking.figures.expiries[OWNER]
    assert expiry.ends > before[0].ends + 3 * DAY.total_seconds()


async def test_each_owner_is_renewed_on_its_own(
    house: House,
    lines: Lines,
    nursery: trio.Nursery,
    autojump_clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once(monkeypatch)
    pairs = house.pair(file="one"), house.pair(file="two")
    sides = [house.server(pair) for pair in pairs]
    renewal = Renewal({"listener one": sides[0], "listener two": sides[1]})
    assert set(renewal.figures.expiries) == {"listener one", "listener two"}
    contexts = [side._context for side in sides]
    nursery.start_soon(renewal.run)
    await trio.sleep(LOOK / 2)
    house.renew(pairs[1])
    pairs[0].key.rename(house.folder / "aside")
    await looks(2)
    assert sides[0]._context is contexts[0]
    assert sides[1]._context is not contexts[1]
    assert {it["owner"]: it["event"] for it in lines} == {
        "listener one": "tls_files_refused",
        "listener two": "tls_files_loaded",
    }


async def test_files_are_read_in_a_thread(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disks may be slow, and a load takes milliseconds."""
    reading = []
    load = scene.side.load

    def noted() -> Callable[[], None]:
        try:
            trio.lowlevel.current_task()
        except RuntimeError:
            reading.append("in a thread")
        return load()

    monkeypatch.setattr(scene.side, "load", noted)
    scene.house.renew(scene.pair)
    for _ in range(2):
        await scene.renewal._look(OWNER, scene.side)
    assert reading == ["in a thread"]
    assert scene.counts == (1, 0)
    assert scene.shown == scene.wanted
