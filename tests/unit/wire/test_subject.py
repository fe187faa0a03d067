"""Subjects: a client and its topic."""

from __future__ import annotations

from gateway.wire.subject import Caller, Subject
from tests.support.subjects import topic_of

CALLER = Caller(
    protocol="pulsar",
    listener="clients",
    cluster="main",
    connection=7,
    host="::1",
    principal="alice",
    library="Pulsar-CPP-v4.2.0",
    method="token",
    client_id="billing",
)


def test_a_subject_has_all_values_of_its_caller() -> None:
    subject = Subject(CALLER)
    for name, value in CALLER._asdict().items():
        assert value is not None
        assert getattr(subject, name) == value


def test_subjects_of_one_client_share_its_caller() -> None:
    subject = Subject(CALLER)
    first, second = subject.about(topic_of("a")), subject.about(topic_of("b"), "s")
    assert first.caller is second.caller is CALLER
    assert (first.topic, first.subscription) == (topic_of("a"), None)
    assert (second.topic, second.subscription) == (topic_of("b"), "s")
    assert first != second
