"""Runs a console: puts its parts together, and serves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
import trio

from gateway.console.actions import AdminActions
from gateway.console.feed import Feed
from gateway.console.serving import serve_console
from gateway.console.site import site
from gateway.console.views import About, Views

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.console.asking import Ask
    from gateway.console.serving import ConsoleSettings
    from gateway.listening.openings import Openings


@dataclass(frozen=True, slots=True)
class Operated:
    """The gateway that a console shows and controls. `ask`: puts questions to its processes.
    `drain`: stops it as SIGTERM does. `reload`: reloads rules as SIGHUP does; None without
    rules."""

    ask: Ask
    about: About
    drain: Callable[[], None]
    reload: Callable[[], None] | None


async def run_console(
    settings: ConsoleSettings,
    operated: Operated,
    openings: Openings,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the console until cancelled. The task has started once the console listens. `openings`:
    see `serve_console`. Raises `ConfigurationError` if the console cannot listen."""
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    views = Views(operated.ask, operated.about)
    actions = AdminActions(operated.ask, operated.drain, operated.reload)
    feed = Feed(views)
    app = site(views, feed, actions, settings.token, is_public=settings.is_public)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed.run)
        addresses = await nursery.start(serve_console, settings, app, app.is_operator, openings)
        log.info("console_listening", addresses=[str(address) for address in addresses])
        task_status.started()
