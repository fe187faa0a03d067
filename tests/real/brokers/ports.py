"""Free ports on loopback addresses."""

import os
import random
import socket

# Linux hands out ports from 32768 on to outgoing connections. No client takes a port below that
# range between the probe and the moment at which the port's owner listens.
LOWEST, HIGHEST = 20000, 32000

# Ranges of ports lie below, so that none of them has a port that is drawn alone.
LOWEST_OF_RANGES = 12000


def own_part(lowest: int, highest: int) -> tuple[int, int]:
    """Return the part of a range of ports that this process of parallel tests has for itself. Two
    that draw from the same ports may draw the same one, before either listens."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = (highest - lowest) // count
    return lowest + number * size, lowest + (number + 1) * size


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
        port = random.randrange(*own_part(LOWEST, HIGHEST))
        if is_free(host, port):
            found.add(port)
    return sorted(found)


def free_range(count: int) -> int:
    """Return the first of `count` free ports that follow each other, at all addresses: a tap takes
    the ports of its gateway at an address of its own, also while that gateway starts again."""
    lowest, highest = own_part(LOWEST_OF_RANGES, LOWEST)
    while True:
        first = random.randrange(lowest, highest - count)
        if all(is_free("", port) for port in range(first, first + count)):
            return first
