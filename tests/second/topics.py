"""Topics of `memo`: `tenant/namespace/topic`, or `topic` alone."""

from __future__ import annotations

import re

from gateway.wire.subject import TopicName

_PART = re.compile(r"[\w.-]+", re.ASCII)


def read_topic(topic: str) -> TopicName | None:
    """Return the parts of a topic's name; None: the text is not a name."""
    parts = topic.split("/") if "/" in topic else ["public", "default", topic]
    if len(parts) != 3 or not all(map(_PART.fullmatch, parts)):
        return None
    return TopicName(parts[0], "/".join(parts[:2]), "/".join(parts))
