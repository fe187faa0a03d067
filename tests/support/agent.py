"""A policy agent that answers as Open Policy Agent's Data API does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
PATH = "/v1/data/gateway/allow"

Input = dict[str, str]


class Agent:
    """Decides by `decide`, whose result is the answer's. `said`: bytes in place of the answer.
    `status`: of all answers. `asked`: all inputs, in order. Answers wait until `may_answer`."""

    def __init__(self, decide: Callable[[Input], Any]) -> None:
        self.decide = decide
        self.said: bytes | None = None
        self.status = 200
        self.asked: list[Input] = []
        self.tokens: list[str | None] = []
        self.under_way = 0
        self.most_under_way = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}{PATH}"

    def answer(self, path: str, content: bytes, token: str | None) -> tuple[int, bytes]:
        """Return the status and content of the answer to a request."""
        if path != PATH:
            return 404, b"{}"
        asked = json.loads(content)["input"]
        self.asked.append(asked)
        self.tokens.append(token)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        self.may_answer.wait(20)
        self.under_way -= 1
        said = json.dumps({"result": self.decide(asked)}).encode()
        return self.status, said if self.said is None else self.said


@contextmanager
def serving(agent: Agent) -> Iterator[None]:
    """Answer in threads."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            status, said = agent.answer(self.path, content, self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep silent."""

    with ThreadingHTTPServer((HOST, agent.port), Handler) as server:
        server.daemon_threads = True
        agent.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            agent.may_answer.set()
            server.shutdown()
            thread.join()
