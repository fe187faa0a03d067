"""The part of a kubelet's own server that tells what containers have written."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

Read = Callable[[str, str], bytes | None]
"""Returns what a container of a pod has written; None: there is none of this name."""


class Logs:
    """Serves logs to the API server. `certificates`: the folder of its own."""

    def __init__(self, host: str, certificates: Path, read: Read) -> None:
        self._server = http.server.ThreadingHTTPServer((host, 0), _handler(read))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()


def _handler(read: Read) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer /containerLogs/NAMESPACE/POD/CONTAINER."""
            *_, pod, container = self.path.partition("?")[0].split("/")
            found = read(pod, container)
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler
