"""Mistakes in the settings of the store, and in the files that they name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateway.config import model
from gateway.errors import ConfigurationError
from gateway.fleet.stores import store_of
from tests.unit.errors.case import Case, config
from tests.unit.errors.starts import Fail, Start

_URL = "redis://host:port, rediss://host:port with TLS, or unix:///path"


def store(url: str = "redis://store.example", rest: str = "") -> str:
    """Return a configuration file with a store."""
    return config(rest=f'store: {{url: "{url}"{rest}}}')


def _case(name: str, text: str, place: str, message: str, **files: bytes) -> Case:
    return Case(name, text, f"gateway.yaml:4: store.{place}: {message}", files)


CASES = [
    _case(
        "a store of another kind",
        store("http://a"),
        "url",
        f"has a scheme that is not known; {_URL}",
    ),
    _case("a store that is not a URL", store("redis://[::1"), "url", f"is not a URL; {_URL}"),
    _case(
        "a store with a password in the URL",
        store("redis://:secret@a"),
        "url",
        "contains a user or password; use `username` and `password_file`",
    ),
    _case(
        "a store with options",
        store("redis://a?timeout=1"),
        "url",
        f"has options, which are not supported; {_URL}",
    ),
    _case("a store without a host", store("redis:///0"), "url", f"has no host, or port 0; {_URL}"),
    _case(
        "a store with an invalid port",
        store("redis://a:70000"),
        "url",
        f"is not an address with a port; {_URL}",
    ),
    _case(
        "a store with an invalid host",
        store("redis://a_$"),
        "url",
        f"has an invalid host; {_URL}",
    ),
    _case(
        "a store with an invalid database",
        store("redis://a/main"),
        "url",
        "has a path that is not a database number; redis://host:port/0",
    ),
    _case(
        "a store with a socket without path",
        store("unix://run"),
        "url",
        "has no absolute path; unix:///run/valkey/valkey.sock",
    ),
    _case(
        "a store with an invalid prefix",
        store(rest=', prefix: "a {b}"'),
        "prefix",
        "is not a prefix; letters, digits, and . _ : / - , 64 at most",
    ),
    _case(
        "a store with a user without password",
        store(rest=", username: gateway"),
        "password_file",
        "is missing; a user needs a password",
    ),
    _case(
        "a store with authorities without TLS",
        store(rest=", ca_file: ca"),
        "ca_file",
        "has no effect: the URL of the store has no TLS; rediss://host:port, or leave it out",
        ca=b"-",
    ),
]


# -- what a start finds --------------------------------------------------------------------------


def _opened(name: str, content: bytes) -> Fail:
    """Return the message about a file of the store, with a neutral path."""

    def fail(_: pytest.MonkeyPatch) -> str:
        path = Path(name)
        if content:
            path.write_bytes(content)
        elif name != "gone":
            path.touch()
        key = "ca_file" if name == "ca" else "password_file"
        return _refused({"url": "rediss://store.example", key: name})

    return fail


def _without_the_package(monkeypatch: pytest.MonkeyPatch) -> str:
    for name in [name for name in sys.modules if name.startswith(("coredis", "gateway.fleet."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "coredis", None)
    return _refused({"url": "redis://store.example"})


def _refused(configured: dict[str, str]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        store_of(model.Store.model_validate(configured))
    return str(caught.value)


STARTS = [
    Start(
        "a store without its package",
        _without_the_package,
        "The store needs the package coredis, which is not installed. Install it with: "
        "pip install 'broker-gateway[valkey]'",
    ),
    Start(
        "a missing password file",
        _opened("gone", b""),
        "The password file gone of the store cannot be read: No such file or directory",
    ),
    Start(
        "an empty password file",
        _opened("password", b"\n"),
        "The password file password of the store is empty. It must hold the password, and "
        "nothing else",
    ),
    Start(
        "a password file that is too large",
        _opened("password", b"a" * 5000),
        "The password file password of the store is larger than 4096 bytes. It must hold the "
        "password, and nothing else",
    ),
    Start(
        "a password file that is not UTF-8",
        _opened("password", b"\xff"),
        "The password file password of the store is not UTF-8 text. It must hold the password",
    ),
    Start(
        "an invalid file of authorities",
        _opened("ca", b"-"),
        "The file ca of the store's authorities holds no certificate in PEM form. It must hold "
        "those that signed the store's own",
    ),
]
