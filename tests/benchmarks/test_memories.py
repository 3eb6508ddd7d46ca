"""The committed cycles of plans over several memories."""

import memories
import pytest
from counting.report import PAGES


def test_the_page_has_the_committed_figures() -> None:
    (page,) = (page for page in PAGES if page.name == "performance.md")
    for name, block in memories.blocks(memories.load()).items():
        assert f"<!-- counts: {name} -->\n{block}<!-- end -->" in page.read_text()


def test_no_plan_is_worse_than_a_single_memory() -> None:
    found = memories.load()
    assert {(each.network, each.device, each.share) for each in found} == {
        (network, device, share)
        for network in memories.NETWORKS
        for device in memories.DEVICES
        for share in memories.SHARES
    }
    assert all(each.plan <= each.alone[each.best] for each in found)
    small = [each for each in found if each.share == min(memories.SHARES)]
    assert all(each.plan < each.alone[each.best] for each in small)


@pytest.mark.sweep
@pytest.mark.usefixtures("shared")
def test_figures_are_measured_again() -> None:
    (wanted,) = (
        each
        for each in memories.load()
        if (each.network, each.device, each.share) == ("vww", "stm32f746", min(memories.SHARES))
    )
    assert memories.measure(wanted.network, wanted.device, wanted.share) == wanted
