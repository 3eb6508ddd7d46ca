"""What a budget's line says."""

from __future__ import annotations

from mlfbuild.project import Budget
from mlfbuild.report.budgets.limits import excesses, taken_by
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


ADVICE = "; save there (`mlfbuild report -v` shows all), or raise the budget"


def test_what_is_within_its_budget_says_nothing() -> None:
    budgets = {"kws": Budget(flash=10240, ram=4096), "vww": Budget(flash=100), "other": Budget(flash=1)}
    assert list(excesses(SIZES, budgets, Budget(flash=10840, ram=4096), {})) == []
    assert list(excesses(SIZES, {}, Budget(), {})) == []


def test_a_model_over_its_budget() -> None:
    (line,) = excesses(SIZES, {"kws": Budget(flash=10000)}, Budget(), {})
    assert line == (
        "model kws takes 10,240 bytes (10 KiB) of flash, 240 bytes over its budget of 10,000 bytes (9.8 KiB); most of "
        "it: kws_weights 8,192 (weights), kws_code 2,048 (code)" + ADVICE
    )


def test_the_difference_to_an_earlier_build() -> None:
    for flash, words in ((10000, "240 more than in"), (10240, "as many as in"), (11000, "760 fewer than in")):
        (line,) = excesses(SIZES, {"kws": Budget(flash=1)}, Budget(), {"kws": {"flash": flash, "ram": 0}})
        assert f"over its budget of 1 byte, {words} the last build that was within it; most" in line


def test_an_image_over_its_budget_names_owners() -> None:
    flash, ram = excesses(SIZES, {}, Budget(flash=0, ram=4095), {})
    assert flash.startswith(
        "the image takes 10,840 bytes (10.6 KiB) of flash, 10,840 bytes (10.6 KiB) over its budget of 0 "
    )
    assert flash.endswith("; most of it: kws 10,240, firmware 500, vww 100" + ADVICE)
    assert ram.startswith("the image takes 4,096 bytes (4 KiB) of RAM, 1 byte over")


def test_what_everybody_takes() -> None:
    assert taken_by(SIZES) == {
        "": {"flash": 10840, "ram": 4096},
        "kws": {"flash": 10240, "ram": 4096},
        "vww": {"flash": 100, "ram": 0},
    }
