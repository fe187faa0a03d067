"""One address in front of several gateways, as a balancer of connections is."""

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

HOST = "127.0.0.1"


class Balancer:
    """Each connection goes to the first of `ports` that accepts; those that listen no more are
    passed over. Bytes are relayed as they come. `untapped_url` as of a gateway.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = tuple(ports)
        self._listener = socket.create_server((HOST, 0))
        self.untapped_url = f"pulsar://{HOST}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """No new connections; those that are open go on."""
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
        ways = ((client, gateway), (gateway, client))
        relays = [threading.Thread(target=_relay, args=way, daemon=True) for way in ways]
        for relay in relays:
            relay.start()
        for relay in relays:
            relay.join()
        client.close()
        gateway.close()

    def _dial(self) -> socket.socket | None:
        for port in self._ports:
            with suppress(OSError):
                return socket.create_connection((HOST, port), timeout=2)
        return None


def _relay(source: socket.socket, sink: socket.socket) -> None:
    for sock in (source, sink):
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for sock in (source, sink):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
