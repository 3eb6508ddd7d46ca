"""Drive Chromium in tests of pages."""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement

from mlfbuild.report.html import page

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


@contextlib.contextmanager
def chromium_driver(tool: Callable[[str], str]) -> Iterator[webdriver.Chrome]:
    """Start Chromium without a window, with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = tool("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(tool("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


@dataclass
class Browser:
    """Chromium, which opens pages from files."""

    driver: webdriver.Chrome
    folder: Path
    opened: int = 0

    def open(
        self, report: Any, against: Any = None, *, width: int = 1280, dark: bool = False, script: bool = True,
        at: str = "",
    ) -> None:  # fmt: skip
        """Open the page of ``report`` at the fragment ``at``."""
        self.open_page(page(report, against), width=width, dark=dark, script=script, at=at)

    def open_page(self, text: str, *, width: int = 1280, dark: bool = False, script: bool = True, at: str = "") -> None:
        """Open a page from a file."""
        self.opened += 1
        path = self.folder / f"report{self.opened}.html"
        path.write_text(text, encoding="utf-8", newline="\n")
        self.narrow(width, dark=dark)
        self.command("Emulation.setScriptExecutionDisabled", value=not script)
        self.messages(), self.requests()
        self.driver.get(path.as_uri() + at)

    def narrow(self, width: int, *, dark: bool = False, media: str = "") -> None:
        """Change the window's width, colour scheme and medium."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def command(self, name: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, values)

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent.trim())", selector)

    def click(self, selector: str) -> None:
        self.to(selector).click()
        self.settle()

    def hover(self, selector: str) -> None:
        # By its position in the window, because chromedriver scrolls to a wrong one for elements of drawings.
        box = self.run("return arguments[0].getBoundingClientRect()", self.to(selector))
        chain = ActionChains(self.driver, duration=0)
        chain.w3c_actions.pointer_action.move_to_location(
            int(box["x"] + box["width"] / 2), int(box["y"] + box["height"] / 2)
        )
        chain.perform()

    def to(self, selector: str) -> WebElement:
        """Scroll to an element, and wait until the page has handled it."""
        element = self.one(selector)
        self.run(
            "const box = arguments[0].getBoundingClientRect(); scrollBy(0, (box.top + box.bottom - innerHeight) / 2)",
            element,
        )
        self.settle()
        return element

    def settle(self) -> None:
        """Wait until the page has handled pending events."""
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def rows(self, selector: str) -> list[str]:
        """Return the texts of the cells of rows, separated by spaces."""
        cells = "[...e.cells].map(c => c.textContent.trim().replace(/\\s+/g, ' ')).join(' ')"
        return self.run(f"return [...document.querySelectorAll(arguments[0])].map(e => {cells})", selector)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def tip(self) -> str:
        """Return the lines of the visible tip; empty if there is none."""
        return "\n".join(self.texts("#tip:not([hidden]) > *"))

    def messages(self) -> list[str]:
        """Return the console messages since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the requests since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
