"""A store that answers, is missing, or is slow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.config import model
from gateway.doctor import store
from gateway.doctor.finding import Status
from gateway.doctor.reach import Network
from tests.support.store import HOST, StoreServer, free_port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreServer]:
    server = StoreServer(tmp_path)
    server.start()
    yield server
    server.stop()


def _configured(url: str, **more: object) -> model.Store:
    return model.Store.model_validate({"url": url, **more})


@pytest.mark.tier("test")
async def test_a_store_that_answers_is_ok_and_keeps_no_key(server: StoreServer) -> None:
    configured = _configured(server.url, timeout="5s")
    found = await store.examine(configured, Network())
    assert found.status is Status.OK
    assert found.check == f"store {server.url}"
    assert all(int(server.ask("PTTL", key)[1:]) <= 1000 for key in server.keys("*"))


@pytest.mark.tier("test")
async def test_a_slow_store_is_a_warning(server: StoreServer) -> None:
    configured = _configured(server.url).model_copy(update={"timeout": 1e-9})
    found = await store.examine(configured, Network())
    assert found.status is Status.WARN


async def test_an_unreachable_store_fails() -> None:
    found = await store.examine(_configured(f"redis://{HOST}:{free_port()}"), Network())
    assert found.status is Status.FAIL
    assert found.detail == "cannot be reached: connection refused"
    assert found.remedy


async def test_a_store_with_an_invalid_file_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("\n")
    path = str(tmp_path / "password")
    found = await store.examine(_configured("redis://a", password_file=path), Network())
    assert found.status is Status.FAIL
    assert "is empty" in found.detail
