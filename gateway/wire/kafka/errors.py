"""Error codes of the protocol that the gateway itself sends to clients.

Source: the protocol guide of Apache Kafka, "Error Codes".
"""

from __future__ import annotations

from enum import IntEnum

from gateway.wire.contract import Refusal


class ErrorCode(IntEnum):
    """The error code of a topic, of a partition, or of a whole response."""

    NONE = 0
    UNKNOWN_TOPIC = 3
    LEADER_NOT_AVAILABLE = 5  # clients ask for metadata, and try again
    NOT_LEADER = 6  # the same, where brokers say it of a partition; consumers know no 5 there
    COORDINATOR_LOADING = 14  # clients try again
    INVALID_TOPIC = 17
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    POLICY_VIOLATION = 44
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    FETCH_SESSION_ID_NOT_FOUND = 70  # clients name their topics again
    THROTTLING_QUOTA_EXCEEDED = 89  # clients try again
    UNKNOWN_TOPIC_ID = 100  # clients ask for metadata, and try again
    SHARE_SESSION_NOT_FOUND = 122  # clients begin one again
    REBOOTSTRAP_REQUIRED = 129


_OF_TOPICS = {
    Refusal.UNAUTHORIZED: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Refusal.FULL: ErrorCode.POLICY_VIOLATION,
    Refusal.TOO_MANY: ErrorCode.POLICY_VIOLATION,
    Refusal.NAME: ErrorCode.INVALID_TOPIC,
}


def of_topic(refusal: Refusal, default: ErrorCode = ErrorCode.LEADER_NOT_AVAILABLE) -> ErrorCode:
    """Return the error code that a client receives for a refused topic. `default`: the code for
    refusals without a code of their own. After `LEADER_NOT_AVAILABLE` clients retry."""
    return _OF_TOPICS.get(refusal, default)
