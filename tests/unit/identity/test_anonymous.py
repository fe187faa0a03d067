from __future__ import annotations

import pytest

from gateway.config import model
from gateway.identity.anonymous import Anonymous, make_verifier
from gateway.identity.verified import Verified


@pytest.mark.parametrize("data", [b"", b"alice's token", b"\xff" * 1000])
@pytest.mark.parametrize("certificate", [None, b"certificate"])
def test_everybody_is_the_same_principal(data: bytes, certificate: bytes | None) -> None:
    assert Anonymous("nobody").verify(data, 0.0, certificate) == Verified("nobody", None)


def test_the_name_is_configured() -> None:
    assert make_verifier(model.Anonymous(), None).verify(b"", 0.0) == Verified("anonymous", None)
    guest = model.Anonymous(principal="guest")
    assert make_verifier(guest, None).verify(b"", 0.0) == Verified("guest", None)
