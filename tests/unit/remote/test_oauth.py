"""The gateway's own token by client credentials: renewed in time, whatever its issuer does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import trio
import trio.testing

from gateway.errors import ConfigurationError
from gateway.identity.credential import LARGEST_TOKEN
from gateway.remote.oauth import (
    FIRST_BACK_OFF,
    LONGEST_BACK_OFF,
    NO_TOKEN,
    RENEWED_AT,
    SHORTEST_PAUSE,
    USUAL_LIFETIME,
    ClientCredentials,
)
from gateway.wire.contract import Credential

Clock = trio.testing.MockClock

SECRET = "the client's secret: ä&=%"
TOKEN = "header.payload.signature"
EPOCH = 1_700_000_000.0
"""The wall clock's time when trio's clock begins."""


@pytest.fixture
def autojump_clock() -> Clock:
    return Clock(autojump_threshold=0)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n", encoding="utf-8")
    return path


def replaced(path: Path, content: bytes | None) -> None:
    """Write a file anew; None: remove it."""
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)


def said(token: object = TOKEN, expires_in: object = 100, **more: object) -> bytes:
    """Return an issuer's answer."""
    return json.dumps({"access_token": token, "expires_in": expires_in} | more).encode()


class FakeIssuer:
    """Answers forms. `answer`: what it says, or how it fails. `seconds`: how long it takes."""

    def __init__(self) -> None:
        self.answer: bytes | Exception = said()
        self.seconds = 0.0
        self.forms: list[dict[str, str]] = []
        self.times: list[float] = []
        self.under_way = self.most_under_way = 0

    async def ask(self, form: dict[str, str]) -> bytes:
        self.forms.append(form)
        self.times.append(trio.current_time())
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await trio.sleep(self.seconds)
        finally:
            self.under_way -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    @property
    def pauses(self) -> list[float]:
        """Return the seconds between requests."""
        return [after - before for before, after in pairwise(self.times)]


class Trial:
    """Credentials of an issuer, by trio's clock. `logged`: events and their values."""

    def __init__(self, secret: Path, **settings: str) -> None:
        self.issuer = FakeIssuer()
        self.logged: list[tuple[str, dict[str, object]]] = []
        self.own = ClientCredentials(
            self.issuer.ask,
            "gateway",
            secret,
            log=lambda event, **values: self.logged.append((event, values)),
            clock=trio.current_time,
            wall_clock=lambda: EPOCH + trio.current_time(),
            **settings,
        )

    def token(self) -> str | None:
        """Return the token that is in force; None: there is none."""
        found = self.own.current()
        if not isinstance(found, Credential):
            assert found == NO_TOKEN
            return None
        assert found.method == "token"
        return found.data.decode()

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.logged]


@asynccontextmanager
async def running(trial: Trial) -> AsyncIterator[None]:
    """Keep the token fresh meanwhile."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trial.own.run)
        await trio.testing.wait_all_tasks_blocked()
        yield
        nursery.cancel_scope.cancel()


# -- asking --


async def test_there_is_no_token_before_the_issuer_has_answered(
    secret: Path, autojump_clock: Clock
) -> None:
    trial = Trial(secret)
    assert trial.token() is None
    trial.issuer.seconds = 3.0
    async with running(trial):
        await trio.sleep(2.9)
        assert trial.token() is None
        await trio.sleep(0.2)
        assert trial.token() == TOKEN
        assert trial.logged == []


@pytest.mark.parametrize(
    "more", [{}, {"scope": "a b"}, {"audience": "urn:brokers"}, {"scope": "a", "audience": "b"}]
)
async def test_the_form_has_what_the_configuration_names_and_the_secret(
    secret: Path, autojump_clock: Clock, more: dict[str, str]
) -> None:
    trial = Trial(secret, **more)
    async with running(trial):
        usual = {"grant_type": "client_credentials", "client_id": "gateway"}
        assert trial.issuer.forms == [usual | {"client_secret": SECRET} | more]


async def test_a_new_secret_is_used_for_the_next_request(
    secret: Path, autojump_clock: Clock
) -> None:
    trial = Trial(secret)
    async with running(trial):
        replaced(secret, b"newer")
        await trio.sleep(71)
        assert [form["client_secret"] for form in trial.issuer.forms] == [SECRET, "newer"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "must hold 1 to 16384 bytes"),
        (b" \r\n", "must hold 1 to 16384 bytes"),
        (b"x" * (LARGEST_TOKEN + 1), "must hold 1 to 16384 bytes"),
        (b"secret\xff", "is not UTF-8"),
        (None, "cannot be read: No such file or directory"),
    ],
    ids=["empty", "blank", "large", "binary", "missing"],
)
async def test_a_bad_secret_is_explained_at_the_start(
    tmp_path: Path, content: bytes | None, text: str
) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=text) as caught:
        Trial(path)
    assert str(caught.value).startswith(f"The client secret file {path}")
    assert "secret\xff" not in str(caught.value)
    assert "0xff" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"", b"secret\xff"], ids=["missing", "empty", "binary"])
async def test_a_secret_that_goes_bad_ends_neither_the_token_nor_the_gateway(
    secret: Path, autojump_clock: Clock, content: bytes | None
) -> None:
    """As while somebody replaces the file."""
    trial = Trial(secret)
    async with running(trial):
        replaced(secret, content)
        await trio.sleep(75)
        assert trial.token() == TOKEN
        ((event, values),) = trial.logged
        assert event == "own_token_unavailable"
        assert "0xff" not in str(values)
        await trio.sleep(50)
        assert trial.token() is None
        replaced(secret, b"newer")
        await trio.sleep(LONGEST_BACK_OFF)
        assert trial.token() == TOKEN
        assert trial.events == ["own_token_unavailable", "own_token_back"]


# -- renewal --


@pytest.mark.parametrize("lifetime", [10.0, 100.0, 3600.0, 86_400.0])
async def test_a_token_is_renewed_while_a_part_of_its_life_is_left(
    secret: Path, autojump_clock: Clock, lifetime: float
) -> None:
    trial = Trial(secret)
    trial.issuer.answer = said("first", lifetime)
    async with running(trial):
        trial.issuer.answer = said("second", lifetime)
        await trio.sleep(RENEWED_AT * lifetime - 0.001)
        assert trial.token() == "first"
        await trio.sleep(0.002)
        assert trial.token() == "second"
    assert len(trial.issuer.forms) == 2


@pytest.mark.parametrize("seconds", [0.0, 1.0, 3.9])
@pytest.mark.parametrize("lifetime", [14.0, 60.0])
async def test_there_is_a_token_at_every_moment_even_of_a_slow_issuer(
    secret: Path, autojump_clock: Clock, lifetime: float, seconds: float
) -> None:
    trial = Trial(secret)
    trial.issuer.answer, trial.issuer.seconds = said(expires_in=lifetime), seconds
    async with running(trial):
        await trio.sleep(seconds + 0.001)
        for _ in range(200):
            assert trial.token() == TOKEN
            await trio.sleep(0.5)


async def test_a_token_lives_from_the_request_and_not_from_the_answer(
    secret: Path, autojump_clock: Clock
) -> None:
    """The issuer may have made it at once, and its answer took long."""
    trial = Trial(secret)
    trial.issuer.answer, trial.issuer.seconds = said(expires_in=10), 3.0
    async with running(trial):
        await trio.sleep(3.1)
        found = trial.own.current()
        assert isinstance(found, Credential)
        assert found.expires_at == pytest.approx(EPOCH + 10)
        await trio.sleep(3.95)
        assert trial.issuer.times == [0.0, pytest.approx(7.0)]


async def test_one_request_is_under_way_however_many_want_the_token(
    secret: Path, autojump_clock: Clock
) -> None:
    trial = Trial(secret)
    trial.issuer.seconds = 4.0
    trial.issuer.answer = said(expires_in=1)
    async with running(trial):
        for _ in range(1000):
            trial.token()
            await trio.sleep(0.02)
        assert trial.issuer.most_under_way == 1
        assert len(trial.issuer.forms) <= 5


@pytest.mark.parametrize("lifetime", [1e-300, 0.001, 0.5, 1])
async def test_short_lived_tokens_cause_no_flood_of_requests(
    secret: Path, autojump_clock: Clock, lifetime: float
) -> None:
    trial = Trial(secret)
    trial.issuer.answer = said(expires_in=lifetime)
    async with running(trial):
        await trio.sleep(100)
        assert len(trial.issuer.forms) <= 101 / SHORTEST_PAUSE


async def test_a_token_is_shown_for_no_moment_longer_than_it_is_valid(
    secret: Path, autojump_clock: Clock
) -> None:
    trial = Trial(secret)
    async with running(trial):
        trial.issuer.answer = ConnectionError("down")
        await trio.sleep(99.999)
        assert trial.token() == TOKEN
        await trio.sleep(0.001)
        assert trial.token() is None


async def test_a_newer_token_is_another_credential(secret: Path, autojump_clock: Clock) -> None:
    """By this clients are moved, and aliases change."""
    trial = Trial(secret)
    async with running(trial):
        before = trial.own.current()
        assert trial.own.current() is before
        await trio.sleep(71)
        assert trial.own.current() is not before


# -- failures --


async def test_failures_back_off_up_to_the_longest_and_are_logged_once(
    secret: Path, autojump_clock: Clock
) -> None:
    trial = Trial(secret)
    trial.issuer.answer = ConnectionError("https://issuer.example/token answered 503")
    async with running(trial):
        await trio.sleep(300)
        assert trial.issuer.pauses[:7] == [1, 2, 4, 8, 16, LONGEST_BACK_OFF, LONGEST_BACK_OFF]
        text = "https://issuer.example/token answered 503"
        assert trial.logged == [("own_token_unavailable", {"error": text})]
        trial.issuer.answer = said()
        await trio.sleep(LONGEST_BACK_OFF)
        assert trial.token() == TOKEN
        assert trial.events == ["own_token_unavailable", "own_token_back"]


async def test_the_back_off_begins_anew_after_a_success(
    secret: Path, autojump_clock: Clock
) -> None:
    trial = Trial(secret)
    trial.issuer.answer = TimeoutError("no answer in time")
    async with running(trial):
        await trio.sleep(100)
        trial.issuer.answer = said()
        await trio.sleep(LONGEST_BACK_OFF)
        trial.issuer.answer = TimeoutError("no answer in time")
        before = len(trial.issuer.forms)
        await trio.sleep(80)
        assert trial.issuer.pauses[before] == FIRST_BACK_OFF
        assert trial.events == [
            "own_token_unavailable",
            "own_token_back",
            "own_token_unavailable",
        ]


async def test_the_last_token_stays_in_use_while_the_issuer_is_down(
    secret: Path, autojump_clock: Clock
) -> None:
    trial = Trial(secret)
    async with running(trial):
        trial.issuer.answer = ConnectionError("down")
        await trio.sleep(95)
        assert len(trial.issuer.forms) > 3
        assert trial.token() == TOKEN


# -- answers --


@pytest.mark.parametrize(
    ("answer", "lifetime"),
    [
        (json.dumps({"access_token": TOKEN}).encode(), USUAL_LIFETIME),
        (said(expires_in=None), USUAL_LIFETIME),
        (said(expires_in="60"), 60),
        (said(expires_in=60.5), 60.5),
        (said(expires_in=1e300), 1e300),
        (said(expires_in=10**18), 1e18),
        (said(token_type="Bearer", refresh_token="x", more={"a": [1]}), 100),
        (said().decode().encode("utf-16"), 100),
    ],
    ids=[
        "no lifetime",
        "null",
        "text",
        "fraction",
        "endless",
        "very long",
        "more fields",
        "UTF-16",
    ],
)
async def test_an_answer_gives_the_token_and_its_lifetime(
    secret: Path, autojump_clock: Clock, answer: bytes, lifetime: float
) -> None:
    trial = Trial(secret)
    trial.issuer.answer = answer
    async with running(trial):
        found = trial.own.current()
        assert isinstance(found, Credential)
        assert (found.method, found.data) == ("token", TOKEN.encode())
        assert found.expires_at == pytest.approx(EPOCH + lifetime)
        await trio.sleep(min(RENEWED_AT * lifetime, 80_000) / 2)
        assert len(trial.issuer.forms) == 1


WITHOUT_TOKEN = {
    "nothing": b"",
    "no JSON": b"<html>" + TOKEN.encode(),
    "a list": b"[]",
    "a text": json.dumps(TOKEN).encode(),
    "null": b"null",
    "a number": b"1",
    "empty": b"{}",
    "an error": b'{"error": "invalid_client"}',
    "no bytes of a text": b'{"access_token": "\xff"}',
    "half of a surrogate pair": b'{"access_token": "\\ud800"}',
    "deep": b"[" * 200_000,
    "token of null": said(None),
    "token of a number": said(1),
    "token of a list": said([TOKEN]),
    "token of an object": said({"encode": TOKEN}),
    "empty token": said(""),
    "large token": said("x" * (LARGEST_TOKEN + 1)),
    "lifetime of nonsense": said(expires_in=TOKEN),
    "lifetime of a list": said(expires_in=[60]),
    "lifetime of 0": said(expires_in=0),
    "negative lifetime": said(expires_in=-1),
    "negative text": said(expires_in="-60"),
    "NaN": said(expires_in=float("nan")),
    "infinity": said(expires_in=float("inf")),
    "text of NaN": said(expires_in="nan"),
    "beyond a float": b'{"access_token": "%s", "expires_in": 1e999}' % TOKEN.encode(),
    "a huge number": b'{"access_token": "%s", "expires_in": 1%s}' % (TOKEN.encode(), b"0" * 400),
    "more digits": b'{"access_token": "%s", "expires_in": 1%s}' % (TOKEN.encode(), b"0" * 9999),
}


@pytest.mark.parametrize("answer", WITHOUT_TOKEN.values(), ids=WITHOUT_TOKEN)
async def test_nonsense_is_no_token_and_ends_nothing(
    secret: Path, autojump_clock: Clock, answer: bytes
) -> None:
    trial = Trial(secret)
    trial.issuer.answer = answer
    async with running(trial):
        await trio.sleep(10)
        assert trial.token() is None
        assert trial.events == ["own_token_unavailable"]
        assert len(trial.issuer.forms) == 4, "it backs off"
        trial.issuer.answer = said("good")
        await trio.sleep(10)
        assert trial.token() == "good"


@pytest.mark.parametrize("answer", WITHOUT_TOKEN.values(), ids=WITHOUT_TOKEN)
async def test_neither_the_secret_nor_an_answer_is_logged(
    secret: Path, autojump_clock: Clock, answer: bytes
) -> None:
    trial = Trial(secret)
    trial.issuer.answer = answer
    async with running(trial):
        await trio.sleep(5)
    written = repr(trial.logged)
    for it in (SECRET, "client's secret", TOKEN, "signature", "invalid_client", "html", "xxxx"):
        assert it not in written


@pytest.mark.parametrize("answer", WITHOUT_TOKEN.values(), ids=WITHOUT_TOKEN)
async def test_nonsense_in_place_of_a_newer_token_leaves_the_last_one(
    secret: Path, autojump_clock: Clock, answer: bytes
) -> None:
    trial = Trial(secret)
    async with running(trial):
        trial.issuer.answer = answer
        await trio.sleep(90)
        assert trial.token() == TOKEN


async def test_a_token_of_the_largest_size_is_taken_as_it_is(
    secret: Path, autojump_clock: Clock
) -> None:
    trial = Trial(secret)
    trial.issuer.answer = said("x" * LARGEST_TOKEN)
    async with running(trial):
        assert trial.token() == "x" * LARGEST_TOKEN
