"""What is found in events of gateways; see `abuse`."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What was found."""

    SPRAYING = "spraying"
    GUESSING = "guessing"
    GUESSED = "guessed"
    SHARED_CREDENTIAL = "shared_credential"
    EXPIRED_STORM = "expired_storm"


MISTAKES = (Kind.EXPIRED_STORM,)
"""Kinds that are no attack."""
