"""The committed cost of parameters that can be replaced."""

import parameters
import pytest
from counting.report import PAGES


def test_the_page_has_the_committed_figures() -> None:
    (page,) = (page for page in PAGES if page.name == "field-updates.md")
    for name, block in parameters.blocks(parameters.load()).items():
        assert f"<!-- counts: {name} -->\n{block}<!-- end -->" in page.read_text()


def test_a_blob_costs_at_most_one_percent_and_400_bytes() -> None:
    found = {each.network: each for each in parameters.load()}
    assert set(found) == set(parameters.NETWORKS)
    for each in found.values():
        linked, blob = each.instructions
        assert blob <= 1.01 * linked
        # `ic` has additions and 3x3 convolutions, for each of which one of two kernels is chosen by the values.
        assert each.code[1] - each.code[0] <= (700 if each.network == "ic" else 400)


@pytest.mark.sweep
@pytest.mark.usefixtures("shared")
def test_figures_are_measured_again() -> None:
    (wanted,) = (each for each in parameters.load() if each.network == "ad")
    assert parameters.cost("ad") == wanted
