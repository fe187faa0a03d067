"""What is asked of token endpoints, and what is refused of them."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest
import trio
import trio.testing

from gateway.remote.fetching import LARGEST_ANSWER, TIMEOUT, Fetcher
from tests.support.issuer import (
    CONFIGURATION,
    HOST,
    Answer,
    Issuer,
    endless,
    silent,
    trickling,
    whole,
)

TOKENS = "/token"

SECRET = "s3cret &=%ä"
FORM = {"grant_type": "client_credentials", "client_id": "gateway", "client_secret": SECRET}

GOT = json.dumps({"access_token": "the-token", "expires_in": 60}).encode()


@pytest.fixture
async def issuer(nursery: trio.Nursery) -> Issuer:
    issuer = Issuer()
    await nursery.start(issuer.serve)
    issuer.answers[TOKENS] = whole(GOT)
    issuer.answers[CONFIGURATION] = whole(named(issuer, issuer.url + TOKENS))
    return issuer


def named(issuer: Issuer, endpoint: object, url: object = None) -> bytes:
    """Return an OpenID configuration. `url`: of another issuer."""
    return json.dumps({"issuer": url or issuer.url, "token_endpoint": endpoint}).encode()


def raw(said: bytes) -> Answer:
    async def answer(stream: trio.abc.Stream) -> None:
        await stream.send_all(said)

    return answer


async def refused(issuer: Issuer) -> str:
    """Return why a request fails; its text shows neither the secret nor a token."""
    with pytest.raises(OSError, match=r".+") as caught:
        await Fetcher().token(issuer.url + TOKENS, FORM)
    for hidden in ("s3cret", "client_secret", "the-token"):
        assert hidden not in str(caught.value)
    return str(caught.value)


# -- asking --


async def test_a_form_is_posted_as_a_body_and_never_in_a_url(nursery: trio.Nursery) -> None:
    got = bytearray()

    async def answer(stream: trio.SocketStream) -> None:
        while b"client_secret" not in got:
            got.extend(await stream.receive_some())
        await whole(GOT)(stream)
        await stream.aclose()

    (listener,) = await trio.open_tcp_listeners(0, host=HOST)
    nursery.start_soon(trio.serve_listeners, answer, [listener])
    port = listener.socket.getsockname()[1]
    assert await Fetcher().token(f"http://{HOST}:{port}{TOKENS}", FORM) == GOT
    head, _, body = bytes(got).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /token HTTP/1.1\r\n")
    assert b"content-type: application/x-www-form-urlencoded" in head.lower()
    assert {key: value for key, (value,) in parse_qs(body.decode()).items()} == FORM


async def test_the_endpoint_is_the_one_that_the_issuer_names(issuer: Issuer) -> None:
    assert await Fetcher().issued(issuer.url, FORM) == GOT
    assert issuer.asked == [CONFIGURATION, TOKENS]
    assert issuer.heads[0].startswith(b"GET ")
    assert issuer.heads[1].startswith(b"POST ")


@pytest.mark.parametrize(
    "endpoint",
    ["http://tokens.example/", "http://127.0.0.1@tokens.example/", "/token", "", None, 1, {}],
)
async def test_the_secret_is_sent_elsewhere_only_with_tls(issuer: Issuer, endpoint: object) -> None:
    issuer.answers[CONFIGURATION] = whole(named(issuer, endpoint))
    with pytest.raises(ConnectionError, match="names a token_endpoint that is not secured by TLS"):
        await Fetcher().issued(issuer.url, FORM)
    assert issuer.asked == [CONFIGURATION]


async def test_the_secret_is_not_sent_where_another_issuer_says(issuer: Issuer) -> None:
    issuer.answers[CONFIGURATION] = whole(
        named(issuer, issuer.url + TOKENS, "https://other.example")
    )
    with pytest.raises(ConnectionError, match="is of another issuer"):
        await Fetcher().issued(issuer.url, FORM)
    assert issuer.asked == [CONFIGURATION]


# -- bounds --


@pytest.mark.parametrize("answer", [silent, trickling(GOT)], ids=["silent", "trickling"])
async def test_a_slow_endpoint_is_given_up(
    issuer: Issuer, answer: Answer, autojump_clock: trio.testing.MockClock
) -> None:
    issuer.answers[TOKENS] = answer
    assert await refused(issuer) == "no answer in time"
    with pytest.raises(TimeoutError, match="no answer in time"):
        await Fetcher().issued(issuer.url, FORM)


async def test_discovery_and_the_token_share_one_bound(
    issuer: Issuer, autojump_clock: trio.testing.MockClock
) -> None:
    async def late(stream: trio.abc.Stream) -> None:
        await trio.sleep(TIMEOUT * 0.75)
        await whole(named(issuer, issuer.url + TOKENS))(stream)

    issuer.answers = {CONFIGURATION: late, TOKENS: silent}
    with pytest.raises(TimeoutError):
        await Fetcher().issued(issuer.url, FORM)
    assert trio.current_time() == pytest.approx(TIMEOUT)


@pytest.mark.parametrize(
    "answer", [whole(b" " * (LARGEST_ANSWER + 1)), endless], ids=["large", "endless"]
)
async def test_a_huge_answer_is_refused(issuer: Issuer, answer: Answer) -> None:
    issuer.answers[TOKENS] = answer
    assert f"answered more than {LARGEST_ANSWER} bytes" in await refused(issuer)


# -- wrong answers --


@pytest.mark.parametrize("status", ["400 Bad Request", "401 No", "429 Later", "503 Later"])
async def test_another_status_is_told_without_its_body(issuer: Issuer, status: str) -> None:
    issuer.answers[TOKENS] = whole(json.dumps(FORM).encode(), status)
    assert await refused(issuer) == f"{issuer.url}{TOKENS} answered {status[:3]}"


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_the_secret_follows_no_redirect(issuer: Issuer, status: str) -> None:
    issuer.answers[TOKENS] = whole(b"", status, f"Location: {issuer.url}/elsewhere")
    assert await refused(issuer) == f"{issuer.url}{TOKENS} answered {status[:3]}"
    assert issuer.asked == [TOKENS]


HEAD = b"HTTP/1.1 200 OK\r\n"
NOT_HTTP = {
    "the body alone": GOT + b"\r\n\r\n",
    "the form": b"client_secret=s3cret\r\n\r\n",
    "no header": HEAD + GOT + b"\r\n\r\n",
    "a header's name": HEAD + b"the-token: x\0\r\n\r\n",
    "a length": HEAD + b"Content-Length: the-token\r\n\r\n",
    "an encoding": HEAD + b"Transfer-Encoding: the-token\r\n\r\n",
    "a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + GOT + b"\r\n",
    "a long chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * 30_000,
    "another protocol": b"HTTP/1.1 101 the-token\r\n\r\nthe-token",
    "control characters": b"\x1b[2J\nHTTP/1.1 the-token\r\n\r\n",
    "cut": HEAD + b"Content-Length: 1000\r\n\r\n" + GOT,
    "nothing": b"",
}


@pytest.mark.parametrize("said", NOT_HTTP.values(), ids=NOT_HTTP)
async def test_what_is_not_http_is_not_quoted(issuer: Issuer, said: bytes) -> None:
    issuer.answers[TOKENS] = raw(said)
    text = await refused(issuer)
    assert text.startswith(f"{issuer.url}{TOKENS}: ")
    assert text.isprintable()
    assert len(text) < 200
