"""The relay loses nothing that an end sent before it closed."""

import fcntl
import socket
import termios
import threading
import time

from tests.support.relay import relay

SAID = b"x" * 300 * 1024
"""More than sockets buffer while no peer reads."""
WORD = b"y" * 1024
PATIENCE = 60


def test_a_closed_end_loses_nothing_that_it_sent_before() -> None:
    """A client that keeps sending still gets all of it."""
    client, at_client = socket.socketpair()
    at_server = socket.socket()
    at_server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, len(SAID))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        at_server.connect(listener.getsockname())
        server, _ = listener.accept()
    with client, at_client, at_server:
        to_server = threading.Thread(target=relay, args=(at_client, at_server))
        to_client = threading.Thread(target=relay, args=(at_server, at_client))
        to_client.start()
        with server:
            server.sendall(SAID)
            _await_delivery(server)
        to_server.start()
        while to_server.is_alive():
            _say(client)
            to_server.join(0.01)
        client.settimeout(PATIENCE)
        received = bytearray()
        while len(received) < len(SAID) and (data := client.recv(1 << 16)):
            received += data
        to_client.join(PATIENCE)
    assert bytes(received) == SAID


def _await_delivery(sock: socket.socket) -> None:
    """Wait until the peer's kernel has all bytes: a closed socket that gets bytes drops the rest of
    its own."""
    while int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), "little"):
        time.sleep(0.001)


def _say(client: socket.socket) -> None:
    """Send a word, unless the peer is gone."""
    try:
        client.send(WORD, socket.MSG_DONTWAIT)
    except OSError:
        return
