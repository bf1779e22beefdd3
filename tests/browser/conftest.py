"""The report of the real studies at smoke scale in headless Chromium, read from disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from chromium import Browser
from workspace import Workspace

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="session")
def session(smoke: Workspace) -> Iterator[Browser]:
    """One browser for all tests."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if not CHROMIUM or not DRIVER:
        pytest.skip("chromium and chromedriver are not installed (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield Browser(driver, smoke.path / "data/report")
    finally:
        driver.quit()


@pytest.fixture
def browser(session: Browser) -> Browser:
    """The browser as a reader meets the site: a wide window, light, nothing remembered."""
    session.emulate()
    session.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    session.open("index.html")
    session.js("localStorage.clear()")
    return session
