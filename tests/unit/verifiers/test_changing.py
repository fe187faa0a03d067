"""When the keys of an issuer are fetched, and which ones count meanwhile."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from gateway.identity.keysets import read_key_set
from gateway.identity.token import NO_KEYS, NOT_ACCEPTED, TokenVerifier, Unsettled
from gateway.identity.verified import Verified
from gateway.telemetry.figures import IssuerFigures
from gateway.verifiers.changing import (
    FIRST_BACK_OFF,
    LONGEST_BACK_OFF,
    PAUSE,
    SHORTEST_PAUSE,
    ChangingKeys,
)
from gateway.wire.contract import Denial
from tests.support.issuer import SigningKey, published

OLD, NEW, UNKNOWN = SigningKey("old"), SigningKey("new"), SigningKey("unknown")
NAMELESS, OTHER_NAMELESS = SigningKey(), SigningKey()
NOW = 1_800_000_000.0


class Setting:
    """Changing keys, their issuer, and what is logged. `fetches`: when keys were fetched.
    `failure`: of fetches, if they fail."""

    def __init__(self, *keys: SigningKey, pause: float = PAUSE) -> None:
        self.published = published(*keys)
        self.failure: OSError | None = None
        self.takes = 0.0
        self.fetches: list[float] = []
        self.logged: list[tuple[str, dict[str, object]]] = []
        self.figures = IssuerFigures()
        self.keys = ChangingKeys("issuer", self.fetch, self.figures, self.log, pause)
        self.verifier = TokenVerifier(self.keys, ["ES256"])

    def log(self, event: str, **values: object) -> None:
        self.logged.append((event, values))

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.logged]

    async def fetch(self) -> bytes:
        self.fetches.append(trio.current_time())
        await trio.sleep(self.takes)
        if self.failure is not None:
            raise self.failure
        return self.published

    def publish(self, *keys: SigningKey) -> None:
        self.published = published(*keys)

    def shown(self, key: SigningKey, **header: object) -> Verified | Denial | Unsettled:
        """Return the answer to a token that is signed with a key."""
        return self.verifier.verify(key.token(header=header).encode(), NOW)

    async def settled(self, key: SigningKey, **header: object) -> Verified | Denial:
        answer = self.shown(key, **header)
        return await answer.outcome() if isinstance(answer, Unsettled) else answer

    @contextmanager
    def nothing_is_fetched(self) -> Iterator[None]:
        before = len(self.fetches)
        yield
        assert len(self.fetches) == before

    @property
    def pauses(self) -> list[float]:
        """Return the seconds between fetches."""
        pairs = zip(self.fetches, self.fetches[1:], strict=False)
        return [round(later - earlier, 6) for earlier, later in pairs]


Begin = Callable[[Setting], Awaitable[None]]


@pytest.fixture
def begin(nursery: trio.Nursery) -> Begin:
    async def begin(setting: Setting) -> None:
        nursery.start_soon(setting.keys.run)
        await trio.testing.wait_all_tasks_blocked()

    return begin


ALICE = Verified("alice", None)


# -- fetching from time to time --


async def test_keys_are_fetched_at_the_start(begin: Begin, autojump_clock: MockClock) -> None:
    setting = Setting(OLD)
    assert isinstance(setting.shown(OLD), Unsettled)
    await begin(setting)
    assert setting.shown(OLD) == ALICE
    assert setting.figures == IssuerFigures(keys=1, fetched=1)
    assert setting.logged == [("issuer_keys_fetched", {"issuer": "issuer", "keys": ["old"]})]


async def test_a_client_who_comes_before_the_first_keys_waits_for_them(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    setting.takes = 3
    await begin(setting)
    assert await setting.settled(OLD) == ALICE
    assert setting.fetches == [pytest.approx(trio.current_time() - 3)]


async def test_keys_are_fetched_again_after_the_pause(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    await trio.sleep(3.5 * PAUSE)
    assert setting.pauses == [PAUSE, PAUSE, PAUSE]
    assert setting.events == ["issuer_keys_fetched"]


async def test_changed_keys_are_logged_by_their_ids(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    setting.publish(OLD, NEW)
    await trio.sleep(PAUSE + 1)
    assert setting.logged[1:] == [
        ("issuer_keys_fetched", {"issuer": "issuer", "keys": ["old", "new"]})
    ]


async def test_a_withdrawn_key_is_no_longer_accepted(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD, NEW)
    await begin(setting)
    setting.publish(NEW)
    await trio.sleep(PAUSE + 1)
    assert await setting.settled(OLD) == NOT_ACCEPTED
    assert setting.shown(NEW) == ALICE


# -- keys that are not known --


async def test_a_rotated_key_is_fetched_while_the_old_one_goes_on_working(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    setting.publish(OLD, NEW)
    await trio.sleep(60)
    assert setting.shown(OLD) == ALICE
    assert await setting.settled(NEW) == ALICE
    assert setting.pauses == [60]
    assert setting.shown(OLD) == ALICE
    assert setting.shown(NEW) == ALICE


async def test_an_unknown_key_is_fetched_no_sooner_than_the_shortest_pause(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    setting.publish(OLD, NEW)
    await trio.sleep(1)
    assert await setting.settled(NEW) == ALICE
    assert setting.pauses == [SHORTEST_PAUSE]


async def test_a_key_that_nobody_has_is_refused_after_one_fetch(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    await trio.sleep(60)
    assert await setting.settled(UNKNOWN) == NOT_ACCEPTED
    assert setting.pauses == [60]


async def test_a_hundred_waiters_cause_one_fetch(begin: Begin, autojump_clock: MockClock) -> None:
    setting = Setting(OLD)
    await begin(setting)
    setting.publish(NEW)
    await trio.sleep(60)
    answers: list[Verified | Denial] = []

    async def wait() -> None:
        answers.append(await setting.settled(NEW))

    async with trio.open_nursery() as waiters:
        for _ in range(100):
            waiters.start_soon(wait)
    assert answers == [ALICE] * 100
    assert setting.pauses == [60]
    await trio.sleep(PAUSE - 1)
    assert setting.pauses == [60]


async def test_keys_that_strangers_invent_cause_a_fetch_per_shortest_pause(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    async with trio.open_nursery() as strangers:
        for number in range(600):
            strangers.start_soon(setting.settled, SigningKey(f"{number}", UNKNOWN.key))
            await trio.sleep(0.1)
    assert len(setting.pauses) == 60 / SHORTEST_PAUSE
    assert min(setting.pauses) >= SHORTEST_PAUSE
    assert setting.shown(OLD) == ALICE


async def test_a_wrong_signature_of_a_known_key_causes_no_fetch(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    with setting.nothing_is_fetched():
        assert setting.shown(SigningKey("old", UNKNOWN.key)) == NOT_ACCEPTED
        await trio.sleep(PAUSE - 1)


@pytest.mark.parametrize("id", [1, ["old"], None, {"a": 1}, True])
async def test_an_id_that_is_no_text_is_not_accepted(
    begin: Begin, autojump_clock: MockClock, id: object
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    with setting.nothing_is_fetched():
        assert setting.shown(OLD, kid=id) == NOT_ACCEPTED
        await trio.sleep(PAUSE - 1)


async def test_a_very_long_id_is_an_unknown_one(begin: Begin, autojump_clock: MockClock) -> None:
    setting = Setting(OLD)
    await begin(setting)
    assert await setting.settled(OLD, kid=secrets.token_hex(4000)) == NOT_ACCEPTED
    assert setting.figures.fetched == 2


async def test_a_token_without_an_id_may_be_of_any_key(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD, NEW)
    await begin(setting)
    for key in (OLD, NEW):
        assert setting.shown(SigningKey(None, key.key)) == ALICE
    assert setting.shown(SigningKey(None, UNKNOWN.key)) == NOT_ACCEPTED


async def test_a_key_without_an_id_verifies_tokens_of_any_id(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(NAMELESS, OLD)
    await begin(setting)
    assert setting.shown(SigningKey("any", NAMELESS.key)) == ALICE
    assert setting.shown(SigningKey("old", OLD.key)) == ALICE
    assert setting.shown(SigningKey("any", OLD.key)) == NOT_ACCEPTED


async def test_an_id_of_one_key_does_not_stand_for_another(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD, NEW)
    await begin(setting)
    assert setting.shown(SigningKey("old", NEW.key)) == NOT_ACCEPTED


# -- outages --


def is_down(setting: Setting) -> None:
    setting.failure = ConnectionError("no route to host")


async def test_keys_go_on_working_while_they_cannot_be_fetched(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    is_down(setting)
    await trio.sleep(10 * PAUSE)
    assert setting.shown(OLD) == ALICE
    assert setting.figures.keys == 1
    assert setting.figures.failed == len(setting.fetches) - 1


async def test_a_client_with_an_unknown_key_is_told_to_come_again(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    is_down(setting)
    assert await setting.settled(NEW) is NO_KEYS
    setting.failure = None
    setting.publish(OLD, NEW)
    assert await setting.settled(NEW) == ALICE


async def test_the_back_off_doubles_up_to_its_bound(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    is_down(setting)
    await begin(setting)
    await trio.sleep(400)
    doubled = [FIRST_BACK_OFF * 2**power for power in range(10)]
    expected = [it for it in doubled if it < LONGEST_BACK_OFF]
    assert setting.pauses[: len(expected) + 3] == [*expected, *[LONGEST_BACK_OFF] * 3]


async def test_the_back_off_begins_anew_after_a_success(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD, pause=100)
    is_down(setting)
    await begin(setting)
    await trio.sleep(6.5)  # after 0, 1 and 3 seconds
    setting.failure = None
    await trio.sleep(1)
    is_down(setting)
    await trio.sleep(103)
    assert setting.pauses == [1, 2, 4, 100, 1, 2]


async def test_strangers_shorten_no_back_off_below_the_shortest_pause(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    is_down(setting)
    await begin(setting)
    await trio.sleep(400)
    before = len(setting.fetches)
    for _ in range(20):
        assert await setting.settled(NEW) is NO_KEYS
    assert min(setting.pauses[before:]) >= SHORTEST_PAUSE


async def test_an_outage_is_logged_at_its_beginning_and_at_its_end(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    setting.logged.clear()
    for _ in range(2):
        is_down(setting)
        await trio.sleep(3 * PAUSE)
        assert setting.logged == [
            ("issuer_keys_unavailable", {"issuer": "issuer", "error": "no route to host"})
        ]
        setting.failure = None
        await trio.sleep(PAUSE)
        assert setting.logged[1:] == [
            ("issuer_keys_fetched", {"issuer": "issuer", "keys": ["old"]})
        ]
        setting.logged.clear()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"<html>", "the answer holds no JSON Web Key Set"),
        (b'{"keys": []}', "the answer holds no key that verifies signatures"),
        (b"[" * 100_000, "the answer holds no JSON Web Key Set"),
    ],
    ids=["html", "empty", "nested"],
)
async def test_an_answer_without_keys_is_an_outage(
    begin: Begin, autojump_clock: MockClock, answer: bytes, reason: str
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    setting.published = answer
    await trio.sleep(PAUSE + 1)
    assert setting.logged[1] == ("issuer_keys_unavailable", {"issuer": "issuer", "error": reason})
    assert setting.shown(OLD) == ALICE


async def test_a_waiter_who_gives_up_disturbs_nobody(
    begin: Begin, autojump_clock: MockClock
) -> None:
    setting = Setting(OLD)
    await begin(setting)
    setting.publish(NEW)
    setting.takes = 3
    with trio.move_on_after(1) as scope:
        await setting.settled(NEW)
    assert scope.cancelled_caught
    assert await setting.settled(NEW) == ALICE


def test_adopted_keys_count_at_once() -> None:
    setting = Setting()
    setting.keys.adopt(read_key_set(published(OLD), "the file"))
    assert setting.shown(OLD) == ALICE
    assert setting.figures.keys == 1
