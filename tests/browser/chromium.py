"""A page at a time in headless Chromium, and what the browser says of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIDE, PHONE = (1280, 900), (360, 740)


@dataclass
class Browser:
    """A page at a time of the site in the folder ``site``, and what the browser said of it."""

    driver: Any
    site: Path

    def open(self, page: str) -> None:
        """Load ``page`` to its end; what was said of the page before is forgotten."""
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        address = (self.site / page).as_uri()
        self.driver.get(address)
        # On a busy machine the driver answered while a page of half a megabyte was still being read.
        self.wait(f"return location.href === '{address}' && document.readyState === 'complete'", f"the end of {page}")

    def js(self, code: str, *given: Any) -> Any:
        """The value of a script's ``return``."""
        return self.driver.execute_script(code, *given)

    def wait(self, code: str, what: str, seconds: float = 20) -> Any:
        """The first value of ``code`` that is true."""
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(
            lambda _: self.js(code), f"waited for {what}"
        )

    def unfold(self) -> None:
        """Open all that is folded, as a reader may who wants to see everything."""
        self.js("document.querySelectorAll('details').forEach((box) => { box.open = true; })")

    def draw(self) -> int:
        """Unfold the page, and point at every chart of it until it is drawn; how many there are."""
        self.unfold()
        count: int = self.js("return document.querySelectorAll('[data-chart]').length")
        for i in range(count):
            chart = f"document.querySelectorAll('[data-chart]')[{i}]"
            self.js(f"{chart}.scrollIntoView(); {chart}.dispatchEvent(new Event('pointerenter'))")
            self.wait(f"return 'drawn' in {chart}.dataset", f"chart {i}")
        return count

    def read(self) -> None:
        """Unfold the page, and scroll through it until every image has arrived."""
        self.unfold()
        count: int = self.js("return document.images.length")
        for i in range(count):
            self.js(f"document.images[{i}].scrollIntoView()")
            self.wait(f"return document.images[{i}].complete", f"image {i}")

    def emulate(self, size: tuple[int, int] = WIDE, dark: bool = False) -> None:
        """A window of ``size`` pixels, the system in dark or light colours."""
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})

    def console(self) -> list[str]:
        """What was written to the console since ``open``."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> tuple[set[str], list[str]]:
        """The addresses asked for since ``open``, and the failures."""
        urls, failed = set(), []
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                urls.add(event["params"]["request"]["url"].split("#")[0])
            elif event["method"] == "Network.loadingFailed":
                failed.append(event["params"]["errorText"])
        return urls, failed
