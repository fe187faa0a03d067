"""Kafka: openings and open pairs, to which both peers say anything, cut anywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gateway.errors import PeerError
from gateway.wire.account import Action, Right
from gateway.wire.contract import Credential, Denial, Dialled, Direction, Opened, Refusal, Refused
from gateway.wire.kafka import in_flight
from gateway.wire.kafka.in_flight import Asked
from gateway.wire.kafka.opening import open_pair
from gateway.wire.kafka.session import KafkaSession
from gateway.wire.plugin import Mode
from tests.fuzz.kafka import MOST_KEPT, any_request, response, usual_request
from tests.fuzz.source import Source
from tests.playbooks.services import BROKER_1, ORIGIN
from tests.playbooks_kafka.frames import API_VERSIONS, ask, tell
from tests.playbooks_kafka.script import CLUSTER, KafkaServices, Play, Talk, listener

MOST = 64
"""Happenings of one run."""

MOST_SILENCES = 8
"""Of each peer, after which a conversation is over."""

REFUSED = Denial(Refusal.NOT_READY, "no")
_MODES = tuple(Mode)
_SILENCES = tuple(
    Denial(refusal, "silence") for refusal in (Refusal.CLOSED, Refusal.TIMEOUT, Refusal.TOO_MANY)
)


class Watched(Play):
    """An open pair in which a violation ends it, and that is looked at after each happening."""

    numbers = 0

    @property
    def kafka(self) -> KafkaSession:
        assert isinstance(self.session, KafkaSession)
        return self.session

    def says(self, direction: Direction, data: bytes) -> None:
        """Say this, unless the pair is over."""
        if self.end is None:
            self.happens(lambda: self._say(direction, data))

    def happens(self, happening: Callable[[], object]) -> None:
        """Have something happen, and see that all is well."""
        if self.is_over:
            return
        try:
            happening()
        except PeerError:
            self.is_over = True
        for direction in Direction:
            self.sent[direction].clear()
        self.check()

    is_over = False

    def check(self) -> None:
        """Bounds are kept, and what is owed is known."""
        self.is_over |= self.end is not None
        session = self.kafka
        assert (session._in_flight.first() is None) == (session._in_flight.open == 0)
        assert session._in_flight.open <= len(session._in_flight) <= in_flight.MOST + 1
        if self.is_over:
            return
        for direction, scanner in enumerate(session.scanners):
            kept = len(self._carry[Direction(direction)])
            if scanner.owed:
                assert kept <= MOST_KEPT, "too much is kept of a frame that passes"
            assert 0 <= scanner.skips <= scanner.owed
        assert session._asking.unanswered >= 0
        assert len(set(session._book)) == len(self.services.live)

    def asked(self) -> Asked | None:
        """Return the request whose response the broker owes first."""
        return self.kafka._in_flight.first()


def _services(source: Source) -> KafkaServices:
    """Return services with some limits and rights."""
    traits = source.byte()
    services = KafkaServices(methods=("scram", "basic", "token", "tls", "")[: traits % 6])
    if traits & 0x10:
        services.forbidden = {(right, "secret") for right in Right}
        services.forbidden |= {(Right.ADMINISTER, CLUSTER)} if traits & 1 else set()
    if traits & 0x20:
        services.lease = 2
    if traits & 0x40:
        services.paced, services.delay = {Action.LOOKUP, Action.CONNECT}, 1.0
    if traits & 0x80:
        services.settles = True
        services.undecided = {"a", "b"}
    services.own = Credential(("none", "basic")[traits & 1], b"gateway:own")
    services.wanted_node = None if traits & 2 else 2
    return services


def kafka_session(data: bytes) -> int:
    """An open pair; answers how many frames were said."""
    source = Source(data)
    services, mode = _services(source), source.pick(_MODES)
    known = ("a", "secret") if source.odd(2) else ()
    guessed = BROKER_1 if source.odd(8) else None
    settings = {"tls": True, "node": 2 if guessed else None, "guessed": guessed}
    return _play(source, Watched(services, mode, known=known, **settings))  # type: ignore[arg-type]


def _play(source: Source, play: Watched) -> int:
    said = 0
    for _ in range(MOST):
        if play.is_over or not source.left:
            break
        said += _HAPPENINGS[source.below(len(_HAPPENINGS))](source, play)
    while play.jobs and not play.is_over:
        play.happens(lambda: play.finish(late=REFUSED))
    play.close()
    return said


def _in_pieces(source: Source, play: Watched, direction: Direction, data: bytes) -> None:
    """Say this in up to three pieces."""
    pieces = source.byte()
    cuts = sorted(source.below(len(data) + 1) for _ in range(pieces % 3))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        play.says(direction, data[start:end])


def _client_says(source: Source, play: Watched) -> int:
    _in_pieces(source, play, Direction.TO_BROKER, any_request(source, _next(play)))
    return 1


def _client_asks(source: Source, play: Watched) -> int:
    _in_pieces(source, play, Direction.TO_BROKER, usual_request(source, _next(play)))
    return 1


def _next(play: Watched) -> int:
    play.numbers += 1
    return play.numbers


def _client_repeats(source: Source, play: Watched) -> int:
    """Requests that begin alike."""
    correlation, count = _next(play), source.pick((2, 3, 5, 300))
    one = usual_request(source, correlation)
    _in_pieces(source, play, Direction.TO_BROKER, one * count)
    return count


def _broker_answers(source: Source, play: Watched) -> int:
    asked = play.asked()
    if asked is None:
        return 0
    _in_pieces(source, play, Direction.TO_CLIENT, response(source, asked))
    return 1


def _broker_answers_all(source: Source, play: Watched) -> int:
    """Several answers in one chunk."""
    line = [it for it in play.kafka._in_flight if isinstance(it, Asked)][:300]
    _in_pieces(source, play, Direction.TO_CLIENT, b"".join(response(source, it) for it in line))
    return len(line)


def _noise(source: Source, play: Watched) -> int:
    play.says(Direction(source.below(2)), source.take(source.below(40)))
    return 1


def _time_passes(source: Source, play: Watched) -> int:
    seconds = source.pick((0.05, 1.0, 5.0, 20.0, 130.0))
    play.happens(lambda: play.after(seconds))
    return 0


def _grants(source: Source, play: Watched) -> int:
    for account in list(play.services.live):
        if source.odd(2):
            play.happens(partial(play.grant, account, 1 + source.below(3)))
    return 0


def _finishes(source: Source, play: Watched) -> int:
    if play.jobs:
        late = REFUSED if source.odd(4) else None
        play.happens(lambda: play.finish(late))
    return 0


def _leaves(source: Source, play: Watched) -> int:
    play.happens(play.leave)
    return 0


def _revokes(source: Source, play: Watched) -> int:
    if play.services.live:
        account = source.pick(play.services.live)
        play.happens(lambda: play.revoke(account))
    return 0


_HAPPENINGS: tuple[Callable[[Source, Watched], int], ...] = (
    _client_asks,
    _broker_answers,
    _client_says,
    _broker_answers,
    _client_repeats,
    _broker_answers_all,
    _client_asks,
    _time_passes,
    _grants,
    _finishes,
    _noise,
    _client_says,
    _broker_answers,
    _revokes,
    _leaves,
)


# -- openings --------------------------------------------------------------------------------------


def kafka_opening(data: bytes) -> int:
    """A client connects, and if it comes to a pair, goes on; answers how many frames were said."""
    source = Source(data)
    services, mode = _services(source), source.pick(_MODES)
    of = listener(services, mode, tls=source.odd(2), shows_passwords=source.odd(2))
    origin = ORIGIN._replace(certificate=b"certificate" if source.odd(3) else None)
    talk = Talk(
        open_pair(of, origin),
        reach=lambda target: REFUSED if source.odd(8) else Dialled(target or BROKER_1),
    )
    said = 0
    for number in range(MOST):
        if talk.outcome is not None or not source.left:
            break
        said += _TALK[source.below(len(_TALK))](source, talk, number)
    for _ in range(MOST_SILENCES):
        talk.client(_SILENCES[0])
        talk.broker(_SILENCES[0])
    if not isinstance(talk.outcome, Opened):
        assert isinstance(talk.outcome, Refused), "a conversation without an end"
        assert of.settings.budget.taken == 0
        return said
    play = Watched(of=of, session=talk.outcome.session)
    return said + _play(source, play)


def _hello(source: Source, talk: Talk, number: int) -> int:
    version = source.below(6)
    library = {"ClientSoftwareName": "lib", "ClientSoftwareVersion": "1"}
    frame = bytearray(ask(API_VERSIONS, min(version, 4), number, **library))
    frame[6:8] = version.to_bytes(2)
    talk.client(bytes(frame))
    return 1


def _client(source: Source, talk: Talk, number: int) -> int:
    pick = usual_request if source.odd(2) else any_request
    frame = pick(source, number)
    if len(frame) > 4:
        talk.client((len(frame) - 4).to_bytes(4) + frame[4:])  # as the front reads frames
    return 1


def _broker(source: Source, talk: Talk, number: int) -> int:
    key = source.pick((API_VERSIONS, 3, 17, 36, 36))
    frame = response(source, Asked(key, source.pick((0, 1, 3)), source.pick((0, number))))
    if source.odd(3):
        offers = [{"ApiKey": api, "MinVersion": 0, "MaxVersion": 9} for api in (0, 1, 3, 17, 18)]
        frame = tell(API_VERSIONS, source.pick((0, 3)), source.pick((0, number)), ApiKeys=offers)
    talk.broker((max(0, len(frame) - 4)).to_bytes(4) + frame[4:])
    return 1


def _silence(source: Source, talk: Talk, number: int) -> int:
    (talk.client if source.odd(2) else talk.broker)(source.pick(_SILENCES))
    return 0


_TALK: tuple[Callable[[Source, Talk, int], int], ...] = (
    _hello,
    _client,
    _broker,
    _client,
    _broker,
    _client,
    _silence,
)
