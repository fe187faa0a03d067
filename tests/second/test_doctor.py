"""The doctor checks brokers of the second protocol by the module that its plugin names."""

from __future__ import annotations

from pathlib import Path

from gateway.config import load
from gateway.doctor import command
from gateway.doctor.finding import Status
from gateway.doctor.reach import Network
from tests.second.broker import brokers

CONFIGURATION = """
version: 1
listeners: [{{name: clients, protocol: memo, bind: "127.0.0.1:0", cluster: main}}]
clusters: {{main: {{brokers: ["memo://{up}", "memo://127.0.0.1:1"]}}}}
"""


async def test_brokers_are_checked_by_the_plugins_checks(tmp_path: Path) -> None:
    async with brokers("a") as served:
        path = tmp_path / "gateway.yaml"
        path.write_text(CONFIGURATION.format(up=served[0].address))
        sections = await command.examine(load.load(path), tmp_path, Network())
    cluster = next(it for it in sections if it.title == "cluster main")
    assert [(row.check, row.status) for row in cluster.findings] == [
        (f"broker {served[0].address}", Status.OK),
        ("broker 127.0.0.1:1", Status.FAIL),
    ]
