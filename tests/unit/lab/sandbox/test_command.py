"""The command: its addresses, and its errors."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigurationError
from gateway.lab.process import addresses
from gateway.lab.sandbox.command import run

ANYWHERE = "127.0.0.1:0"


def failure(**options: Any) -> str:
    """Return the text of a failing start."""
    wanted = {"brokers": ANYWHERE, "control": ANYWHERE, "token_secret": None, "proxy_roles": ()}
    with pytest.raises(ConfigurationError) as mistake:
        run(**wanted | options)
    return str(mistake.value)


@pytest.fixture
def taken() -> Any:
    """Return an address in use."""
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


def test_a_missing_secret_file_is_named(tmp_path: Path) -> None:
    assert "none.key" in failure(token_secret=tmp_path / "none.key")


def test_port_0_is_any_port() -> None:
    found = addresses("127.0.0.1:0, 127.0.0.2:10", "pulsar", 6650)
    assert [address.port for address in found] == [0, 10]
