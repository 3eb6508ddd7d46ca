"""The committed RAM of networks whose peak others published."""

import ram
from counting.report import PAGES


def test_the_page_has_the_committed_figures() -> None:
    (page,) = (page for page in PAGES if page.name == "memory.md")
    for name, block in ram.blocks(ram.load()).items():
        assert f"<!-- counts: {name} -->\n{block}<!-- end -->" in page.read_text()


def test_smallest_needs_less_than_any_published_tool() -> None:
    found = [result for result in ram.load() if result.memory == "smallest"]
    assert {result.network for result in found} == set(ram.PEAKS)
    assert all(result.ram < 1000 * ram.PEAKS[result.network].kilobytes for result in found)
