"""One address in front of several gateways, like a load balancer of connections."""

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

from tests.support.relay import relay

HOST = "127.0.0.1"


class Balancer:
    """Connects each client to the first of `ports` of `host` that accepts, skipping closed ones,
    and relays bytes as they come. It has an `untapped_url` as a gateway has. `source`: the address
    from which it connects, so that its clients seem to be there."""

    def __init__(self, ports: Sequence[int], source: str = HOST, host: str = HOST) -> None:
        self.ports = tuple(ports)
        self._source = source
        self._host = host
        self._listener = socket.create_server((HOST, 0))
        self.untapped_url = f"pulsar://{HOST}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no new connections; open ones stay."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        gateway = self._dial()
        if gateway is None:
            client.close()
            return
        for end in (client, gateway):
            end.settimeout(None)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ways = ((client, gateway), (gateway, client))
        threads = [threading.Thread(target=relay, args=way, daemon=True) for way in ways]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
        gateway.close()

    def _dial(self) -> socket.socket | None:
        for port in self.ports:
            with suppress(OSError):
                return socket.create_connection((self._host, port), 2, (self._source, 0))
        return None
