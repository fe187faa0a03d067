"""A separate sandbox for each module, since its tests cause faults."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.peer import Peer
from tests.support.sandbox import Sandbox


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Yield a sandbox for faults."""
    sandbox = Sandbox(tmp_path_factory.mktemp("sandbox"))
    sandbox.start()
    yield sandbox
    sandbox.stop()


@pytest.fixture
def peer(broken: Sandbox) -> Iterator[Peer]:
    """Yield a connection to its first broker."""
    with Peer.of(broken, 0) as peer:
        peer.connect()
        yield peer


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a secret that signs tokens."""
    path = tmp_path_factory.mktemp("secret") / "token.key"
    path.write_bytes(secrets.token_bytes(32))
    return path


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, secret: Path) -> Iterator[Sandbox]:
    """Yield a sandbox that requires tokens, with the proxy role `proxy`."""
    options = ["--token-secret", str(secret), "--proxy-role", "proxy"]
    sandbox = Sandbox(tmp_path_factory.mktemp("guarded"), *options)
    sandbox.start()
    yield sandbox
    sandbox.stop()
