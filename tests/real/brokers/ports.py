"""Free ports on loopback addresses."""

import random
import socket

# Linux hands out 32768 and above to outgoing connections: a port chosen below that range
# is not taken by some client between our probe and the moment its owner listens on it.
LOWEST, HIGHEST = 20000, 32000


def is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_ports(host: str, count: int) -> list[int]:
    """`count` different ports nobody listens on at `host`."""
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(LOWEST, HIGHEST)
        if is_free(host, port):
            found.add(port)
    return sorted(found)
