"""The console's page in a real browser: its numbers, its controls, and who can use it."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Queue

import pytest
import trio
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from gateway.console.facts import Draining
from gateway.console.serving import ConsoleSettings, serve_console
from gateway.listening.openings import Openings
from gateway.wire.account import Action
from gateway.wire.address import Address
from tests.real.brokers.jars import Say
from tests.real.brokers.ports import free_ports
from tests.real.clients import RECEIVE_MS, fresh_topic, wait_until
from tests.real.fixtures import Connect, Reach, StartGateway, or_skip
from tests.real.gateways import HOST, PASS_THROUGH
from tests.support.browsing import DESK, PHONE, Page, opened, programs
from tests.support.sandbox import Sandbox
from tests.unit.console.world import World, passed

pytestmark = pytest.mark.gateway_only

COUNT = 300


@pytest.fixture(scope="module")
def browser(say: Say) -> Iterator[Chrome]:
    with opened(or_skip(programs, say)) as driver:
        yield driver


class Console(Page):
    """The console's page."""

    def live(self) -> Console:
        wait_until(lambda: self.text("#state") == "live")
        return self


def metric(text: str, name: str) -> float:
    found = re.findall(rf"^{name}{{[^}}]*}} (\S+)$", text, re.M)
    return math.fsum(map(float, found))


def test_its_numbers_are_those_of_metrics_and_a_connection_can_be_closed(
    browser: Chrome, sandbox: Sandbox, gateway: StartGateway, reach: Reach, connect: Connect
) -> None:
    (port,) = free_ports(HOST, 1)
    plan = replace(PASS_THROUGH, more={"console": {"bind": f"{HOST}:{port}"}})
    started = gateway(sandbox, plan)
    client = connect(reach(sandbox, through=started).url)
    topic = fresh_topic()
    producer, consumer = client.create_producer(topic), client.subscribe(topic, "sub")
    page = Console(browser, f"http://{HOST}:{port}/").live()
    for number in range(COUNT):
        producer.send(str(number).encode())
    row = f'#topics tr[data-topic="{topic}"] td:nth-child(4)'
    wait_until(lambda: page.text(row) == str(COUNT))
    _, metrics = started.ask("metrics/topics")
    of_topic = "\n".join(line for line in metrics.splitlines() if topic in line)
    assert metric(of_topic, "gateway_topic_messages_total") >= COUNT
    _, metrics = started.ask("metrics")
    states = re.findall(r'^gateway_connections{.*state="open"} (\S+)$', metrics, re.M)
    opened = sum(map(float, states))
    wait_until(lambda: page.value("#connections-count") == opened)
    assert page.violations() == []

    search = page.one("#search-connections")
    search.send_keys("no such client")
    wait_until(lambda: page.all("#connections tbody tr[data-id]") == [])
    search.send_keys(Keys.CONTROL, "a")
    search.send_keys(Keys.DELETE)
    wait_until(lambda: len(page.all("#connections tbody tr[data-id]")) == opened)
    page.run("document.querySelector('#connections [data-sort=producers]').click()")
    wait_until(lambda: page.text("#connections th[aria-sort=descending]") == "Producers")

    page.run("document.querySelector('#connections [data-open]').click()")
    wait_until(lambda: topic in page.text("#accounts"))
    assert page.violations() == []
    page.one("#close-connection").click()
    page.one("#confirm-yes").click()
    wait_until(lambda: "was closed" in page.text("#told"))
    for number in range(COUNT, 2 * COUNT):  # its client comes back
        producer.send(str(number).encode())
    received = {int(consumer.receive(RECEIVE_MS).data()) for _ in range(2 * COUNT)}
    assert received == set(range(2 * COUNT))
    assert page.complaints() == []


# -- without a gateway -----------------------------------------------------------------------------


class Ticking(World):
    """A world whose clock runs, and whose clients send."""

    async def tick(self) -> None:
        while True:
            self.now = trio.current_time()
            await trio.sleep(0.05)


@contextmanager
def served(world: Ticking) -> Iterator[str]:
    """Serve a console in a thread; yield its address."""
    ready: Queue[tuple[str, Callable[[], None]]] = Queue()

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.feed.run)
            nursery.start_soon(world.tick)
            settings = ConsoleSettings(Address(HOST, 0))
            given = world.app, world.app.is_operator, Openings(1000)
            (address,) = await nursery.start(serve_console, settings, *given)
            token = trio.lowlevel.current_trio_token()
            stop = nursery.cancel_scope.cancel
            ready.put((f"http://{address}/", lambda: token.run_sync_soon(stop)))

    thread = threading.Thread(target=trio.run, args=[serve])
    thread.start()
    url, stop = ready.get(timeout=10)
    yield url
    stop()
    thread.join(10)


MARKUP = "<img src=x onerror=\"document.title='hit'\">"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_ten_thousand_topics_and_hostile_names_are_shown_calmly(
    browser: Chrome, size: tuple[int, int], theme: str
) -> None:
    world = Ticking()
    for number in range(10_000):
        passed(world.open(f"persistent://t{number % 70}/n/topic-{number}"), 1, 100)
    passed(world.open(f"persistent://acme/web/{MARKUP}", Action.CONSUME), 1, 10**9)
    for number in range(3000):
        world.connect(number, MARKUP)
    with served(world) as url:
        page = Console(browser, url, size).live()
        page.run(f"localStorage.setItem('theme', '{theme}')")
        page.browser.refresh()
        page.live()
        wait_until(lambda: len(page.all("#topics tbody tr")) == 100)
        wait_until(lambda: len(page.all("#connections tbody tr")) == 100)
        assert page.text("#connections-found") == "1 to 100 of 3,000"
        assert page.run("return document.documentElement.dataset.theme") == theme
        assert page.run("return document.documentElement.scrollWidth") <= size[0]
        assert page.violations() == []
        page.run("document.querySelector('#search-topics').focus()")
        page.browser.switch_to.active_element.send_keys("onerror")
        wait_until(lambda: page.text("#topics-found") == "1 to 1 of 1")
        assert MARKUP in page.text("#topics tbody")
        assert page.browser.title == "Broker gateway"
        assert page.complaints() == []
        page.run("localStorage.clear()")


def test_it_can_be_used_by_keyboard(browser: Chrome) -> None:
    world = Ticking()
    world.connect(7)
    with served(world) as url:
        page = Console(browser, url).live()
        wait_until(lambda: page.all("#connections [data-open]") != [])
        page.one("#connections [data-open]").send_keys(Keys.ENTER)
        wait_until(lambda: page.run("return document.querySelector('#details').open"))
        page.one("#close-connection").send_keys(Keys.ENTER)
        wait_until(lambda: page.run("return document.querySelector('#confirm').open"))
        page.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
        wait_until(lambda: not page.run("return document.querySelector('#confirm').open"))
        assert world.done == []
        page.one("#close-connection").send_keys(Keys.ENTER)
        page.one("#confirm-yes").send_keys(Keys.ENTER)
        wait_until(lambda: world.done == [("close", 7)])
        assert page.complaints() == []


def test_it_asks_for_the_token_and_keeps_it_for_its_tab(browser: Chrome) -> None:
    world = Ticking(b"a-token-of-some-length", is_public=True)
    with served(world) as url:
        page = Console(browser, url)
        wait_until(lambda: page.run("return document.querySelector('#ask-token').open"))
        assert page.violations() == []
        page.one("#token").send_keys("a-token-of-some-length", Keys.ENTER)
        page.live()
        page.browser.refresh()
        page.live()
        page.run("sessionStorage.clear()")


def test_it_tells_of_a_drain_and_of_a_gateway_that_is_gone(browser: Chrome) -> None:
    world = Ticking()
    with served(world) as url:
        page = Console(browser, url).live()
        assert not page.one("#drain-banner").is_displayed()
        world.draining = Draining(10, 4)
        wait_until(lambda: "4 of 10" in page.text("#drain-text"))
        assert page.one("#drain-banner").is_displayed()
        assert page.violations() == []
    wait_until(lambda: page.text("#state") == "reconnecting")
