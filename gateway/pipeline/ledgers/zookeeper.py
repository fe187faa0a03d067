"""Reads from a ZooKeeper what brokers keep there about their topics. Nothing is written, ever.

    /managed-ledgers/TENANT/NAMESPACE/persistent/TOPIC              the ledgers of a topic
    /managed-ledgers/TENANT/NAMESPACE/persistent/TOPIC/CURSOR       the position of a subscription

Older namespaces have a cluster between tenant and namespace. Names of topics and cursors are
URL-encoded (`names`).

The walk asks for one namespace after the other and yields topic by topic. Some topics are under way
at a time, so that a distant ensemble is read at speed, and few, so that neither side holds many
values: see `WINDOW`. What it holds beside them are the names of one namespace. A node that
vanishes between its listing and its reading was deleted meanwhile: it is counted and left out.

The topic and its cursors are read one after the other, not at one moment: a cursor may already be
in a ledger that was created in between.

kazoo reads in a thread of its own, and topics are put together in threads too; all functions here
block.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kazoo.client import (  # type: ignore[import-untyped, unused-ignore]  # ships no types
    KazooClient,
)
from kazoo.exceptions import (  # type: ignore[import-untyped, unused-ignore]
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import (  # type: ignore[import-untyped, unused-ignore]
    KazooTimeoutError,
)

from gateway.errors import ConfigurationError, UpstreamError
from gateway.pipeline.ledgers.ahead import in_order
from gateway.pipeline.ledgers.metadata import (
    CursorInfo,
    Refusal,
    TopicInfo,
    cursor_of,
    topic_of,
)
from gateway.pipeline.ledgers.names import decoded
from gateway.pipeline.ledgers.snapshot import Seen, Walked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = "/managed-ledgers"

_DOMAIN = "persistent"

WINDOW = 8
"""Topics that are asked for at a time, and cursors of each: 64 values, of 1 KB as a rule and 10 MB
at worst. An ensemble on the same machine is hardly read faster with more: kazoo takes a core."""

TIMEOUT = 10.0
"""Seconds for the connection, and for each answer. An ensemble chooses a leader within them."""

TRIES = 3
"""Of one request. A lost connection is made again, which takes one try; a second one is for the
member of the ensemble that goes next in a rolling restart."""

_HOSTS = re.compile(r"[^\s,/:\[\]]+:\d{1,5}(,[^\s,/:\[\]]+:\d{1,5})*(/[^\s,]*)?")

_LOST = (ConnectionLoss, OperationTimeoutError, SessionExpiredError, KazooTimeoutError)

_SILENT = logging.Logger("kazoo")  # noqa: LOG001  # of no hierarchy: what kazoo logs is raised too
_SILENT.addHandler(logging.NullHandler())

Value = tuple[bytes, object]
Info = TypeVar("Info", TopicInfo, CursorInfo)


class Answer(Protocol):
    """An answer that is under way: kazoo's `IAsyncResult`."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002
        """Return the answer, or raise what the server said."""


class Reading(Protocol):
    """The part of kazoo's client that is used here: what reads."""

    def get_async(self, path: str) -> Answer:
        """Ask for a node's value."""

    def get_children_async(self, path: str) -> Answer:
        """Ask for the names of a node's children."""


@contextmanager
def connected(hosts: str) -> Iterator[KazooClient]:
    """Yield a connection to an ensemble, `host:port[,host:port…][/root]`. Raises
    `ConfigurationError` and `UpstreamError`."""
    if not _HOSTS.fullmatch(hosts):
        raise ConfigurationError(
            f"--zookeeper {hosts}: is no ensemble; host:port, further ones behind commas"
        )
    client = KazooClient(hosts, timeout=TIMEOUT, read_only=True, logger=_SILENT)
    try:
        client.start(timeout=TIMEOUT)
    except (KazooException, KazooTimeoutError, OSError) as error:
        client.close()
        raise UpstreamError(f"{hosts}: no connection within {TIMEOUT:.0f} s") from error
    try:
        yield client
    finally:
        client.stop()
        client.close()


def topics(client: Reading, walked: Walked) -> Iterator[Seen]:
    """Yield all topics. Raises `UpstreamError` if there is no answer, or the wrong one."""
    tenants = _names(_asked(lambda: client.get_children_async(ROOT)), ROOT)
    if tenants is None:
        raise UpstreamError(f"no {ROOT}: brokers keep no topics in this ZooKeeper")
    for tenant in sorted(tenants):
        for namespace in _children(client, f"{ROOT}/{tenant}", walked):
            path = f"{ROOT}/{tenant}/{namespace}"
            for below in _children(client, path, walked):
                if below == _DOMAIN:
                    yield from _namespace(client, f"{path}/{_DOMAIN}", walked)
                else:  # the namespace of a cluster, by its older name
                    yield from _namespace(client, f"{path}/{below}/{_DOMAIN}", walked)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request: how to make it again, and the answer that is under way."""

    ask: Callable[[], Answer]
    answer: Answer


def _asked(ask: Callable[[], Answer]) -> _Asked:
    return _Asked(ask, ask())


def _namespace(client: Reading, path: str, walked: Walked) -> Iterator[Seen]:
    """Yield the topics below `…/persistent`, in order."""
    paths = [f"{path}/{name}" for name in _children(client, path, walked)]
    for found, vanished in in_order(partial(_topic, client), paths, WINDOW):
        walked.vanished += vanished
        if found is not None:
            yield found


def _topic(client: Reading, path: str) -> tuple[Seen | None, int]:
    """Return the topic, unless it is gone, and how many nodes are gone."""
    asked = _asked(lambda: client.get_async(path))
    listing = _asked(lambda: client.get_children_async(path))
    value, names = _value(asked, topic_of), _names(listing, path)
    if value is None or names is None:
        return None, 1
    cursors = tuple(_cursors(client, path, sorted(names)))
    return Seen(name_of(path), value, cursors), len(names) - len(cursors)


def _cursors(
    client: Reading, path: str, names: list[str]
) -> Iterator[tuple[str, CursorInfo | Refusal]]:
    """Yield the cursors of a topic that are still there."""
    for begin in range(0, len(names), WINDOW):
        some = names[begin : begin + WINDOW]
        asked = [_cursor_asked(client, f"{path}/{name}") for name in some]
        for name, it in zip(some, asked, strict=True):
            if (found := _value(it, cursor_of)) is not None:
                yield decoded(name), found


def _cursor_asked(client: Reading, path: str) -> _Asked:
    return _asked(lambda: client.get_async(path))


def name_of(path: str) -> str:
    """Return the whole name of the topic at a path. Only its last part is encoded."""
    *namespace, domain, name = path.removeprefix(f"{ROOT}/").split("/")
    return f"{domain}://{'/'.join(namespace)}/{decoded(name)}"


# -- answers --------------------------------------------------------------------------------------

_FORBIDDEN = Refusal("ZooKeeper does not let this client read the node")


def _children(client: Reading, path: str, walked: Walked) -> list[str]:
    """Return the names of a node's children; none, and counted, if it is gone."""
    found = _names(_asked(lambda: client.get_children_async(path)), path)
    if found is None:
        walked.vanished += 1
        return []
    return sorted(found)


def _names(asked: _Asked, path: str) -> list[str] | None:
    """Return the names of a node's children; None: the node is gone."""
    found: list[str] | Refusal | None = _answer(asked)
    if isinstance(found, Refusal):
        raise UpstreamError(f"ZooKeeper refuses: the children of {path} may not be listed")
    return found


def _value(asked: _Asked, decode: Callable[[bytes], Info | Refusal]) -> Info | Refusal | None:
    """Return what a node's value says; None: the node is gone."""
    found: Value | Refusal | None = _answer(asked)
    if found is None or isinstance(found, Refusal):
        return found
    return decode(found[0] or b"")


def _answer(asked: _Asked) -> Any:
    """Return the answer, a refusal, or None: there is no such node. Raises `UpstreamError`."""
    answer = asked.answer
    for left in reversed(range(TRIES)):
        try:
            return answer.get(timeout=TIMEOUT)
        except NoNodeError:
            return None
        except NoAuthError:
            return _FORBIDDEN
        except _LOST as error:
            if not left:
                raise UpstreamError(f"ZooKeeper does not answer: {_why(error)}") from error
            answer = asked.ask()
        except KazooException as error:
            raise UpstreamError(f"ZooKeeper refuses: {_why(error)}") from error
    raise AssertionError("the last try returns or raises")


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__
