"""Plays a script against a real broker by raw frames and the REST interface."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

from gateway.wire.pulsar.frames import Kind
from tests.playbooks import frames
from tests.real.brokers.admin import Admin, AdminError, topic_path

from .script import Said, Script, Step
from .words import Places, frame_of, words_of

PATIENCE = 8.0
"""Seconds to wait for a recorded answer."""

UNDECIDED = 0.5
"""Seconds to wait for the longer of two possible answers."""

SILENCE = 0.15
"""Seconds without a frame, after a PONG, until no more is expected: a broker sends unrequested
frames within some milliseconds of their cause."""


class Listening:
    """One connection and everything that its broker has sent, in words; `CLOSED` at its end."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._socket = socket.create_connection((where.hostname, where.port), PATIENCE)
        self._socket.settimeout(None)
        self.said: Said = []
        self.places: Places = {}
        self.heard = threading.Condition()
        self.last = time.monotonic()
        self._pongs = self._found = 0
        self._connected = self.over = False
        threading.Thread(target=self._listen, daemon=True).start()
        self.say(frames.connect(auth_method_name="none", feature_flags={}))
        self.wait(lambda: self._connected, PATIENCE)

    def say(self, data: bytes) -> None:
        with suppress(OSError):  # a closed connection reports itself
            self._socket.sendall(data)

    def ping(self) -> None:
        """Return once the broker has read everything sent before, or is gone."""
        before = self._pongs
        self.say(frames.frame(Kind.PING))
        self.wait(lambda: self._pongs > before or self.over, PATIENCE)

    def look_up(self, *topics: str) -> None:
        """Return once the broker owns these topics: before that it opens nothing."""
        for number, topic in enumerate(topics, 1000):
            self.say(frames.lookup(number, topic))
        self.wait(lambda: self._found == len(topics), PATIENCE)

    def expect(self, frames: int, seconds: float) -> None:
        """Return once this many frames have arrived, or no more will."""
        self.wait(lambda: len(self.said) >= frames or self.over, seconds)

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        with self.heard:
            return self.heard.wait_for(condition, seconds)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _listen(self) -> None:
        stream = self._socket.makefile("rb")
        with suppress(OSError, ValueError):
            while len(size := stream.read(4)) == 4:
                self._hear(size + stream.read(int.from_bytes(size)))
        with self.heard:
            self.over = True
            self.said.append("CLOSED")
            self.heard.notify_all()

    def _hear(self, frame: bytes) -> None:
        kind = int(frames.read(frame).type)
        if (
            kind == Kind.PING
        ):  # a broker that would refuse others on our behalf asks whether we live
            self.say(frames.frame(Kind.PONG))
        with self.heard:
            self._pongs += kind == Kind.PONG
            self._found += kind == Kind.LOOKUP_RESPONSE
            self._connected |= kind == Kind.CONNECTED
            words = words_of(frame, self.places)
            if words:
                self.said.append(words)
                self.last = time.monotonic()
            self.heard.notify_all()


AT_ONCE = 6
"""Scripts played at a time: each has its own topics and connections, and mostly waits."""


def play_all(url: str, admin: Admin, scripts: Iterable[Script]) -> list[list[dict[str, Said]]]:
    """Return what each of these scripts received."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda script: Played(url, admin, script).run(), scripts))


class Played:
    """One run of a script with topics of its own."""

    def __init__(self, url: str, admin: Admin, script: Script) -> None:
        self._script = script
        self._admin = admin
        self._topic = f"persistent://public/default/orders-{uuid.uuid4().hex[:12]}"
        self._url = url
        self._open: dict[str, Listening] = {}

    def run(self) -> list[dict[str, Said]]:
        """Return what each connection received after each step."""
        with ExitStack() as opened:
            for name in self._script.connections:
                self._open[name] = Listening(self._url)
                opened.callback(self._open[name].close)
            self._open["A"].look_up(self._topic, self._topic + "b")
            return [self._play(step) for step in self._script.steps]

    def _play(self, step: Step) -> dict[str, Said]:
        if step.connection:
            speaker = self._open[step.connection]
            places = {k: v for it in self._open.values() for k, v in it.places.items()}
            speaker.say(b"".join(frame_of(words, self._topic, places) for words in step.words))
            speaker.ping()
        else:
            administer(self._admin, step.words[0], self._topic)
        for name, connection in self._open.items():
            connection.expect(step.expected(name).shortest, PATIENCE)
            connection.expect(step.expected(name).longest, UNDECIDED)
        return {name: self._take(connection) for name, connection in self._open.items()}

    def _take(self, connection: Listening) -> Said:
        """Return everything received, once no more arrives."""
        time.sleep(SILENCE)
        while time.monotonic() - connection.last < SILENCE:
            time.sleep(SILENCE / 5)
        with connection.heard:
            said, connection.said = connection.said, []
        return said


def administer(admin: Admin, words: str, topic: str) -> None:
    """Carry out one word of an administrator. A broker's refusal is part of the record and not
    asserted here."""
    name, *rest = words.split()
    if name == "wait":
        time.sleep(float(rest[0]))
        return
    topic += next((word.split("=")[1] for word in rest if word.startswith("topic=")), "")
    path = f"admin/v2/{topic_path(topic)}"
    calls = {
        "create": ("PUT", path),
        "unload": ("PUT", f"{path}/unload"),
        "terminate": ("POST", f"{path}/terminate"),
        "delete": ("DELETE", f"{path}?force={'true' if 'force' in rest else 'false'}"),
    }
    with suppress(AdminError):
        admin.request(*calls[name])
