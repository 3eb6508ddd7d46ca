"""A browser that opens pages from files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from support.browser import Browser

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = tool("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(tool("chromedriver")))
        try:
            yield Browser(driver, tmp_path_factory.mktemp("pages"))
        finally:
            driver.quit()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Yield the browser; then check that the pages of a test logged nothing and loaded nothing else."""
    yield chromium
    chromium.command("Emulation.setScriptExecutionDisabled", value=False)
    assert chromium.messages() == []
    assert {url.split("/")[-1].split("#")[0] for url in chromium.requests()} <= {
        f"report{chromium.opened}.html",
        "data:,",
    }
