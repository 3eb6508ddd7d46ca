"""The committed cycles of mlfbuild's networks, and those of TensorFlow Lite Micro beside them."""

from dataclasses import replace

import pytest
import records
from counting.report import PAGES
from counting.wake_word import PUBLISHED
from records import PEER, ROWS, Record


@pytest.fixture(scope="module")
def committed() -> list[Record]:
    return records.load()


def test_the_page_has_the_committed_figures(committed: list[Record]) -> None:
    (page,) = (page for page in PAGES if page.name == "performance.md")
    text = page.read_text()
    for name, block in records.blocks(committed).items():
        assert f"<!-- counts: {name} -->\n{block}<!-- end -->" in text


def test_tensorflow_lite_micro_is_modelled_on_parts_whose_settings_have_not_changed(committed: list[Record]) -> None:
    found = {(record.part, record.network) for record in committed if record.place == PEER}
    # The images of the peer are needed to model it again when the settings of a part change.
    assert {part for part, _ in found} == {"m4-zero", "stm32h7a3", "m55-zero"} <= {*ROWS}
    assert all((part, network) in found for part, _ in found for network in ("kws", "ic", "ad", "vww"))
    assert not any(network.endswith("_f32") for _, network in found)


def test_a_peer_takes_more_cycles_than_mlfbuild(committed: list[Record]) -> None:
    ours = {(record.part, record.network): record.cycles for record in committed if record.place == "flash"}
    for record in (record for record in committed if record.place == PEER):
        assert 0 <= record.waiting < record.cycles
        assert record.cycles > ours[record.part, record.network]


def test_the_wake_word_is_modelled_with_its_features_and_as_a_stream(committed: list[Record]) -> None:
    found = {(record.part, record.place): record.cycles for record in committed if record.network == "sww"}
    assert found.keys() == {(part, place) for part in PUBLISHED for place in ("flash", "stream", "features")}
    for part in PUBLISHED:
        assert 9 * found[part, "stream"] < found[part, "flash"]
        assert (found[part, "features"] + found[part, "flash"]) / 1e6 < PUBLISHED[part].cycles


def test_new_records_of_a_part_keep_those_of_the_others(committed: list[Record]) -> None:
    new = [replace(record, cycles=1) for record in committed if record.part == "stm32u385"]
    assert records.with_committed(new) == [replace(r, cycles=1) if r.part == "stm32u385" else r for r in committed]
