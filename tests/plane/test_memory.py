"""The counts and bounds of kept bytes."""

from __future__ import annotations

from gateway.plane.memory import CARRY_ROOM, Memory


def test_the_buffer_has_room_for_carried_bytes() -> None:
    memory = Memory(1000, 10)
    assert memory.size == 1000
    assert len(memory.buffer) == len(memory.view) == 1000 + CARRY_ROOM


def test_memory_is_full_above_its_bound() -> None:
    memory = Memory(1000, 10)
    memory.used = 10
    assert not memory.full
    memory.used = 11
    assert memory.full
