"""The sandbox at work: its brokers' listeners, their connections, its control.

Nothing here prints or handles signals, so that it can run inside another program.
"""

from __future__ import annotations

import sys
import time
import traceback
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.admin import server as http
from gateway.errors import ConfigurationError, PeerError
from gateway.sandbox.cluster import MEMORY, Cluster
from gateway.sandbox.connection import Connection
from gateway.sandbox.control import Control
from gateway.sandbox.faults import Faults
from gateway.sandbox.identity import Doorkeeper
from gateway.sandbox.session import Place
from gateway.wire.address import Address

if TYPE_CHECKING:
    from pathlib import Path

MOST_CONNECTIONS = 500
"""Of one broker; more are closed at once. Each may keep two large messages, one each way."""

ANYWHERE = Address("127.0.0.1", 0)

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Where brokers and control listen (port 0: any), who may come in, how much is kept (bytes).

    `token_secret`: a file; without one everybody may come in. `proxy_roles`: may speak for others.
    """

    brokers: tuple[Address, ...] = (ANYWHERE, ANYWHERE)
    control: Address = ANYWHERE
    token_secret: Path | None = None
    proxy_roles: tuple[str, ...] = ()
    memory: int = MEMORY


@dataclass(slots=True, eq=False)
class Broker:
    """One of them: its listener, its faults, its open connections."""

    listener: trio.SocketListener
    url: str
    faults: Faults = field(default_factory=Faults)
    open: dict[trio.CancelScope, Connection] = field(default_factory=dict)

    def cut(self) -> int:
        """Close all connections; answers how many there were."""
        for scope in self.open:
            scope.cancel()
        return len(self.open)

    def say(self, frame: bytes) -> int:
        """Send a frame to all clients; answers how many connections there are."""
        for connection in self.open.values():
            connection.say(frame)
        return len(self.open)


class Sandbox:
    """Raises `ConfigurationError` where its settings cannot be."""

    def __init__(self, settings: SandboxSettings) -> None:
        self.service_url = ""
        self.control_url = ""
        self._settings = settings
        self._doorkeeper = _doorkeeper(settings)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Once it has started, both URLs are there.

        Raises `ConfigurationError` (in groups, as nurseries do) where it cannot listen.
        """
        async with trio.open_nursery() as nursery:
            brokers = [await _listen(address) for address in self._settings.brokers]
            cluster = Cluster([broker.url for broker in brokers], self._settings.memory)
            await self._serve_control(nursery, Control(cluster, brokers))
            for number, broker in enumerate(brokers):
                place = Place(cluster, number, self._doorkeeper, broker.faults)
                nursery.start_soon(_accept, broker, place)
            hosts = (broker.url.removeprefix("pulsar://") for broker in brokers)
            self.service_url = f"pulsar://{','.join(hosts)}"
            task_status.started()

    async def _serve_control(self, nursery: trio.Nursery, control: Control) -> None:
        serve = partial(http.serve, actions=control.actions())
        bound = await nursery.start(serve, self._settings.control, control.routes())
        self.control_url = control.url = f"http://{bound[0]}"


def _doorkeeper(settings: SandboxSettings) -> Doorkeeper:
    if settings.token_secret is None:
        if settings.proxy_roles:
            raise ConfigurationError("proxy roles are roles of tokens: name a --token-secret too")
        return Doorkeeper()
    # Imported only where tokens are wanted: 12 MB, 40 ms.
    from gateway.identity.keys import secret_key
    from gateway.identity.token import TokenVerifier

    verifier = TokenVerifier([secret_key(settings.token_secret)], ["HS256"])
    return Doorkeeper(verifier, settings.proxy_roles)


async def _listen(address: Address) -> Broker:
    try:
        listeners = await trio.open_tcp_listeners(address.port, host=address.host)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(
            f"cannot listen on {address}: {reason}; end what listens there, "
            "or name other ports (0 is any)"
        ) from None
    for spare in listeners[1:]:  # a name with several addresses: one is enough
        await spare.aclose()
    host, port, *_ = listeners[0].socket.getsockname()
    return Broker(listeners[0], f"pulsar://{Address(host, port)}")


async def _accept(broker: Broker, place: Place) -> None:
    async with broker.listener, trio.open_nursery() as nursery:
        while True:
            stream = await broker.listener.accept()
            is_full = len(broker.open) >= MOST_CONNECTIONS
            if is_full or broker.faults.is_refusing(time.time()):
                await stream.aclose()
            else:
                nursery.start_soon(_attend, stream, broker, place)


async def _attend(stream: trio.SocketStream, broker: Broker, place: Place) -> None:
    """Serve one connection to its end. Raises nothing: what fails here fails alone."""
    with trio.CancelScope() as scope:
        connection = broker.open[scope] = Connection(stream, place)
        try:
            await connection.run()
        except* _BROKEN:
            pass  # the client is gone
        except* PeerError as errors:
            report(f"{broker.url}: a client is cut off: {first_of(errors)}")
        except* Exception:  # noqa: BLE001 - the one place where a bug of ours ends
            report(f"{broker.url}: a bug of the sandbox\n{traceback.format_exc()}")
        finally:
            del broker.open[scope]


def first_of(error: BaseException) -> BaseException:
    """The first of a group of errors, which is what nurseries raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def report(text: str) -> None:
    """Tell a person. This is not the gateway's log: the sandbox has no settings for one."""
    printable = "\n".join(line if line.isprintable() else ascii(line) for line in text.splitlines())
    sys.stderr.write(f"sandbox: {printable}\n")
