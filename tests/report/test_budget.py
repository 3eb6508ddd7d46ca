"""Exceeded budgets of flash and RAM, and the record of the last build within them."""

from dataclasses import replace
from pathlib import Path

import pytest

from mlfbuild.project import Budget
from mlfbuild.report.budgets.check import size_excesses
from mlfbuild.report.budgets.limits import BudgetRecord, read_record, state_of, taken_by
from mlfbuild.report.sizes.owners import ARENA, CODE, WEIGHTS, Owner, SizedSymbol, Sizes


def owner(name: str, **sizes: int) -> Owner:
    kinds = {"code": CODE, "weights": WEIGHTS, "arena": ARENA}
    return Owner(
        name,
        tuple(
            SizedSymbol(f"{name}_{kind}", kinds[kind], size, kind != "arena", kind == "arena")
            for kind, size in sizes.items()
        ),
    )


SIZES = Sizes(
    (owner("kws", code=2048, weights=8192, arena=4096), owner("vww", code=100)), (owner("firmware", code=500),)
)


NONE = BudgetRecord(Path("none.json"))


def test_nothing_is_reported_within_budgets() -> None:
    budgets = {"kws": Budget(flash=10240, ram=4096), "vww": Budget(flash=100), "other": Budget(flash=1)}
    assert list(size_excesses(SIZES, {**budgets, "": Budget(flash=10840, ram=4096)}, NONE)) == []
    assert list(size_excesses(SIZES, {}, NONE)) == []


def test_a_model_over_its_budget() -> None:
    (found,) = size_excesses(SIZES, {"kws": Budget(flash=10000)}, NONE)
    assert (found.code, found.place) == ("size-over-budget", "model kws")
    for fact in ("10,240 bytes (10 KiB)", "of flash", "240 bytes over", "10,000 bytes (9.8 KiB)"):
        assert fact in found.reason
    assert "kws_weights 8,192 (weights), kws_code 2,048 (code)" in found.hint


@pytest.mark.parametrize(("flash", "words"), [(10000, "240 more"), (10240, "as in"), (11000, "760 fewer")])
def test_the_difference_from_an_earlier_build(flash: int, words: str) -> None:
    record = replace(NONE, taken={"kws": {"flash": flash, "ram": 0}})
    (found,) = size_excesses(SIZES, {"kws": Budget(flash=1)}, record)
    assert f" 1 byte, {words}" in found.reason


def test_an_image_over_its_budget_lists_owners() -> None:
    flash, ram = size_excesses(SIZES, {"": Budget(flash=0, ram=4095)}, NONE)
    assert (flash.code, flash.place, ram.code, ram.place) == ("size-over-budget", "the image") * 2
    assert all(fact in flash.reason for fact in ("10,840 bytes (10.6 KiB)", "budget of 0"))
    assert "kws 10,240, firmware 500, vww 100" in flash.hint
    assert "4,096 bytes (4 KiB) of RAM, 1 byte over" in ram.reason


def test_a_record_is_read_back_and_damaged_ones_are_empty(tmp_path: Path) -> None:
    record = read_record(tmp_path / "sizes.json", state_of(1, "a"))
    assert (record.current, record.taken, record.before("kws", "flash")) == (False, {}, None)
    record.write({"kws": {"flash": 7}})
    again = read_record(record.path, record.state)
    assert (again.current, again.before("kws", "flash")) == (True, 7)
    assert not read_record(record.path, state_of(2, "a")).current
    for content in ("", "[]", "{}", '{"state": "", "taken": {"kws": 3}}', '{"kws": {"flash": 7}}'):
        record.path.write_text(content)
        assert read_record(record.path, record.state) == record


def test_sizes_of_models_and_image() -> None:
    assert taken_by(SIZES) == {
        "": {"flash": 10840, "ram": 4096},
        "kws": {"flash": 10240, "ram": 4096},
        "vww": {"flash": 100, "ram": 0},
    }
