"""Who a client is: its token, and the rules for roles that speak for others.

They are those of a broker with authentication and `proxyRoles` (seen on Pulsar 4.2.4). What a role
may do is not asked: here everybody may do everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.sandbox.answers import Refusal
from gateway.wire.contract import Denial
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError

if TYPE_CHECKING:
    from collections.abc import Collection

    from gateway.identity.token import TokenVerifier
    from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandConnect

METHOD = "token"


class Who(NamedTuple):
    """The role of a credential, and for whom it says it speaks. Both None: nobody asked."""

    principal: str | None = None
    original: str | None = None


class Doorkeeper:
    """Judges CONNECTs. Without a verifier everybody comes in."""

    def __init__(
        self, verifier: TokenVerifier | None = None, proxy_roles: Collection[str] = ()
    ) -> None:
        self._verifier = verifier
        self._proxy_roles = frozenset(proxy_roles)

    def judge(self, connect: CommandConnect, now: float) -> Who | Refusal:
        """Who this is, at a wall time in seconds since 1970."""
        original = str(connect.original_principal) or None
        if self._verifier is None:
            return Who(None, original)
        if connect.auth_method_name != METHOD:
            return Refusal(ServerError.AuthenticationError, "this sandbox wants a token")
        found = self._verifier.verify(connect.auth_data, now)
        if isinstance(found, Denial):
            return Refusal(ServerError.AuthenticationError, found.text)
        return self._as_role(found.name, original, by_proxy=bool(connect.proxy_version))

    def _as_role(self, role: str, original: str | None, *, by_proxy: bool) -> Who | Refusal:
        if role in self._proxy_roles:
            is_valid = original is not None and original not in self._proxy_roles
        else:
            is_valid = original is None and not by_proxy
        if is_valid:
            return Who(role, original)
        return Refusal(ServerError.AuthorizationError, "Invalid roles.")
