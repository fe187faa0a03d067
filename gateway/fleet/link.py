"""One connection to the store. It is opened when a call needs it, and opened again after it broke.

`Link.run` opens the connection, not the call that needs it. So if opening takes longer than the
call may wait, the connection is ready for the next call.

A call that failed or was cancelled closes the connection, because the reply to it may still arrive.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio
from coredis import Redis
from coredis.exceptions import RedisError
from coredis.retry import NoRetryPolicy

from gateway.fleet.failures import describe, is_disconnection
from gateway.fleet.store import StoreError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

    from gateway.config.store import StoreAddress

PATIENCE = 3.0
"""Seconds for one attempt to connect: enough for TCP to send a lost SYN again after one second."""

PAUSE = 0.1
"""Seconds between a failed attempt and the next. Calls in between fail at once."""


class LostError(StoreError):
    """The connection had already ended. A new connection may be available at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The address and the credentials of the store. The password is read again for each
    connection."""

    address: StoreAddress
    username: str | None = None
    password: Callable[[], str | None] = lambda: None
    tls: ssl.SSLContext | None = None


class Link:
    """The connection to the store. `run` opens it when a call needs it; `client` lends it to the
    call."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._attempt: _Attempt | None = None
        self._wanted = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Open one connection after another, each when a call needs one."""
        task_status.started()
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            assert self._attempt is not None
            await self._attempt.run(self._access)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Redis[bytes]]:
        """Lend a connected client for the duration of an `async with` block. Raises `StoreError` if
        connecting fails, or if a command in the block fails.

        Raises `LostError` if the connection had already ended.
        """
        attempt = self._latest()
        client = await attempt.outcome()
        succeeded = False
        try:
            yield client
            succeeded = True
        except Exception as error:  # noqa: BLE001 - the library raises many kinds
            kind = LostError if is_disconnection(error) else StoreError
            raise kind(describe(error)) from None
        finally:
            if not succeeded:
                attempt.over.set()

    def _latest(self) -> _Attempt:
        if self._attempt is None or self._attempt.is_spent():
            self._attempt = _Attempt()
            self._wanted.set()
        return self._attempt


class _Attempt:
    """One connection, from its request to its end. `over` is set to close it, or when it failed."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self._decided = trio.Event()
        self._client: Redis[bytes] | None = None
        self._error = ""
        self._ended = float("-inf")

    def is_spent(self) -> bool:
        """Return True if the connection has ended and a new attempt may begin."""
        return self.over.is_set() and trio.current_time() >= self._ended + PAUSE

    async def outcome(self) -> Redis[bytes]:
        """Wait until connecting has succeeded or failed, and return the connected client. Raises
        `StoreError` if connecting failed."""
        await self._decided.wait()
        if self._client is None or self._error:
            raise StoreError(self._error)
        return self._client

    async def run(self, access: Access) -> None:
        """Connect, and stay connected until `over` is set."""
        try:
            async with _client(access) as client:
                await self._hold(client)
        except Exception as error:  # noqa: BLE001 - no failure of the library may stop the gateway
            self._fail(error)

    async def _hold(self, client: Redis[bytes]) -> None:
        # An exception that leaves the client's block would be wrapped in an exception group.
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
        self._error = describe(error)
        self._ended = trio.current_time()
        self.over.set()
        self._decided.set()


def _client(access: Access) -> Redis[bytes]:
    address = access.address
    return Redis(
        host=address.host or None,
        port=address.port,
        unix_socket_path=address.path or None,
        db=address.database,
        username=access.username,
        password=access.password(),
        ssl_context=access.tls,
        connect_timeout=PATIENCE,
        # Calls come one at a time; the second connection replaces one that broke in between.
        max_connections=2,
        verify_version=False,
        retry_policy=NoRetryPolicy(),  # callers decide about retries
    )
