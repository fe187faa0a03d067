"""Messages above all that a gateway may hold of frames, and what shows that it holds none."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.memory import grows_by_less_than

from .gateways import Gateway
from .metrics import scrape, settled_total, total

SIZES = (34_000_000, 50_000_000, 100_000_000)
"""Bytes of messages. The smallest is above the default of `limits.collected`, 32 MiB."""

MOST = 110_000_000
"""Bytes of the largest message of a broker that accepts all of `SIZES`, and of its frame."""

GROWTH = 16_000_000
"""Bytes of memory that a gateway never takes for a message, beyond what a first, small message has
made it take. A copy of the smallest message is twice as much, and what waits in the gateway for one
peer, at most some reads of 512 KiB, is far less."""

BESIDE = 200
"""More bytes than a frame, or a batch, of one message has beside the payload."""

WIDE = """
version: 1
rules:
  - {id: wide, limit: {publish: {bytes: 20GB/s}, dispatch: {bytes: 20GB/s}}, per: topic}
"""


def content(size: int) -> bytes:
    """Return a payload."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def wide_rules(folder: Path) -> Path:
    """Return a file of rules with a limit that nothing reaches: accounts are charged, and frames
    may have to wait for a lease."""
    path = folder / "rules.yaml"
    path.write_text(WIDE)
    return path


def holding_nothing(gateway: Gateway) -> AbstractContextManager[None]:
    """Check that within the block the gateway holds no message of `SIZES`."""
    return grows_by_less_than(GROWTH, gateway.process)


def assert_passed_once(gateway: Gateway, topic: str, size: int) -> None:
    """Assert that of a topic one message with a payload of `size` bytes was counted each way."""
    for direction in ("to_broker", "to_client"):
        labels = {"topic": topic, "direction": direction}
        count = settled_total(gateway.metrics_url, 1, "gateway_topic_messages_total", **labels)
        assert count == 1, direction
        counted = total(scrape(gateway.metrics_url), "gateway_topic_bytes_total", **labels)
        assert size < counted < size + BESIDE, direction
