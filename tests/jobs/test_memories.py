"""Memories of a project file in the jobs that are built from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from mlfbuild.jobs import TargetJob, firmware_jobs, target_jobs
from mlfbuild.project import Budget, load_project

PROJECT = """\
mlfbuild: 1
targets:
  m55: {cpu: cortex-m55, board: mps3-an547, memories: {dtcm: {size: 64 KiB}, sram: {}, ddr: {size: 4 MiB}}}
  m4: {cpu: cortex-m4, board: mps2-an386}
  m7: {cpu: cortex-m7, memories: fw.ld}
models:
  kws: {source: a.tflite, memories: [sram, dtcm], budget: {dtcm: 4 KiB}, targets: [m55]}
  vww: {source: a.tflite, placement: {workspace: .bss.fast}, budget: {flash: 1 MiB}, targets: [m55, m4]}
  ic: {source: a.tflite, targets: [m7, m4]}
firmware:
  app: {sources: [main.c], budget: {dtcm: 8 KiB, ram: 1 MiB}, targets: [m55, m4]}
"""
SCRIPT = "MEMORY { RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 64K\n CCM (rw) : ORIGIN = 0x10000000, LENGTH = 8K }\n"


def jobs(folder: Path) -> dict[str, TargetJob]:
    (folder / "mlfbuild.yml").write_text(PROJECT)
    (folder / "fw.ld").write_text(SCRIPT)
    return {job.name: job for job in target_jobs(load_project(folder / "mlfbuild.yml"))}


def test_requests_sections_and_budgets(tmp_path: Path) -> None:
    found = jobs(tmp_path)
    kws, vww = found["m55"].models
    assert [memory.name for memory in kws.request.memories] == ["dtcm", "sram"]
    assert (kws.ram_limit, vww.request.memories, vww.ram_limit) == (None, (), 4 << 20)
    # No model can use DDR.
    assert [(each.name, each.region, each.memory) for each in found["m55"].placed] == [(".mlf_dtcm", "DTCM", True)]
    budgets = found["m55"].budgets
    assert budgets is not None and [memory.name for memory in budgets.memories] == ["dtcm", "sram", "ddr"]
    assert budgets.models["kws"] == Budget(memories={"dtcm": 4096})
    (ic,) = found["m7"].models
    assert [memory.name for memory in ic.request.memories] == ["ram", "ccm"]
    assert found["m7"].part_files == (tmp_path / "fw.ld",)


def test_targets_without_the_key_have_what_they_had(tmp_path: Path) -> None:
    found = jobs(tmp_path)["m4"]
    assert (found.memories, found.placed, found.part_files) == ((), (), ())
    assert all("memories" not in job.named_settings() and job.ram_limit for job in found.models)
    # The budget of a memory counts on the targets that have it.
    images = firmware_jobs(load_project(tmp_path / "mlfbuild.yml"), [found])
    assert images[0].budget == Budget(ram=1 << 20)
    assert found.budgets is not None and "memories" not in json.loads(found.budgets.to_json())


def test_order_and_shares_are_part_of_the_settings(tmp_path: Path) -> None:
    kws = jobs(tmp_path)["m55"].models[0]
    dtcm, sram = kws.request.memories
    others = [(sram, dtcm), (dtcm, replace(sram, size=1)), (dtcm,), ()]
    settings = {replace(kws, request=replace(kws.request, memories=each)).settings() for each in others}
    assert len({kws.settings(), *settings}) == 5


def test_archives_and_graphs_get_what_they_need(tmp_path: Path, shared: Path) -> None:
    archives, models = shared / "archives", shared / "models"
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {m55: {cpu: cortex-m55, board: mps3-an547, memories: {dtcm: {size: 128 KiB}}}}\n"
        f"models:\n  pools: {{source: {archives}/conv-aotc.tar, memories: [dtcm]}}\n"
        f"  graph: {{source: {models}/kws_int8.tflite, executor: graph, memories: [dtcm]}}\n"
        f"  rest: {{source: {models}/vww_int8.tflite}}\n"
    )
    (target,) = target_jobs(load_project(tmp_path / "mlfbuild.yml"))
    pools, graph, rest = target.models
    (memory,) = rest.request.memories
    assert graph.ram_limit is not None and 9000 < graph.ram_limit < 12000
    # The pool of TVM takes more than the third part that it would get if its need were unknown.
    assert pools.ram_limit == 58928 > (128 << 10) // 3 > memory.size
