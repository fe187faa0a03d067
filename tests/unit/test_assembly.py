"""The settings that the data plane gets from the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import assembly
from gateway.config.load import build
from gateway.config.model import Configuration
from gateway.plane.state import PlaneSettings

MIB = 1 << 20


def configured(**limits: str) -> Configuration:
    """Return a configuration with these limits."""
    data = {
        "version": 1,
        "listeners": [{"name": "clients", "bind": "127.0.0.1:0", "cluster": "main"}],
        "clusters": {"main": {"brokers": "pulsar://127.0.0.1:1"}},
        "deadlines": {"frame": "7s"},
        "limits": limits,
    }
    configuration, mistakes = build(data, Path())
    assert configuration is not None, mistakes
    return configuration


def settings(**limits: str) -> PlaneSettings:
    """Return the settings of the data plane with these limits."""
    return assembly.plane_settings(configured(**limits))


def test_memory_is_divided_by_default_as_documented() -> None:
    found = settings()
    assert (found.collected, found.opening) == (32 * MIB, 16 * MIB)
    assert found.memory == (256 - 32 - 16 - 12) * MIB
    assert found.held == 64 * MIB
    assert found.frame == 7.0


@pytest.mark.parametrize("buffered", ["24MiB", "32MiB", "1GiB"])
def test_the_parts_and_room_for_deciding_add_up_to_the_whole(buffered: str) -> None:
    found = settings(buffered=buffered)
    assert found.collected is not None
    assert found.opening is not None
    assert found.held is not None
    deciding = 2 * 6 * MIB
    whole = int(buffered[:-3]) * (1024 if buffered.endswith("GiB") else 1) * MIB
    assert found.memory + found.collected + found.opening + deciding == whole
    assert found.collected >= 6 * MIB
    assert found.held <= found.memory * 3 // 4
    assert found.memory >= whole // 8


def test_one_frame_has_no_more_room_than_all_frames_together() -> None:
    found = assembly.frame_bounds(configured(collected="10MiB", collected_frame="1MiB").limits)
    assert (found.collected_from(5 * MIB), found.collected_from(100 * MIB)) == (5 * MIB, 10 * MIB)
    assert found.collected_from(0) == MIB


def test_the_parts_are_configurable() -> None:
    found = settings(collected="10MiB", handshakes="1MiB", held="2MiB", collected_frame="1MiB")
    assert (found.collected, found.opening, found.held) == (10 * MIB, MIB, 2 * MIB)
    assert found.memory == (256 - 10 - 1 - 5) * MIB  # room to decide a frame and four commands


def test_sessions_may_keep_twice_the_buffered_bytes_unless_configured() -> None:
    assert configured().limits.all_remembered == 512 * MIB
    assert configured(buffered="32MiB").limits.all_remembered == 64 * MIB
    assert configured(remembered="5MiB").limits.all_remembered == 5 * MIB
