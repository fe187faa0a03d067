"""Messages at a steady rate, disturbed meanwhile."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from .clients import Producer, numbered

RATE = 400  # messages a second
SECONDS = 3.0
DISTURBANCES = 3


class Traffic:
    """Sends at a steady rate, and records acknowledged messages in the order of sending."""

    def __init__(self, producer: Producer, seconds: float = SECONDS) -> None:
        self._producer = producer
        self._count = int(RATE * seconds)
        self.sent: list[bytes] = []
        self.results: list[Any] = []

    def run(self) -> None:
        start = time.monotonic()
        for number, payload in enumerate(numbered(self._count)):
            time.sleep(max(0.0, start + number / RATE - time.monotonic()))
            self.sent.append(payload)
            self._producer.send_async(payload, lambda result, _id: self.results.append(result))
        self._producer.flush()


@contextmanager
def disturbed(disturb: Callable[[], None], seconds: float = SECONDS) -> Iterator[None]:
    """Call `disturb` a few times, spread over the time of the traffic, and fail if it failed."""

    def repeat() -> None:
        for _ in range(DISTURBANCES):
            time.sleep(seconds / (DISTURBANCES + 1))
            disturb()

    with ThreadPoolExecutor(1) as pool:
        disturbing = pool.submit(repeat)
        yield
        disturbing.result()
