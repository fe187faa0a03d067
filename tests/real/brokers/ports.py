"""Free ports on loopback addresses."""

import random
import socket

# Linux hands out ports from 32768 on to outgoing connections. No client takes a port below that
# range between the probe and the moment at which the port's owner listens.
LOWEST, HIGHEST = 20000, 32000

# Ranges of ports lie below, so that none of them has a port that is drawn alone.
LOWEST_OF_RANGES = 12000


def is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_ports(host: str, count: int) -> list[int]:
    """Return `count` different free ports at `host`."""
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(LOWEST, HIGHEST)
        if is_free(host, port):
            found.add(port)
    return sorted(found)


def free_range(host: str, count: int) -> int:
    """Return the first of `count` free ports at `host` that follow each other."""
    while True:
        first = random.randrange(LOWEST_OF_RANGES, LOWEST - count)
        if all(is_free(host, port) for port in range(first, first + count)):
            return first
