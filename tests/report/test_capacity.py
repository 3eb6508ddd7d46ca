"""What models and images take of a part's memories or of their budgets, as figures and as bars."""

from dataclasses import replace
from pathlib import Path

import pytest

from mlfbuild.cli.output import usage as output
from mlfbuild.cli.verify import _arenas
from mlfbuild.core import UsageError
from mlfbuild.jobs import target_jobs
from mlfbuild.project import Budget, load_project
from mlfbuild.report import Usage, UsageLimit, usages
from mlfbuild.usecases import VerifyJob
from mlfbuild.verify import VerifyReport

SIZES = {"arena": 1024, "constants": 2048, "flash": 4096, "RAM": 512}


def limits(tmp_path: Path, target: str, budget: Budget) -> dict[str, list[tuple[str, int]]]:
    (tmp_path / "m.tflite").write_bytes(b"")
    (tmp_path / "mlfbuild.yml").write_text(
        f"mlfbuild: 1\ntargets: {{t: {target}}}\nmodels: {{m: {{source: m.tflite}}}}\n"
    )
    (job,) = target_jobs(load_project(tmp_path / "mlfbuild.yml"))
    found = usages("m for t", SIZES, job, budget)
    return {each.measure: [(limit.name, limit.size) for limit in each.limits] for each in found}


def test_limits_are_the_part_and_the_budget(tmp_path: Path) -> None:
    budget = Budget(flash=8192, ram=2048)
    memory = "memory: {ram: {origin: 0x20000000, size: 64 KiB}, flash: {origin: 0x8000000, size: 1 MiB}}"
    described = limits(tmp_path, f"{{cpu: cortex-m4, runner: {{gdb: 'localhost:1', {memory}}}}}", budget)
    ram, flash = ("t", 64 << 10), ("t", 1 << 20)
    assert described == {
        "arena": [ram, ("the budget", 2048)],
        "constants": [flash],
        "flash": [flash, ("the budget", 8192)],
        "RAM": [ram, ("the budget", 2048)],
    }
    assert limits(tmp_path, "{cpu: cortex-m4, mcu: stm32l4r5}", Budget())["RAM"][0][0] == "stm32l4r5"


def test_without_a_memory_map_the_budget_is_the_limit_or_nothing(tmp_path: Path) -> None:
    target = "{cpu: cortex-m4, board: mps2-an386}"
    budget = {"arena": [("the budget", 2048)], "constants": [], "flash": [], "RAM": [("the budget", 2048)]}
    assert limits(tmp_path, target, Budget(ram=2048)) == budget
    assert limits(tmp_path, target, Budget()) == {measure: [] for measure in SIZES}


USAGES = [
    Usage("kws for m4", "arena", 9840, (UsageLimit("stm32", 65536), UsageLimit("the budget", 10240))),
    Usage("kws for m4", "constants", 27036),
    Usage("app for m4", "flash", 97000, (UsageLimit("the budget", 96000),)),
]


def test_plain_lines_have_figures_and_shares() -> None:
    assert output.usage_table(USAGES, bars=False).split("\n") == [
        "  kws for m4  arena       9,840 bytes  15 % of stm32 (64 KiB), 96 % of the budget (10 KiB)",
        "              constants  27,036 bytes",
        "  app for m4  flash      97,000 bytes  101 % of the budget (93.8 KiB)",
    ]


def bars(monkeypatch: pytest.MonkeyPatch, *, unicode: bool, colour: bool) -> list[str]:
    monkeypatch.setattr(output, "_can_print", lambda _: unicode)
    monkeypatch.setattr(output, "has_colour", lambda _: colour)
    return output.usage_table(USAGES, bars=True).split("\n")


def test_bars_are_as_long_as_the_share_of_the_first_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = bars(monkeypatch, unicode=False, colour=False)
    assert (first.count("#"), first.count(".")) == (3, 17)
    assert "#" not in second and third.count("#") == 20
    assert [line.index("%") - line.index("#") for line in (first, third)] == [25, 26]
    assert bars(monkeypatch, unicode=True, colour=False)[0].count("\N{FULL BLOCK}") == 3


def test_the_colour_shows_what_is_over_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = bars(monkeypatch, unicode=True, colour=True)
    assert "\x1b[32m" in first and "\x1b[" not in second and "\x1b[31m" in third


@pytest.mark.parametrize(("size", "cells"), [(0, 0), (1, 1), (999, 19), (1000, 20), (5000, 20)])
def test_a_bar_is_full_only_at_its_limit(size: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_can_print", lambda _: False)
    monkeypatch.setattr(output, "has_colour", lambda _: False)
    usage = replace(USAGES[2], size=size, limits=(UsageLimit("x", 1000),))
    assert output.usage_table([usage], bars=True).count("#") == cells


def test_verify_lists_arenas_that_something_limits(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"")
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {pc: {cpu: host}, l4: {cpu: cortex-m4, mcu: stm32l4r5}, m4: {cpu: cortex-m4}}\n"
        "models: {m: {source: m.tflite}}\n"
    )
    project = load_project(tmp_path / "mlfbuild.yml")
    jobs = [VerifyJob(target, target.models[0], "", tmp_path, tmp_path) for target in target_jobs(project)]
    ran = VerifyReport("m", "board", 1, 1, (), (), 512, 500, 8)
    results = [*((job, ran) for job in jobs), (jobs[1], UsageError("x-y", reason="did not run"))]
    assert [(each.subject, each.size) for each in _arenas(project, results)] == [("m for l4", 512)]
