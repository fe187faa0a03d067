"""One connection to the store: made when somebody wants it, and again whenever it broke.

Making it is nobody's call: a call waits for it as long as it likes, and goes. So a connection that
takes longer than a call may is there for the next one.

A call that failed or was cancelled breaks the connection: what still comes there is nobody's.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio
from coredis import Redis
from coredis.exceptions import RedisError
from coredis.retry import NoRetryPolicy

from gateway.fleet.store import StoreError
from gateway.fleet.troubles import is_lost, told

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

    from gateway.config.store import StoreAddress

PATIENCE = 3.0
"""Seconds for one attempt: enough for a SYN that is sent again after one."""

PAUSE = 0.1
"""Seconds from one attempt that failed to the next. Who asks meanwhile is told at once."""


class LostError(StoreError):
    """The connection had ended before: another one may be had at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where the store is, and as whom to come. The password is asked for by each connection."""

    address: StoreAddress
    username: str | None = None
    password: Callable[[], str | None] = lambda: None
    tls: ssl.SSLContext | None = None


class Link:
    """`run` makes connections, `client` lends the one that there is."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._attempt: _Attempt | None = None
        self._wanted = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Make one connection after another, each when it is wanted."""
        task_status.started()
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            assert self._attempt is not None
            await self._attempt.run(self._access)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Redis[bytes]]:
        """One that is connected. Raises `StoreError` where there is none, or what it does fails.

        `LostError`: it was connected no more.
        """
        attempt = self._latest()
        client = await attempt.outcome()
        whole = False
        try:
            yield client
            whole = True
        except Exception as error:  # noqa: BLE001 - of whatever the library raises
            raise (LostError if is_lost(error) else StoreError)(told(error)) from None
        finally:
            if not whole:
                attempt.over.set()

    def _latest(self) -> _Attempt:
        if self._attempt is None or self._attempt.is_spent():
            self._attempt = _Attempt()
            self._wanted.set()
        return self._attempt


class _Attempt:
    """One connection, from the wish for it to its end. `over`: it is to be closed, or was none."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self._decided = trio.Event()
        self._client: Redis[bytes] | None = None
        self._error = ""
        self._ended = float("-inf")

    def is_spent(self) -> bool:
        """Whether it is time for another one."""
        return self.over.is_set() and trio.current_time() >= self._ended + PAUSE

    async def outcome(self) -> Redis[bytes]:
        """The client, once it is connected. Raises `StoreError` where it cannot be."""
        await self._decided.wait()
        if self._client is None or self._error:
            raise StoreError(self._error)
        return self._client

    async def run(self, access: Access) -> None:
        """Connect, and stay so until it is over."""
        try:
            async with _client(access) as client:
                await self._hold(client)
        except Exception as error:  # noqa: BLE001 - whatever the library does, clients are served
            self._fail(error)

    async def _hold(self, client: Redis[bytes]) -> None:
        # What leaves the client's block would come out of it in a group.
        try:
            with trio.fail_after(PATIENCE):
                await client.ping()
        except (RedisError, OSError, trio.TooSlowError) as error:
            self._fail(error)
            return
        self._client = client
        self._decided.set()
        await self.over.wait()

    def _fail(self, error: Exception) -> None:
        self._error = told(error)
        self._ended = trio.current_time()
        self.over.set()
        self._decided.set()


def _client(access: Access) -> Redis[bytes]:
    at = access.address
    return Redis(
        host=at.host or None,
        port=at.port,
        unix_socket_path=at.path or None,
        db=at.database,
        username=access.username,
        password=access.password(),
        ssl_context=access.tls,
        connect_timeout=PATIENCE,
        # One call at a time; the other is for what was broken in between.
        max_connections=2,
        verify_version=False,
        retry_policy=NoRetryPolicy(),  # whoever asks decides about that
    )
