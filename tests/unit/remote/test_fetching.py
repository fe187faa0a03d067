"""What is fetched from issuers, and what is refused of their servers."""

from __future__ import annotations

import gzip
import json
import ssl
from pathlib import Path

import pytest
import trio
import trio.testing

from gateway.errors import ConfigurationError
from gateway.remote.fetching import LARGEST_ANSWER, TIMEOUT, Fetcher
from tests.support.certificates import CertificateAuthority, Wanted
from tests.support.issuer import (
    CONFIGURATION,
    HOST,
    KEYS,
    Answer,
    Issuer,
    SigningKey,
    configuration,
    endless,
    published,
    silent,
    trickling,
    whole,
)

KEY = SigningKey("one")


@pytest.fixture
async def issuer(nursery: trio.Nursery) -> Issuer:
    issuer = Issuer(KEY)
    await nursery.start(issuer.serve)
    return issuer


async def test_a_key_set_is_fetched(issuer: Issuer) -> None:
    assert await Fetcher().key_set(issuer.keys_url) == published(KEY)
    assert issuer.asked == [KEYS]


@pytest.mark.parametrize("end", ["", "/"])
async def test_a_key_set_is_discovered(issuer: Issuer, end: str) -> None:
    named = issuer.url + end
    issuer.answers[CONFIGURATION] = whole(configuration(named, issuer.keys_url))
    assert await Fetcher().discovered(named) == published(KEY)
    assert issuer.asked == [CONFIGURATION, KEYS]


# -- bounds --


@pytest.mark.parametrize("path", [KEYS, CONFIGURATION])
@pytest.mark.parametrize("answer", [silent, trickling(published(KEY))], ids=["silent", "trickling"])
async def test_a_slow_issuer_is_given_up(
    issuer: Issuer, path: str, answer: Answer, autojump_clock: trio.testing.MockClock
) -> None:
    issuer.answers[path] = answer
    began = trio.current_time()
    fetch, of = (
        (Fetcher().key_set, issuer.keys_url) if path == KEYS else (Fetcher().discovered, issuer.url)
    )
    with pytest.raises(TimeoutError, match="no answer in time"):
        await fetch(of)
    assert trio.current_time() - began == pytest.approx(TIMEOUT)


async def test_discovery_and_keys_share_one_bound(
    issuer: Issuer, autojump_clock: trio.testing.MockClock
) -> None:
    async def late(stream: trio.abc.Stream) -> None:
        await trio.sleep(TIMEOUT * 0.75)
        await whole(configuration(issuer.url, issuer.keys_url))(stream)

    issuer.answers = {CONFIGURATION: late, KEYS: silent}
    began = trio.current_time()
    with pytest.raises(TimeoutError):
        await Fetcher().discovered(issuer.url)
    assert issuer.asked == [CONFIGURATION, KEYS]
    assert trio.current_time() - began == pytest.approx(TIMEOUT)


async def test_the_largest_answer_is_taken(issuer: Issuer) -> None:
    body = published(KEY).ljust(LARGEST_ANSWER)
    issuer.answers[KEYS] = whole(body)
    assert await Fetcher().key_set(issuer.keys_url) == body


@pytest.mark.parametrize("answer", [whole(b" " * (LARGEST_ANSWER + 1)), endless])
async def test_a_larger_answer_is_refused(issuer: Issuer, answer: Answer) -> None:
    issuer.answers[KEYS] = answer
    with pytest.raises(ConnectionError, match=f"answered more than {LARGEST_ANSWER} bytes"):
        await Fetcher().key_set(issuer.keys_url)


async def test_an_answer_is_not_decompressed(issuer: Issuer) -> None:
    """A small answer could become a very large one."""
    bomb = gzip.compress(b" " * 10_000_000)
    issuer.answers[KEYS] = whole(bomb, "200 OK", "Content-Encoding: gzip")
    assert await Fetcher().key_set(issuer.keys_url) == bomb
    assert b"accept-encoding: identity\r\n" in issuer.heads[0].lower()


async def test_endless_headers_are_refused(issuer: Issuer) -> None:
    async def answer(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\n")
        while True:
            await stream.send_all(b"X: " + b"x" * 10_000 + b"\r\n")

    issuer.answers[KEYS] = answer
    with pytest.raises(ConnectionError, match="/keys: "):
        await Fetcher().key_set(issuer.keys_url)


# -- wrong answers --


@pytest.mark.parametrize(
    "status", ["500 Internal Server Error", "204 No Content", "404 Not Found", "201 Created"]
)
async def test_another_status_is_an_error(issuer: Issuer, status: str) -> None:
    issuer.answers[KEYS] = whole(b"" if status.startswith("204") else published(KEY), status)
    with pytest.raises(ConnectionError, match=f"/keys answered {status[:3]}"):
        await Fetcher().key_set(issuer.keys_url)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_redirects_are_not_followed(issuer: Issuer, status: str) -> None:
    issuer.answers[KEYS] = whole(b"", status, f"Location: {issuer.url}/elsewhere")
    with pytest.raises(ConnectionError, match=f"answered {status[:3]}"):
        await Fetcher().key_set(issuer.keys_url)
    assert issuer.asked == [KEYS]


async def test_a_redirect_to_no_url_is_an_error(issuer: Issuer) -> None:
    issuer.answers[KEYS] = whole(b"", "302 Found", "Location: https://[/")
    with pytest.raises(ConnectionError):
        await Fetcher().key_set(issuer.keys_url)


@pytest.mark.parametrize(
    "said", [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", b"\0" * 9]
)
async def test_what_is_not_http_is_an_error(issuer: Issuer, said: bytes) -> None:
    async def answer(stream: trio.abc.Stream) -> None:
        await stream.send_all(said)

    issuer.answers[KEYS] = answer
    with pytest.raises(ConnectionError):
        await Fetcher().key_set(issuer.keys_url)


async def test_an_issuer_that_is_down_is_an_error(issuer: Issuer) -> None:
    issuer.is_down = True
    with pytest.raises(ConnectionError):
        await Fetcher().key_set(issuer.keys_url)


@pytest.mark.parametrize(
    "content",
    [
        b"<html></html>",
        b"",
        b"[]",
        b"null",
        b'"issuer"',
        b"{}",
        b'{"issuer": "a"}',
        b"\xff",
        b"[" * 100_000,
        b'{"a":' * 40_000,
    ],
    ids=lambda content: content[:20].decode(errors="replace"),
)
async def test_what_is_no_configuration_is_an_error(issuer: Issuer, content: bytes) -> None:
    issuer.answers[CONFIGURATION] = whole(content)
    with pytest.raises(ConnectionError, match="is no configuration of an issuer"):
        await Fetcher().discovered(issuer.url)


@pytest.mark.parametrize("other", ["https://other.example", None, 1, ["{}"], "{}/", "{}#"])
async def test_the_configuration_of_another_issuer_is_refused(
    issuer: Issuer, other: object
) -> None:
    named = other.format(issuer.url) if isinstance(other, str) else other
    issuer.answers[CONFIGURATION] = whole(configuration(named, issuer.keys_url))
    with pytest.raises(ConnectionError, match="is of another issuer"):
        await Fetcher().discovered(issuer.url)
    assert issuer.asked == [CONFIGURATION]


@pytest.mark.parametrize(
    "keys",
    [
        "http://keys.example/keys",
        "http://127.0.0.1.example/",
        "http://127.0.0.1@keys.example/",
        "ftp://127.0.0.1/keys",
        "file:///etc/passwd",
        "/keys",
        "",
        None,
        1,
        ["https://keys.example"],
        "https://\ud800/",
    ],
)
async def test_keys_elsewhere_are_fetched_only_with_tls(issuer: Issuer, keys: object) -> None:
    issuer.answers[CONFIGURATION] = whole(configuration(issuer.url, keys))
    with pytest.raises(ConnectionError, match="names a jwks_uri that is not secured by TLS"):
        await Fetcher().discovered(issuer.url)
    assert issuer.asked == [CONFIGURATION]


@pytest.mark.parametrize(
    "keys",
    [
        "https://a..b/",
        f"https://{'a' * 64}.example/",
        f"http://{HOST}:1/{'a' * 70_000}",
        "https://\u0661.example/",
        "https://xn--a.example/",
        f"http://{HOST}:1/",
    ],
    ids=lambda url: url[:20],
)
async def test_a_url_that_nobody_can_open_is_an_error(issuer: Issuer, keys: str) -> None:
    """An issuer must not be able to end the gateway by what it writes."""
    issuer.answers[CONFIGURATION] = whole(configuration(issuer.url, keys))
    with pytest.raises(OSError, match=r".+"):
        await Fetcher().discovered(issuer.url)


# -- surroundings --


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
async def test_proxies_of_the_environment_are_not_used(
    issuer: Issuer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, f"http://{HOST}:1")
    for other in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(other, raising=False)
    assert await Fetcher().key_set(issuer.keys_url) == published(KEY)


async def test_passwords_of_the_users_files_are_not_sent(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text(f"machine {HOST} login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    await Fetcher().key_set(issuer.keys_url)
    assert b"authorization" not in issuer.heads[0].lower()


# -- TLS --


class Secured:
    """An issuer with TLS, the file of its authority, and another authority's."""

    def __init__(self, folder: Path, host: str = HOST) -> None:
        authority = CertificateAuthority()
        pair = authority.issue(Wanted([host])).written(folder)
        self.authority, self.other = folder / "authority", folder / "other"
        self.authority.write_bytes(authority.certificate)
        self.other.write_bytes(CertificateAuthority().certificate)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.certificate, pair.key)
        self.issuer = Issuer(KEY, tls=context)


async def test_an_issuer_with_its_own_authority_is_verified(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    secured = Secured(tmp_path)
    await nursery.start(secured.issuer.serve)
    fetcher = Fetcher(secured.authority)
    assert await fetcher.key_set(secured.issuer.keys_url) == published(KEY)
    assert await fetcher.discovered(secured.issuer.url) == published(KEY)


@pytest.mark.parametrize("trusted", ["other", "the machine's"])
async def test_an_issuer_of_another_authority_is_refused(
    tmp_path: Path, nursery: trio.Nursery, trusted: str
) -> None:
    secured = Secured(tmp_path)
    await nursery.start(secured.issuer.serve)
    with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        await Fetcher(secured.other if trusted == "other" else None).key_set(
            secured.issuer.keys_url
        )
    assert secured.issuer.asked == []


async def test_an_issuer_of_another_host_is_refused(tmp_path: Path, nursery: trio.Nursery) -> None:
    secured = Secured(tmp_path, "other.example")
    await nursery.start(secured.issuer.serve)
    with pytest.raises(ConnectionError, match="IP address mismatch"):
        await Fetcher(secured.authority).key_set(secured.issuer.keys_url)


@pytest.mark.parametrize("content", [b"", b"nonsense", json.dumps({}).encode()])
def test_a_file_without_authorities_is_explained(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "authority"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="holds no certificate in PEM form"):
        Fetcher(path)
