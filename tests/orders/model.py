"""Plays a script against the model broker, which is left to do all that it does by itself."""

from __future__ import annotations

from collections import Counter, deque

from tests.model.broker import Closed, Connection, Connections, Topic
from tests.model.links import Direct

from .script import Said, Script, Step
from .words import Places, frame_of, words_of

TOPIC = "persistent://public/default/t"
ENOUGH = 1000


class Modelled:
    """One run of a script. `opens_after_close`: see `Connection`."""

    def __init__(self, script: Script, *, opens_after_close: bool) -> None:
        self._script = script
        self._topics = {name: Topic(name) for name in (TOPIC, TOPIC + "b")}
        self._places: Places = {}
        self._connections = {
            name: Connection(
                Direct(),
                self._topics,
                Counter(),
                Connections(),
                opens_after_close=opens_after_close,
            )
            for name in script.connections
        }
        self._over: set[str] = set()

    def run(self) -> list[dict[str, Said]]:
        """What each connection heard after each step."""
        return [self._play(step) for step in self._script.steps]

    def _play(self, step: Step) -> dict[str, Said]:
        if step.connection and step.connection not in self._over:
            connection = self._connections[step.connection]
            frames = [frame_of(words, TOPIC, self._places) for words in step.words]
            connection.link.to_broker.extend(frames)
            self._read(step.connection, connection)
        elif not step.connection:
            self._administer(step.words[0])
        self._settle()
        return {name: self._heard(name) for name in self._script.connections}

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
        """All that the broker does by itself, until it has nothing more to do."""
        for connection in self._connections.values():
            while connection.openings:
                connection.openings[0]()
            for id in tuple(connection.producers):
                connection.acknowledge(id, ENOUGH)
            for id in tuple(connection.consumers):
                while connection.dispatch(id):
                    pass

    def _heard(self, name: str) -> Said:
        frames: deque[bytes] = self._connections[name].link.to_client
        said = [words_of(frame, self._places) if frame else "CLOSED" for frame in frames]
        frames.clear()
        return [words for words in said if words]
