"""Plays a script against the model broker, which does all that it does by itself."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from tests.model.broker import Closed, Connection, Connections, Topic
from tests.model.links import Direct

from .script import Said, Script, Step
from .words import Places, frame_of, words_of

TOPIC = "persistent://public/default/t"
ENOUGH = 1000


class Modelled:
    """One run of a script. `opens_after_close`: see `Connection`. `between`: the link between
    client and broker."""

    def __init__(
        self,
        script: Script,
        *,
        opens_after_close: bool,
        between: Callable[[], Direct] = Direct,
    ) -> None:
        self._script = script
        self._topics = {name: Topic(name) for name in (TOPIC, TOPIC + "b")}
        self._places: Places = {}
        self._connections = {
            name: Connection(
                between(),
                self._topics,
                Counter(),
                Connections(),
                opens_after_close=opens_after_close,
            )
            for name in script.connections
        }
        self._over: set[str] = set()

    def run(self) -> list[dict[str, Said]]:
        """Return what each connection received after each step."""
        return [self._play(step) for step in self._script.steps]

    def _play(self, step: Step) -> dict[str, Said]:
        if step.connection and step.connection not in self._over:
            connection = self._connections[step.connection]
            for words in step.words:
                connection.link.client_says(frame_of(words, TOPIC, self._places))
            self._move(connection)
            self._read(step.connection, connection)
        elif not step.connection:
            self._administer(step.words[0])
        self._settle()
        return {name: self._heard(name) for name in self._script.connections}

    def _move(self, connection: Connection) -> None:
        while connection.link.moves:
            connection.link.moves[0]()

    def _read(self, name: str, connection: Connection) -> None:
        try:
            while connection.link.to_broker:
                connection.read()
        except Closed:
            connection.end()
            connection.link.to_broker.clear()
            self._over.add(name)
            connection.link.to_client.append(b"")

    def _administer(self, words: str) -> None:
        name, *rest = words.split()
        topic = self._topics[TOPIC]
        connections = self._connections.values()
        is_used = topic.producers or any(it.consumers for it in topic.subscriptions.values())
        match name:
            case "unload":
                for connection in connections:
                    connection.unload(topic)
            case "terminate":
                for connection in connections:
                    connection.terminate(topic)
            case "delete" if "force" in rest or not is_used:
                for connection in connections:
                    connection.unload(topic)
                topic.log.clear()
                topic.subscriptions.clear()

    def _settle(self) -> None:
        """Let the broker act by itself until nothing is left to do."""
        for _ in range(ENOUGH):
            moved = [self._act(name, it) for name, it in self._connections.items()]
            if not any(moved):
                return
        raise AssertionError("it never settles")

    def _act(self, name: str, connection: Connection) -> bool:
        """Take the broker's next action on one connection. Return False if there is none."""
        self._move(connection)
        if connection.link.to_broker and name not in self._over:
            self._read(name, connection)
            return True
        if connection.openings:
            connection.openings[0]()
            return True
        writing = [id for id, it in connection.producers.items() if it.writing]
        for id in writing:
            connection.acknowledge(id, ENOUGH)
        dispatched = [connection.dispatch(id) for id in tuple(connection.consumers)]
        return bool(writing) or any(dispatched)

    def _heard(self, name: str) -> Said:
        frames: deque[bytes] = self._connections[name].link.to_client
        said = [words_of(frame, self._places) if frame else "CLOSED" for frame in frames]
        frames.clear()
        return [words for words in said if words]
