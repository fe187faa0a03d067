"""Subjects for tests that care for little of them."""

from __future__ import annotations

from gateway.wire.pulsar.topics import named
from gateway.wire.subject import Subject, TopicName


def subject_of(topic: str, subscription: str | None = None) -> Subject:
    """Return a client with this topic, whatever its name is."""
    return Subject().about(named(topic) or TopicName("", "", topic), subscription)
