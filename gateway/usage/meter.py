"""Reads the accounts of producers and consumers once a second, for the records of an interval.

Scanners write counts to the accounts, and know nothing of records. The meter is told of accounts
that open and close. It remembers the counts that it has last read of each open account, and adds
what has been counted since to the sums of the account's key. An account that closes is read a last
time, so that what it used in the interval is included.

If nothing happened on an account, reading it only compares four numbers. A generator reads all
accounts each second, and lets other tasks run in between.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from gateway.usage.confirming import Confirming, Counts, passed
from gateway.usage.interval import Interval, Key
from gateway.wire.account import NEVER, Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gateway.wire.account import Account, Waited
    from gateway.wire.subject import Caller

LOOKS_AT_ONCE = 200
"""Accounts that are read between two steps of other tasks: 1 ms if all of them were used."""

OPERATIONS = {Action.PRODUCE: "send", Action.CONSUME: "deliver"}

IPV4_PREFIX, IPV6_PREFIX = 24, 48
"""Prefix lengths of the networks that records name instead of addresses: those of one site."""


@lru_cache(maxsize=4096)
def network_of(host: str) -> str:
    """Return the network of a client's address, such as `192.0.2.0/24`. If the text is not an
    address, it is returned unchanged."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    length = IPV4_PREFIX if address.version == 4 else IPV6_PREFIX
    return str(ip_network(f"{address}/{length}", strict=False))


class Naming:
    """How records name clients. `principals`: returns what replaces a principal; None: principals
    are not replaced. `clients`: returns what replaces a client's address; None: records have no
    address. `client_ids`: records have the names that clients give themselves."""

    def __init__(
        self,
        principals: Callable[[str], str] | None = None,
        clients: Callable[[str], str] | None = network_of,
        *,
        client_ids: bool = False,
    ) -> None:
        self._principals = principals
        self._clients = clients
        self._client_ids = client_ids

    def principal(self, caller: Caller) -> str | None:
        """Return a client's principal as records name it, perhaps by a pseudonym; None if the
        client has no principal."""
        if caller.principal is None or self._principals is None:
            return caller.principal
        return self._principals(caller.principal)

    def client(self, caller: Caller) -> str | None:
        """Return a client's address as records state it, such as its network; None if it is unknown
        or records have no addresses."""
        return None if caller.host is None or self._clients is None else self._clients(caller.host)

    def client_id(self, caller: Caller) -> str | None:
        """Return the name that a client gives itself, for usage records; None if records do not
        have this name."""
        return caller.client_id if self._client_ids else None


_NO_WAITS: dict[str, Waited] = {}
"""All accounts that never waited share this dict, into which nothing is put."""


class _Followed:
    """The counts that were read of one account."""

    __slots__ = (
        "account",
        "billed",
        "confirming",
        "counted_in",
        "errors",
        "key",
        "receipts",
        "refused",
        "sent",
        "waits",
    )

    def __init__(self, account: Account) -> None:
        self.account = account
        self.key: Key | None = None  # made when something is used
        self.sent = self.billed = Counts()
        self.receipts = self.refused = self.errors = 0
        self.waits: dict[str, Waited] = _NO_WAITS
        self.counted_in = -1  # the number of the last interval with use by this account
        self.confirming = Confirming() if account.action is Action.PRODUCE else None


class Meter:
    """Adds up the use of all accounts and connections by key, for the records of an interval."""

    def __init__(self, naming: Naming | None = None, interval: Interval | None = None) -> None:
        self._naming = Naming() if naming is None else naming
        self._interval = Interval() if interval is None else interval
        self._ended = 0  # intervals
        self._followed: dict[Account, _Followed] = {}
        self._connections: dict[Key, _Connections] = {}

    # -- events --------------------------------------------------------------------

    def opened(self, account: Account) -> None:
        """Begin to read an account's counts."""
        self._followed[account] = _Followed(account)

    def closed(self, account: Account) -> None:
        """Read an account's counts for the last time, and forget the account."""
        followed = self._followed.pop(account)
        self._read(followed, is_last=True)

    def connected(self, caller: Caller, now: float) -> Key:
        """Count a connection that has opened. Return the key that the caller must pass to
        `disconnected`. `now`: monotonic seconds."""
        key = self._connection_key(caller)
        connections = self._connections.get(key)
        if connections is None:
            connections = self._connections[key] = _Connections(now)
        connections.change(1, now)
        return key

    def disconnected(self, key: Key, now: float) -> None:
        """Count the end of a connection. `key`: the key that `connected` returned for it. `now`:
        monotonic seconds."""
        self._connections[key].change(-1, now)

    # -- looks -------------------------------------------------------------------------------

    def look(self) -> Iterator[None]:
        """Read the counts of all open accounts, then update the interval's peaks per second. The
        iterator yields between parts that take about a millisecond each."""
        # A list of all: accounts open and close between two parts.
        all_followed = list(self._followed.values())
        for begin in range(0, len(all_followed), LOOKS_AT_ONCE):
            for followed in all_followed[begin : begin + LOOKS_AT_ONCE]:
                account = followed.account
                if (
                    account.messages != followed.sent.messages
                    or account.receipts != followed.receipts
                    or account.queued
                    or account.refused != followed.refused
                ) and account in self._followed:
                    self._read(followed)
            yield
        yield from self._interval.end_second()

    def take(self, now: float) -> Interval:
        """Return the sums of the interval, which ends now, and begin another interval. `now`:
        monotonic seconds."""
        for key in [key for key, known in self._connections.items() if known.settle(now)]:
            connections = self._connections[key]
            sums = self._interval.of(key)
            sums.milliseconds += connections.take()
            sums.open += connections.most
            connections.most = connections.open
            if not connections.open:
                del self._connections[key]
        for _ in self._interval.end_second():  # of what closed since the last look
            pass
        taken, self._interval = self._interval, Interval()
        self._ended += 1
        return taken

    def _read(self, followed: _Followed, *, is_last: bool = False) -> None:
        account = followed.account
        sent = passed(account)
        billed = sent
        if followed.confirming is not None:
            confirming = followed.confirming
            billed = confirming.last(account) if is_last else confirming.confirmed(account)
        news = (sent, billed, account.refused, account.errors)
        known = (followed.sent, followed.billed, followed.refused, followed.errors)
        waits = {} if account.waits is None else account.waits.by_rule
        followed.receipts = account.receipts
        if news == known and waits == followed.waits and not account.queued:
            return
        if followed.key is None:
            followed.key = self._key(account)
        sums = self._interval.of(followed.key)
        sums.send(sent.minus(followed.sent))
        sums.bill(billed.minus(followed.billed))
        sums.refused += account.refused - followed.refused
        sums.errors += account.errors - followed.errors
        sums.hold(account.queued)
        for rule, waited in waits.items():
            sums.wait(rule, waited.minus(followed.waits.get(rule, NEVER)))
        if followed.counted_in != self._ended:
            followed.counted_in = self._ended
            sums.open += 1
        followed.sent, followed.billed, followed.refused, followed.errors = news
        followed.waits = dict(waits) if waits else _NO_WAITS

    def _key(self, account: Account) -> Key:
        subject = account.subject
        caller = subject.caller
        return Key(
            OPERATIONS[account.action],
            caller.protocol,
            caller.listener,
            caller.cluster,
            subject.topic,
            subject.subscription,
            self._naming.principal(caller),
            caller.method,
            self._naming.client(caller),
            caller.library,
            self._naming.client_id(caller),
        )

    def _connection_key(self, caller: Caller) -> Key:
        return Key(
            "connect",
            caller.protocol,
            caller.listener,
            caller.cluster,
            principal=self._naming.principal(caller),
            method=caller.method,
            network=self._naming.client(caller),
            library=caller.library,
            client_id=self._naming.client_id(caller),
        )


class _Connections:
    """Open connections of one key. `most`: at a time in this interval."""

    __slots__ = ("_changed_at", "_seconds", "most", "open")

    def __init__(self, now: float) -> None:
        self.open = self.most = 0
        self._seconds = 0.0
        self._changed_at = now

    def change(self, by: int, now: float) -> None:
        self.settle(now)
        self.open += by
        self.most = max(self.most, self.open)

    def settle(self, now: float) -> bool:
        """Add to the total the time for which connections have been open since the last call.
        Return whether any connection was open in this interval."""
        self._seconds += self.open * (now - self._changed_at)
        self._changed_at = now
        return self.most > 0

    def take(self) -> int:
        """Return the whole milliseconds for which connections were open, and keep the rest."""
        milliseconds = int(self._seconds * 1000)
        self._seconds -= milliseconds / 1000
        return milliseconds
