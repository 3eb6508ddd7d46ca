"""The committed cycles of networks of integers beside those of the same networks in float32."""

import against_float
from counting.report import PAGES


def test_the_page_has_the_committed_figures() -> None:
    (page,) = (page for page in PAGES if page.name == "performance.md")
    (block,) = against_float.blocks(against_float.load()).values()
    assert f"<!-- counts: against_float -->\n{block}<!-- end -->" in page.read_text()


def test_integers_take_at_most_a_share_of_the_cycles_of_float32() -> None:
    cycles = {(twin.network, twin.type): twin.cycles for twin in against_float.load()}
    for network in {network for network, _ in cycles}:
        assert cycles[network, "int8"] <= 0.55 * cycles[network, "float32"]
        assert cycles[network, "int16"] <= 0.9 * cycles[network, "float32"]
