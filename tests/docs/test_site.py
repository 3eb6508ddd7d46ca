"""The documentation site is complete and reproducible, and has no broken links and no external resources."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from support.browser import chromium_driver
from support.examples import swept

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
SEARCHES = {
    "own board": "runners.html", "quantize": "converting.html", "convert": "converting.html",
    "pytorch": "converting.html", "docker": "ci.html", "github actions": "ci.html", "gitlab": "ci.html",
    "jenkins": "ci.html", "exit codes": "troubleshooting.html", "troubleshooting": "troubleshooting.html",
    "freertos": "rtos.html", "interrupt": "rtos.html", "streaming": "rtos.html", "arena": "memory.html",
    "smaller": "memory.html", "external flash": "memory.html", "faster": "latency.html", "latency": "latency.html",
    "stack": "report.html", "budgets": "report.html", "lock file": "supply-chain.html", "spdx": "supply-chain.html",
    "licence": "supply-chain.html", "offline": "supply-chain.html", "tvm archive": "archive.html",
    "serial port": "runners.html", "gdb": "runners.html", "install": "tutorial.html", "new weights": "init.html",
    "arduino": "packages.html", "keil": "packages.html", "armclang": "packages.html", "rust": "packages.html",
    "zephyr": "packages.html", "misra": "c-interface.html", "two models": "c-interface.html",
    "wait states": "latency.html", "accuracy": "numbers.html", "python api": "running.html",
    "onnx operators": "onnx.html", "unsupported operator": "operators.html", "my board": "runners.html",
    "openocd": "runners.html", "cortex-m33": "toolchains.html", "linker script": "memory.html",
    "reduce ram": "memory.html", "speed up": "latency.html", "tolerance": "verify.html",
}  # fmt: skip
"""What readers type -> the page that the search must list first."""
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run Sphinx as `make docs` does, with the configuration of docs/."""
    command = [sys.executable, "-m", "sphinx", "-qW", "--keep-going", "-b", "html", "-c", DOCS, source, site]
    return subprocess.run([*command, "-d", f"{site}-state"], capture_output=True, text=True, timeout=120)


@dataclass
class Page(HTMLParser):
    """The links of a page, the resources that a browser fetches for it, and its anchors."""

    links: list[str] = field(default_factory=list)
    fetches: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        if values.get(FETCHED.get(tag, "")) and values.get("rel") not in {"search", "index", "next", "prev"}:
            self.fetches.append(values[FETCHED[tag]] or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, which the first process of the run that needs it builds for all."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            done = build(DOCS, folder.with_name("site-part"))
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            folder.with_name("site-part").rename(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Page()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_every_page_is_in_the_navigation(site: Path, pages: dict[Path, Page]) -> None:
    sources = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert len(sources) > 25
    assert {page for page in sources if not (site / page).is_file()} == set()
    navigation = {(site / urlsplit(link).path).resolve() for link in pages[site / "index.html"].links}
    assert {str(page) for page in sources if site / page not in navigation} == {"index.html"}


def test_no_link_is_broken(site: Path, pages: dict[Path, Page]) -> None:
    broken, checked = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme in {"http", "https"}, f"{path.name}: {link}"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages[target].anchors if target in pages else {""}
            if not target.is_file() or unquote(parts.fragment) not in known:
                broken.append(f"{path.relative_to(site)}: {link}")
            checked += 1
    assert checked > 1000
    assert broken == []


def test_a_browser_fetches_no_external_resources(site: Path, pages: dict[Path, Page]) -> None:
    fetched = {(path, link) for path, page in pages.items() for link in page.fetches if not link.startswith("data:")}
    assert len(fetched) > len(pages)
    assert [link for path, link in fetched if not (path.parent / urlsplit(link).path).is_file()] == []
    assert [path.name for path in site.rglob("*.css") if "url(http" in path.read_text(encoding="utf-8")] == []


@pytest.mark.sweep
def test_the_site_is_reproducible(site: Path, tmp_path: Path) -> None:
    assert build(DOCS, tmp_path / "again").returncode == 0
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (site, tmp_path / "again")
    )
    assert sorted(first) == sorted(second)
    assert [str(path) for path in first if first[path] != second[path]] == []
    assert [str(path) for path, content in first.items() if str(REPOSITORY).encode() in content] == []


def test_the_site_contains_the_changelog_and_linked_files(site: Path) -> None:
    changelog = (site / "changelog.html").read_text(encoding="utf-8")
    versions = [line[3:] for line in (REPOSITORY / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert versions
    assert [version for version in versions if f"<h2>{version}<" not in changelog] == []
    downloads = {path.name for path in (site / "_downloads").rglob("*.*")}
    assert "judge.py" in downloads  # verify.md links to examples/training/judge.py
    assert '<span class="gp">$ </span>mlfbuild' in (site / "tutorial.html").read_text(encoding="utf-8")


def test_the_side_file_of_the_tests_is_not_published(site: Path) -> None:
    assert (DOCS / "blocks.yml").is_file()
    assert [path for path in site.rglob("*") if path.name == "blocks.yml"] == []


def test_broken_links_are_refused(tmp_path: Path) -> None:
    mistakes = {
        "page": ("[gone](gone.md)", "'myst' cross-reference target not found: 'gone.md'"),
        "anchor": ("[gone](index.md#gone)", "local id not found in doc 'index': 'gone'"),
        "file": ("[gone](../gone.c)", "'myst' cross-reference target not found: '../gone.c'"),
        "picture": ("![gone](gone.png)", "image file not readable: gone.png"),
    }
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Index\n\n## Pages\n\n" + "".join(f"- [A]({name}.md)\n" for name in mistakes))
    (docs / "unlisted.md").write_text("# Unlisted\n")
    for name, (text, _) in mistakes.items():
        (docs / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    done = build(docs, tmp_path / "site")
    assert done.returncode == 1
    for name, (_, reason) in mistakes.items():
        assert f"{docs}/{name}.md:3: WARNING: {reason}" in done.stderr
    assert f"{docs}/unlisted.md: WARNING: document isn't included in any toctree" in done.stderr
    assert done.stderr.count("WARNING") == len(mistakes) + 1


def test_make_docs_builds_the_site_as_these_tests_do() -> None:
    recipe = (REPOSITORY / "Makefile").read_text().split("\ndocs:", 1)[1].split("\n\n", 1)[0]
    assert "sphinx-build -qW --keep-going -b html -d build/docs-state docs build/docs" in recipe


@dataclass(frozen=True)
class Found:
    """The first result of a search, as a browser shows it."""

    page: str
    excerpt: str


@pytest.fixture(scope="module")
def searched(site: Path, tool: Callable[[str], str]) -> dict[str, Found]:
    """Return the first result of each query, on each push of a quarter, from a session of Chromium that opens files."""
    found = {}
    with chromium_driver(tool) as driver:
        wait = WebDriverWait(driver, 30)
        for query in [*SEARCHES][:: 1 if swept() else 4]:
            driver.get(f"{(site / 'search.html').as_uri()}?q={quote(query)}")
            excerpt = wait.until(lambda page: page.find_elements("css selector", ".search li p.context"))[0].text
            first = driver.find_element("css selector", ".search li > a").get_attribute("href") or ""
            page = Path(unquote(urlsplit(first).path)).relative_to(site.resolve()).as_posix()
            found[query] = Found(page, excerpt)
    return found


def test_the_search_lists_the_right_page_first(searched: dict[str, Found]) -> None:
    assert len(SEARCHES) >= 30 and len(searched) >= 10
    assert {query: found.page for query, found in searched.items()} == {query: SEARCHES[query] for query in searched}


def test_results_have_excerpts_when_the_site_is_opened_as_files(searched: dict[str, Found]) -> None:
    assert [query for query, found in searched.items() if len(found.excerpt) < 40] == []
    assert "board" in searched["own board"].excerpt.lower()
