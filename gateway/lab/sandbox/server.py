"""The running sandbox: listeners of its brokers, their connections, its control.

Nothing here prints to standard output or handles signals: it can run inside another program.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.admin import server as http
from gateway.errors import ConfigurationError, PeerError
from gateway.lab.process import ANYWHERE, bound, first_of, listen, report
from gateway.lab.sandbox.cluster import MEMORY, SandboxCluster
from gateway.lab.sandbox.connection import BrokerConnection
from gateway.lab.sandbox.control import Control
from gateway.lab.sandbox.faults import Faults
from gateway.lab.sandbox.identity import Authenticator
from gateway.lab.sandbox.session import BrokerContext

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.wire.address import Address

MOST_CONNECTIONS = 500
"""Per broker; more are closed at once. Each may keep two large messages, one per direction."""

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Addresses of brokers and of the control (port 0: any free port), authentication, and memory
    (bytes).

    `token_secret`: the file of the key that signs tokens; None: all clients are accepted.
    `proxy_roles`: roles that may act for other roles.
    """

    brokers: tuple[Address, ...] = (ANYWHERE, ANYWHERE)
    control: Address = ANYWHERE
    token_secret: Path | None = None
    proxy_roles: tuple[str, ...] = ()
    memory: int = MEMORY


@dataclass(slots=True, eq=False)
class RunningBroker:
    """One running broker: its listener, its faults and its open connections."""

    listener: trio.SocketListener
    url: str
    faults: Faults = field(default_factory=Faults)
    connections: dict[trio.CancelScope, BrokerConnection] = field(default_factory=dict)

    def cut(self) -> int:
        """Close all connections of this broker. Return how many there were."""
        for scope in self.connections:
            scope.cancel()
        return len(self.connections)

    def announce(self, frame: bytes) -> int:
        """Send a frame to all clients of this broker. Return the number of open connections."""
        for connection in self.connections.values():
            connection.announce(frame)
        return len(self.connections)


class Sandbox:
    """A sandbox of Pulsar brokers. Raises `ConfigurationError` if the settings are invalid."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.service_url = ""
        self.control_url = ""
        self._settings = settings
        self._authenticator = _authenticator(settings)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. The URLs of the brokers and of the control are set once the task
        has started.

        Raises `ConfigurationError` (in groups, as nurseries do) if the sandbox cannot listen.
        """
        async with trio.open_nursery() as nursery:
            brokers = [await _listen(address) for address in self._settings.brokers]
            cluster = SandboxCluster([broker.url for broker in brokers], self._settings.memory)
            await self._serve_control(nursery, Control(cluster, brokers))
            for number, broker in enumerate(brokers):
                context = BrokerContext(cluster, number, self._authenticator, broker.faults)
                nursery.start_soon(_accept, broker, context)
            hosts = (broker.url.removeprefix("pulsar://") for broker in brokers)
            self.service_url = f"pulsar://{','.join(hosts)}"
            task_status.started()

    async def _serve_control(self, nursery: trio.Nursery, control: Control) -> None:
        serve = partial(http.serve, actions=control.actions())
        bound = await nursery.start(serve, self._settings.control, control.routes())
        self.control_url = control.url = f"http://{bound[0]}"


def _authenticator(settings: SandboxSettings) -> Authenticator:
    if settings.token_secret is None:
        if settings.proxy_roles:
            raise ConfigurationError("proxy roles need tokens: name a --token-secret too")
        return Authenticator()
    # Imported only where tokens are used: 12 MB, 40 ms.
    from gateway.identity.keys import secret_key
    from gateway.identity.token import TokenVerifier

    verifier = TokenVerifier([secret_key(settings.token_secret)], ["HS256"])
    return Authenticator(verifier, settings.proxy_roles)


async def _listen(address: Address) -> RunningBroker:
    listener = await listen(address)
    return RunningBroker(listener, f"pulsar://{bound(listener)}")


async def _accept(broker: RunningBroker, context: BrokerContext) -> None:
    async with broker.listener, trio.open_nursery() as nursery:
        while True:
            stream = await broker.listener.accept()
            is_full = len(broker.connections) >= MOST_CONNECTIONS
            if is_full or broker.faults.is_refusing(time.time()):
                await stream.aclose()
            else:
                nursery.start_soon(_serve_connection, stream, broker, context)


async def _serve_connection(
    stream: trio.SocketStream, broker: RunningBroker, context: BrokerContext
) -> None:
    """Serve one connection to its end. Raises nothing: a failure ends this connection alone."""
    with trio.CancelScope() as scope:
        connection = broker.connections[scope] = BrokerConnection(stream, context)
        try:
            await connection.run()
        except* _BROKEN:
            pass  # the client is gone
        except* PeerError as errors:
            report(f"{broker.url}: closed a client's connection: {first_of(errors)}")
        except* Exception:  # noqa: BLE001 - a bug of the sandbox ends here
            report(f"{broker.url}: a bug of the sandbox\n{traceback.format_exc()}")
        finally:
            del broker.connections[scope]
