"""A browser that opens pages from files."""

from collections.abc import Callable, Iterator

import pytest

from support.browser import Browser, chromium_driver


@pytest.fixture(scope="session")
def chromium(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium_driver(tool) as driver:
        yield Browser(driver, tmp_path_factory.mktemp("pages"))


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
