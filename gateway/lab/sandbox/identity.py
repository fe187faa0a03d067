"""Identity of a client: its token, and the rules for proxy roles.

The rules are those of a broker with authentication and `proxyRoles` (seen on Pulsar 4.2.4). There
is no authorization: each role may do everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.identity.verified import Verified
from gateway.lab.sandbox.answers import ErrorReply
from gateway.wire.contract import Denial
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import ServerError

if TYPE_CHECKING:
    from collections.abc import Collection

    from gateway.identity.token import TokenVerifier
    from gateway.wire.pulsar._proto.pulsar_wire_pb2 import CommandConnect

METHOD = "token"


class ClientRoles(NamedTuple):
    """The roles of a client. `principal`: the role in its credential; None if the broker checks no
    credentials. `original`: the role for which a proxy acts, or None."""

    principal: str | None = None
    original: str | None = None


class Authenticator:
    """Authenticates CONNECT commands by their token; without a verifier all clients are accepted.
    `proxy_roles`: roles that may act for other roles."""

    def __init__(
        self, verifier: TokenVerifier | None = None, proxy_roles: Collection[str] = ()
    ) -> None:
        self._verifier = verifier
        self._proxy_roles = frozenset(proxy_roles)

    def authenticate(self, connect: CommandConnect, now: float) -> ClientRoles | ErrorReply:
        """Return the roles of the client that sent a CONNECT; the error to send if the client is
        refused. `now`: seconds since 1970."""
        original = str(connect.original_principal) or None
        if self._verifier is None:
            return ClientRoles(None, original)
        if connect.auth_method_name != METHOD:
            return ErrorReply(ServerError.AuthenticationError, "this sandbox wants a token")
        verified = self._verifier.verify(connect.auth_data, now)
        if isinstance(verified, Denial):
            return ErrorReply(ServerError.AuthenticationError, verified.text)
        assert isinstance(verified, Verified)  # its key never changes
        return self._check_roles(verified.name, original, by_proxy=bool(connect.proxy_version))

    def _check_roles(
        self, role: str, original: str | None, *, by_proxy: bool
    ) -> ClientRoles | ErrorReply:
        if role in self._proxy_roles:
            is_valid = original is not None and original not in self._proxy_roles
        else:
            is_valid = original is None and not by_proxy
        if is_valid:
            return ClientRoles(role, original)
        return ErrorReply(ServerError.AuthorizationError, "Invalid roles.")
