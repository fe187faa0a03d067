"""Connection quotas: the most connections of each address and each principal on one listener."""

from __future__ import annotations

from collections import Counter

from gateway.wire.contract import Denial, Refusal
from gateway.wire.holder import holder

ADDRESS_FULL = Denial(Refusal.TOO_MANY, "this address has as many connections as it may have")
PRINCIPAL_FULL = Denial(Refusal.TOO_MANY, "this principal has as many connections as it may have")


class Slots:
    """The connection quotas of one listener. `of_address`, `of_principal`: the most connections of
    each address and of each principal; None: no quota."""

    def __init__(self, of_address: int | None = None, of_principal: int | None = None) -> None:
        self._of_address = of_address
        self._of_principal = of_principal
        self._addresses = Counter[str]()
        self._principals = Counter[str]()

    def take(self, host: str, principal: str | None) -> Slot | Denial:
        """Return a slot for the connection of an authenticated client; a denial if a quota is used
        up. `host`: the client's address."""
        address = holder(host)
        if self._of_address is not None and self._addresses[address] >= self._of_address:
            return ADDRESS_FULL
        bound = None if principal is None else self._of_principal
        if bound is not None and self._principals[principal or ""] >= bound:
            return PRINCIPAL_FULL
        self._addresses[address] += 1
        if principal is not None:
            self._principals[principal] += 1
        return Slot(self, address, principal)

    def leave(self, address: str, principal: str | None) -> None:
        """Give back the slot of a connection that had this address and this principal."""
        _decrease(self._addresses, address)
        if principal is not None:
            _decrease(self._principals, principal)


def _decrease(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


class Slot:
    """The slot of one connection in the quotas of its address and its principal."""

    __slots__ = ("_address", "_principal", "_slots")

    def __init__(self, slots: Slots, address: str, principal: str | None) -> None:
        self._slots: Slots | None = slots
        self._address = address
        self._principal = principal

    def leave(self) -> None:
        """Give the slot back; a second call does nothing."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.leave(self._address, self._principal)
