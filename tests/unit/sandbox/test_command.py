"""The command: its addresses, and what it says of a start that cannot be."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigurationError
from gateway.sandbox import command
from gateway.sandbox.command import run

ANYWHERE = "127.0.0.1:0"


def failure(**options: Any) -> str:
    """The text of a start that fails."""
    wanted = {"brokers": ANYWHERE, "control": ANYWHERE, "token_secret": None, "proxy_roles": ()}
    with pytest.raises(ConfigurationError) as mistake:
        run(**wanted | options)
    return str(mistake.value)


@pytest.fixture
def taken() -> Any:
    """An address that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("option", ["brokers", "control"])
def test_a_port_in_use_is_named(option: str, taken: str) -> None:
    said = failure(**{option: taken})
    assert said.startswith(f"cannot listen on {taken}: address already in use;")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("127.0.0.1:99999", "is not an address with a port"),
        ("", "has no host"),
        ("a b:1", "has an invalid host"),
        (",".join([ANYWHERE] * 17), "16 are the most"),
    ],
)
def test_addresses_are_checked(text: str, why: str) -> None:
    assert why in failure(brokers=text)


def test_proxy_roles_need_tokens() -> None:
    assert "--token-secret" in failure(proxy_roles=["proxy"])


def test_a_secret_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "none.key" in failure(token_secret=tmp_path / "none.key")


def test_ports_may_be_any() -> None:
    assert [address.port for address in command._addresses("127.0.0.1:0, 127.0.0.2:10")] == [0, 10]
