"""Admits clients without a credential, all under one principal."""

from __future__ import annotations

from gateway.config import model
from gateway.identity.verified import Verified


def make_verifier(settings: model.Anonymous, _needs: object) -> Anonymous:
    """Return the verifier for these settings."""
    return Anonymous(settings.principal)


class Anonymous:
    """Accepts every client without a credential. All clients have the same principal, `name`."""

    def __init__(self, name: str) -> None:
        self._proof = Verified(name, None)

    def verify(self, _data: bytes, _now_wall: float, _certificate: bytes | None = None) -> Verified:
        """Return the principal, whatever credential the client presents."""
        return self._proof
