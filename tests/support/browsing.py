"""Pages in a real browser, headless Chromium."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from axe_core_python.base import AXE_SCRIPT
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By

from tests.real.brokers.jars import MissingToolError, Say

DESK, PHONE = (1360, 1000), (390, 844)


class Programs(NamedTuple):
    """Paths of the browser and its driver."""

    browser: str
    driver: str


def programs(_say: Say) -> Programs:
    """Return the programs. Raises `MissingToolError`."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        raise MissingToolError("chromedriver")
    return Programs(browser, driver)


@contextmanager
def opened(them: Programs) -> Iterator[Chrome]:
    """Yield a browser."""
    options = ChromeOptions()
    options.binary_location = them.browser
    for argument in (
        *("--headless=new", "--hide-scrollbars"),
        *("--no-sandbox", "--disable-dev-shm-usage"),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=ChromeService(them.driver))
    driver.set_script_timeout(120)  # the accessibility checker, on a busy machine
    try:
        yield driver
    finally:
        driver.quit()


class Page:
    """A page in a browser. `size`: of the window, in pixels."""

    def __init__(self, browser: Chrome, url: str, size: tuple[int, int] = DESK) -> None:
        self.browser = browser
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get(url)
        self.complaints()

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> Any:
        (found,) = self.all(selector)
        return found

    def text(self, selector: str) -> str:
        return str(self.run(f"return document.querySelector({selector!r})?.textContent ?? ''"))

    def value(self, selector: str) -> float:
        return float(self.one(selector).get_attribute("data-value"))

    def run(self, script: str) -> Any:
        return self.browser.execute_script(script)

    def complaints(self) -> list[str]:
        """Return what the browser had to complain of since it was asked last."""
        found: Any = self.browser.get_log("browser")  # type: ignore[no-untyped-call]
        return [it["message"] for it in found]

    def violations(self) -> list[str]:
        """Return what an accessibility checker finds wrong."""
        self.run(AXE_SCRIPT)
        found = self.browser.execute_async_script(
            "axe.run().then(it => arguments[0](it.violations.map(v => "
            "`${v.id}: ${v.nodes[0].html}`)))"
        )
        return list(found)

    def picture(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        shown = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        path.write_bytes(base64.b64decode(shown["data"]))
