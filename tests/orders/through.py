"""What a client can notice of a gateway in the scripts: answers that differ from a broker's.

Each difference is intended, and documented in docs/protocols/pulsar.md.
"""

from __future__ import annotations

NOT_OPEN = "a SEND of a producer that is not open is dropped, and does not end the connection"
IN_USE = "an id stays with its topic and its subscription as long as it is in use"
SAYS_WHY = "where the gateway ends a connection it says why first"
GIVEN_UP = "what was closed while it was opened is not open, though 4.2.4 may open it after all"

ALWAYS = {
    "SEND in one write with PRODUCER": NOT_OPEN,
    "SEND of nobody": NOT_OPEN,
    "SEND behind CLOSE_PRODUCER in one write": NOT_OPEN,
    "SEND behind the answer to CLOSE_PRODUCER": NOT_OPEN,
    "a producer that waits sends": NOT_OPEN,
    "PRODUCER for a topic that was terminated": NOT_OPEN,
    "one id of a consumer for another topic": IN_USE,
    "one id of a producer for another topic": IN_USE,
    "one id for another subscription": IN_USE,
    "permits do not pass to another topic": IN_USE,
    "a FLOW beyond 2^31 ends the connection": SAYS_WHY,
}

SOMETIMES = {"PRODUCER, CLOSE_PRODUCER and PRODUCER in one write": GIVEN_UP}
"""Depends on the broker."""
