"""The running sandbox: listeners of its brokers, and their connections.

Nothing here prints to standard output or handles signals: it can run inside another program.
"""

from __future__ import annotations

import traceback
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import trio

from gateway.errors import PeerError
from gateway.lab.kafka import batches
from gateway.lab.kafka.cluster import MEMORY, PARTITIONS, KafkaCluster
from gateway.lab.kafka.connection import HANDLERS, serve
from gateway.lab.kafka.groups import Groups
from gateway.lab.kafka.session import BrokerContext, KafkaSession, Seen
from gateway.lab.kafka.users import Users
from gateway.lab.process import ANYWHERE, bound, listen, report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.lab.kafka.batches import Record
    from gateway.wire.address import Address

MOST_CONNECTIONS = 500
"""Per broker; more are closed at once. Each may keep a large request and its response."""

MOST_SEEN = 100_000
"""Requests that are remembered, 20 MB; the oldest are forgotten."""

FIRST_NODE = 1
"""The node id of the first broker; the others follow."""

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Addresses of brokers (port 0: any free port), logins, and memory (bytes).

    `users`: passwords by user name. `unsecured_tokens`: clients may log in with tokens without a
    signature. If neither is set, clients need no login. `login_lifetime`: seconds after which
    clients must reauthenticate; 0: never. `partitions`: how many a topic gets that is created at
    its first use.
    """

    brokers: tuple[Address, ...] = (ANYWHERE, ANYWHERE)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    unsecured_tokens: bool = False
    login_lifetime: float = 0.0
    partitions: int = PARTITIONS
    memory: int = MEMORY


@dataclass(slots=True, eq=False)
class _Running:
    """One broker that is up. `scope`: ends it with all its connections, and then `ended` is set."""

    listener: trio.SocketListener
    context: BrokerContext
    connections: int = 0
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended: trio.Event = field(default_factory=trio.Event)


class KafkaSandbox:
    """A sandbox of Kafka brokers. `requests`: the requests that all brokers have received, oldest
    first. `cluster`: the brokers' topics and partitions."""

    cluster: KafkaCluster

    def __init__(self, settings: KafkaSettings) -> None:
        self.bootstrap = ""
        self.requests: deque[Seen] = deque(maxlen=MOST_SEEN)
        self._settings = settings
        self._users = Users(
            settings.users,
            unsecured_tokens=settings.unsecured_tokens,
            lifetime=settings.login_lifetime,
        )
        self._groups = Groups()
        self._numbers = count(1)
        self._running: dict[int, _Running] = {}
        self._nursery: trio.Nursery

    @property
    def service_url(self) -> str:
        """Return one URL with the addresses of all brokers."""
        return f"kafka://{self.bootstrap}"

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. `cluster` and `bootstrap` are set once the task has started.

        Raises `ConfigurationError` (in groups, as nurseries do) if the sandbox cannot listen.
        """
        async with trio.open_nursery() as self._nursery:
            listeners = [await listen(address) for address in self._settings.brokers]
            nodes = dict(enumerate(map(bound, listeners), FIRST_NODE))
            self.cluster = KafkaCluster(nodes, self._settings.memory, self._settings.partitions)
            self.bootstrap = ",".join(map(str, nodes.values()))
            for node, listener in zip(nodes, listeners, strict=True):
                self._run(node, listener)
            task_status.started()

    # -- what happens to a cluster ---------------------------------------------------------------

    def move(self, topic: str, partition: int, node: int) -> None:
        """Make the broker `node` the leader of a partition; see `KafkaCluster.move`."""
        self.cluster.move(topic, partition, node)

    async def stop(self, node: int) -> None:
        """Stop one broker: close its port and its connections. Other brokers become leaders of its
        partitions."""
        running = self._running.pop(node)
        self.cluster.stop(node)
        running.scope.cancel()
        await running.ended.wait()

    async def start(self, node: int) -> None:
        """Start a broker that was stopped, at the same address. Raises `ConfigurationError`
        if the address is taken."""
        listener = await listen(self.cluster.nodes[node])
        self.cluster.start(node)
        self._run(node, listener)

    def produced(self, topic: str, partition: int) -> list[Record]:
        """Return the records that are stored in a partition. Raises `KeyError` or `IndexError` if
        there is no such partition, and `UnreadableError` if a batch cannot be decoded."""
        log = self.cluster.topics[topic].partitions[partition].log
        return [record for batch in log.batches for record in batches.records(batch)]

    # -- connections -----------------------------------------------------------------------------

    def _run(self, node: int, listener: trio.SocketListener) -> None:
        users, requests = self._users, self.requests
        context = BrokerContext(self.cluster, self._groups, node, users, requests, HANDLERS)
        running = self._running[node] = _Running(listener, context)
        self._nursery.start_soon(self._accept, running)

    async def _accept(self, running: _Running) -> None:
        try:
            with running.scope:
                async with running.listener, trio.open_nursery() as nursery:
                    while True:
                        stream = await running.listener.accept()
                        if running.connections >= MOST_CONNECTIONS:
                            await stream.aclose()
                        else:
                            nursery.start_soon(self._connected, stream, running)
        finally:
            running.ended.set()

    async def _connected(self, stream: trio.SocketStream, running: _Running) -> None:
        """Serve one connection to its end. Raises nothing: a failure ends this connection alone."""
        context = running.context
        where = self.cluster.nodes[context.node]
        running.connections += 1
        try:
            host = stream.socket.getpeername()[0]
            await serve(stream, KafkaSession(context, next(self._numbers), host))
        except (*_BROKEN, OSError):
            pass  # the client is gone
        except PeerError as error:
            report(f"{where}: closed a client's connection: {error}")
        except Exception:  # noqa: BLE001 - a bug of the sandbox ends here
            report(f"{where}: a bug of the sandbox\n{traceback.format_exc()}")
        finally:
            running.connections -= 1
