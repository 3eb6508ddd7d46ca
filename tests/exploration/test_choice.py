"""Points: which no other one beats, which a choice or a goal names, and what the record keeps of them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mlfbuild.core import MlfError
from mlfbuild.exploration import (
    Exploration,
    ExploredPoint,
    best_for,
    chosen,
    exploration_text,
    read_explorations,
    write_explorations,
)


def point(
    name: str, accuracy: float | None, missed: tuple[str, ...] = (), **targets: Mapping[str, int]
) -> ExploredPoint:
    kept = {"quantize.keep-float": ("conv1", "Softmax") if name == "exact" else ()}
    return ExploredPoint({"source": name, **kept}, targets, accuracy, missed, same=({"source": "b", **kept},))


def figures(flash: int, cycles: int, ram: int = 100) -> dict[str, int]:
    return {"flash": flash, "ram": ram, "stack": 8, "instructions": cycles, "cycles": cycles, "latency": cycles * 10}


FOUND = Exploration(
    "kws",
    {"m4": {"cpu": "cortex-m4"}, "m7": {}},
    (
        point("small", 0.0, m4=figures(40_000, 900), m7=figures(50_000, 700)),
        point("fast", 0.95, ("top1 is 0.95, less than 0.96",), m4=figures(70_000, 500), m7=figures(60_000, 300)),
        point("beaten", 0.95, m4=figures(70_000, 501), m7=figures(60_000, 300)),
        point("exact", 0.99, m4=figures(90_000, 800), m7=figures(90_000, 600)),
        ExploredPoint({"source": "broken"}, problem="does not fit"),
    ),
    "top1",
)


def name(found: ExploredPoint | None) -> object:
    return found and found.settings["source"]


def test_the_front_has_what_no_other_point_beats_in_the_worst_target() -> None:
    assert [name(each) for each in FOUND.front] == ["fast", "exact", "small"]
    assert (FOUND.speed, FOUND.points[0].figure("flash"), FOUND.points[0].figure("flash@m4")) == (
        "cycles",
        50_000,
        40_000,
    )
    lines = exploration_text(FOUND).splitlines()
    assert [line.split()[-1] for line in lines[:5]] == ["top1", "0.95", "0.99", "0", "0.95"]
    assert "does not fit" in lines[-2]
    assert [line.count("[conv1, Softmax]") for line in lines[:4]] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("min cycles", "fast"),
        ("min cycles where flash < 64 KiB", "small"),
        ("max accuracy", "exact"),
        ("min cycles where top1 > 0.96", "exact"),
        ("min flash where accuracy >= 0.95 and latency <= 8 us", "fast"),
        ("min flash where cycles@m7<301 and cycles@m4 > 500", "beaten"),
        ("min stack where instructions = 0.8 k", "exact"),
    ],
)
def test_choices(text: str, best: str) -> None:
    assert name(chosen(FOUND, text)) == best


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("min cycles where flash < 40 KB and accuracy > 0.5", 1, "no-point-fits"),
        ("min cycles where flash < 49 KiB and accuracy > 0.5", 1, "no-point-fits"),
        ("least cycles", 2, "not-a-choice"),
        ("min cycles where flash under 3", 2, "not-a-choice"),
        ("min cycles where flash < many", 2, "not-a-choice"),
        ("min cycels", 2, "unknown-figure"),
        ("min cycles@m55", 2, "figure-unknown"),
    ],
)
def test_choices_that_name_no_point(text: str, status: int, code: str) -> None:
    with pytest.raises(MlfError) as error:
        chosen(FOUND, text)
    assert (error.value.exit_code, error.value.code) == (status, code)


def test_goals_take_points_that_keep_the_limits() -> None:
    assert [name(best_for(FOUND, goal)) for goal in ("latency", "size", "accuracy")] == ["beaten", "small", "exact"]


def test_the_record_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "mlfbuild.explore.json"
    assert read_explorations(path) == {}
    assert write_explorations(path, {"kws": FOUND})
    assert read_explorations(path) == {"kws": FOUND}
    assert not write_explorations(path, {"kws": FOUND})
    text = path.read_text()
    for damaged in (text.replace('"points"', '"paints"'), text.replace('"conv1"', "{}")):
        path.write_text(damaged)
        with pytest.raises(MlfError) as error:
            read_explorations(path)
        assert error.value.code == "exploration-damaged"
    path.write_text("mine")
    with pytest.raises(MlfError) as error:
        write_explorations(path, {})
    assert error.value.code == "not-an-exploration"
