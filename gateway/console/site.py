"""The routes of the console: the page, and the API below `/api/v1`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.console.actions import LONGEST, AdminActions
from gateway.console.feed import Feed
from gateway.console.guard import Guard
from gateway.console.openapi import document
from gateway.console.paging import CONNECTIONS, TOPICS, BadQueryError, page_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from gateway.console.views import Views

FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
"""The files of the page and their media types, by path."""

LEVELS = ("debug", "info", "warning", "error")

Answer = Callable[["Request"], Awaitable[Response]]


def site(
    views: Views, feed: Feed, actions: AdminActions, token: bytes | None, *, is_public: bool
) -> Guard:
    """Return the ASGI application of the console. `token`, `is_public`: see `ConsoleSettings`."""
    api = _Api(views, feed, actions)
    app = Starlette(
        routes=[
            *(Route(path, _file(*file)) for path, file in FILES.items()),
            *(Route(f"/api/v1{path}", answer) for path, answer in api.reads.items()),
            *(
                Route(f"/api/v1{path}", answer, methods=["POST"])
                for path, answer in api.actions.items()
            ),
        ],
        exception_handlers={
            HTTPException: _explained,
            BadQueryError: _bad_query,
        },
    )
    return Guard(app, token, names_are_free=is_public)


async def _explained(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = {404: "there is nothing here", 405: "not by this method"}.get(error.status_code)
    return JSONResponse({"error": text or error.detail}, error.status_code)


async def _bad_query(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


def _file(name: str, kind: str) -> Answer:
    content = files("gateway.console").joinpath("page", name).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


class _Api:
    """The handlers of the API."""

    def __init__(self, views: Views, feed: Feed, actions: AdminActions) -> None:
        self._views = views
        self._feed = feed
        self._actions = actions
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self.reads: dict[str, Answer] = {
            "/status": self._status,
            "/feed": self._read_feed,
            "/connections": self._connections,
            "/connections/{id:int}": self._connection,
            "/topics": self._topics,
            "/slowest": self._slowest,
            "/configuration": self._configuration,
            "/openapi.json": self._openapi,
        }
        self.actions: dict[str, Answer] = {
            "/connections/{id:int}/close": self._close,
            "/drain": self._drain,
            "/reload": self._reload,
            "/log": self._set_level,
            "/trace": self._trace,
        }

    # -- reading -----------------------------------------------------------------------------

    async def _status(self, _: Request) -> Response:
        return JSONResponse(await self._views.status())

    async def _read_feed(self, _: Request) -> Response:
        if self._feed.is_full:
            return JSONResponse({"error": "as many as may do so look already"}, 503)
        return StreamingResponse(self._feed.events(), media_type="text/event-stream")

    async def _connections(self, request: Request) -> Response:
        page = page_of(request.query_params, CONNECTIONS)
        return JSONResponse(await self._views.connections(page))

    async def _connection(self, request: Request) -> Response:
        connection = await self._views.connection(request.path_params["id"])
        return _no_connection() if connection is None else JSONResponse(connection)

    async def _topics(self, request: Request) -> Response:
        page = page_of(request.query_params, TOPICS)
        return JSONResponse(await self._views.topics(page))

    async def _slowest(self, request: Request) -> Response:
        return JSONResponse(await self._views.slowest(request.query_params.get("topic")))

    async def _configuration(self, _: Request) -> Response:
        return JSONResponse(self._views.configuration())

    async def _openapi(self, _: Request) -> Response:
        return JSONResponse(document(sorted(self.reads), sorted(self.actions)))

    # -- doing -------------------------------------------------------------------------------

    async def _close(self, request: Request) -> Response:
        id = request.path_params["id"]
        if self._done("close", await self._actions.close(id), connection=id):
            return JSONResponse({"closed": id})
        return _no_connection()

    async def _drain(self, _: Request) -> Response:
        return self._answer("drain", self._actions.drain())

    async def _reload(self, _: Request) -> Response:
        return self._answer("reload", self._actions.reload())

    async def _set_level(self, request: Request) -> Response:
        body = await _body(request)
        level, event = body.get("level"), body.get("event")
        if level not in LEVELS:
            raise BadQueryError(f"level: is not one of {', '.join(LEVELS)}")
        if event is not None and not isinstance(event, str):
            raise BadQueryError("event: is not the name of a log event")
        seconds = _seconds(body)
        refused = await self._actions.set_level(level, event, seconds)
        return self._answer("log", refused, level_of=event or "all", to=level, seconds=seconds)

    async def _trace(self, request: Request) -> Response:
        body = await _body(request)
        client, principal = body.get("client"), body.get("principal")
        if (client is None) == (principal is None):
            raise BadQueryError("the body names neither a client nor a principal, or both")
        if client is not None:
            client = _network(client)
        elif not isinstance(principal, str):
            raise BadQueryError("principal: is not a name")
        seconds = _seconds(body)
        refused = await self._actions.trace(client, principal, seconds)
        return self._answer("trace", refused, client=client, principal=principal, seconds=seconds)

    def _answer(self, action: str, refused: str | None, **values: object) -> Response:
        if self._done(action, refused, **values):
            return JSONResponse({})
        return JSONResponse({"error": refused}, 409)

    def _done(self, action: str, refused: str | None, **values: object) -> bool:
        if refused is None:
            self._log.info("operator_acted", action=action, **values)
        return refused is None


def _no_connection() -> Response:
    return JSONResponse({"error": "there is no such connection"}, 404)


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise BadQueryError("the body is no JSON") from None
    if not isinstance(body, dict):
        raise BadQueryError("the body is no JSON object")
    return body


def _network(client: object) -> str:
    try:
        return str(ip_network(str(client), strict=False))
    except ValueError:
        raise BadQueryError("client: is neither an address nor a network") from None


def _seconds(body: dict[str, Any]) -> float:
    seconds = body.get("seconds", 300)
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= LONGEST:
        raise BadQueryError(f"seconds: is not a number above 0, up to {LONGEST:g}")
    return float(seconds)
