"""Compiling and unpacking: only results that are out of date are made, and interrupted builds are completed."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.jobs import load, model_builds as models, target_jobs
from mlfbuild.jobs.compilation import Compiled, compile_model
from mlfbuild.jobs.model_builds import compile_if_needed, tree_is_whole, unpack_job
from mlfbuild.jobs.model_job import CompileJob, TargetJob
from mlfbuild.native import NATIVE
from mlfbuild.usecases.build import build_project as build
from support.errors import raises
from support.firmware_repo import tiny_network
from support.libraries import native_library
from support.tflite_builder import Network


@pytest.fixture
def target(tmp_path: Path) -> TargetJob:
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4, board: mps2-an386}}\nmodels: {net: {source: net.tflite}}\n"
    )
    return only_target(tmp_path)


SHARING = """\
mlfbuild: 1
targets:
  kit: {cpu: cortex-m4, board: mps2-an386}
  product: {cpu: cortex-m4}
  small: {cpu: cortex-m3}
models:
  net: {source: net.tflite}
  old: {source: old.tar}
"""


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of the jobs that were compiled."""
    titles: list[str] = []

    def counted(job: CompileJob) -> Compiled:
        titles.append(job.title)
        return compile_model(job)

    monkeypatch.setattr(models, "compile_model", counted)
    return titles


def test_targets_with_the_same_code_share_archives(tmp_path: Path, compilations: list[str]) -> None:
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    (tmp_path / "old.tar").write_bytes(pack_archive(native_library("old")))
    (tmp_path / "mlfbuild.yml").write_text(SHARING)
    targets = target_jobs(load(tmp_path / "mlfbuild.yml"))
    report = build(targets)
    assert compilations == ["net for kit", "old for kit", "net for small", "old for small"]
    assert [result.job.title for result in report.models if result.compiled] == compilations
    kit, product, small = ({job.model: job.archive.read_bytes() for job in target.models} for target in targets)
    assert product == kit
    assert small["old"] == kit["old"], "compiled, for an archive must fit the CPU, but the same"
    assert small["net"] != kit["net"], "the archive names its CPU"
    assert all(tree_is_whole(job.tree) for target in targets for job in target.models)
    assert not any(result.compiled or result.written for result in build(targets).models)


def test_missing_archive_is_copied_from_another_target(tmp_path: Path, compilations: list[str]) -> None:
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    (tmp_path / "mlfbuild.yml").write_text(SHARING.replace("  old: {source: old.tar}\n", ""))
    targets = target_jobs(load(tmp_path / "mlfbuild.yml"), ["kit", "product"])
    build(targets)
    compilations.clear()
    for index in (0, 1):
        archive = targets[index].models[0].archive
        good = archive.read_bytes()
        archive.write_bytes(b"")
        build(targets)
        assert archive.read_bytes() == good
    assert not compilations


def only_target(folder: Path) -> TargetJob:
    (target,) = target_jobs(load(folder / "mlfbuild.yml"))
    return target


@pytest.fixture
def job(target: TargetJob) -> CompileJob:
    return target.models[0]


def test_archive_is_made_once_for_the_same_content(job: CompileJob) -> None:
    assert compile_if_needed(job)
    assert not compile_if_needed(job)


def test_changed_model_changed_setting_and_damaged_archive_are_compiled_again(job: CompileJob) -> None:
    compile_if_needed(job)
    job.request.source.write_bytes(tiny_network(2))
    assert compile_if_needed(job)
    other = replace(job, request=replace(job.request, placement=replace(job.request.placement, params=".rodata.far")))
    assert compile_if_needed(other)
    job.archive.write_bytes(b"")
    assert compile_if_needed(other)
    assert not compile_if_needed(other)


def two_layers(job: CompileJob, first: str = "CONV_2D") -> None:
    """Make the job's model two layers with 16384 bytes between them; ``smallest`` keeps a few rows of a CONV_2D."""
    network = Network()
    image = network.input((1, 64, 64, 4), scale=0.1)
    if first == "CONV_2D":
        weights = np.ones((4, 3, 3, 4), np.int8)
        between = network.conv2d(image, weights, weight_scales=[0.1], scale=1, padding="SAME")
    else:
        between = network.pool2d("MAX", image, (2, 2), padding="SAME")
    job.request.source.write_bytes(network.build([network.pool2d("MAX", between, (2, 2), stride=(2, 2))]))


def with_memory(job: CompileJob, memory: str, ram_limit: int | None = None) -> CompileJob:
    return replace(job, request=replace(job.request, options={"memory": memory}), ram_limit=ram_limit)


def refusal(job: CompileJob, step: Callable[[CompileJob], object]) -> tuple[list[int], list[int]]:
    """Return the sizes in bytes that reason and hint name, for an arena larger than the RAM."""
    with raises(UnsupportedModelError, "arena-larger-than-ram", f"{job.request.source}: module 'net'") as caught:
        step(job)
    assert "\n" not in str(caught.value)
    reason, hint = (re.findall(r"\b\d[\d,]*", text) for text in (caught.value.reason, caught.value.hint))
    return [int(each.replace(",", "")) for each in reason], [int(each.replace(",", "")) for each in hint]


def test_arena_larger_than_the_ram_is_rejected_before_writing(job: CompileJob) -> None:
    two_layers(job)
    small = with_memory(job, "balanced", 16383)
    (arena, ram), (smallest,) = refusal(small, compile_if_needed)
    assert arena > ram == 16383 > 2 * smallest
    assert not (job.tree.parent).exists()
    exact = with_memory(job, "smallest", smallest)
    compile_if_needed(exact)
    unpack_job(exact)
    assert tree_is_whole(job.tree)


def test_archive_made_for_another_board_is_not_unpacked(job: CompileJob) -> None:
    two_layers(job, "MAX_POOL_2D")
    compile_if_needed(with_memory(job, "fastest", 16384))
    assert refusal(with_memory(job, "fastest", 16383), unpack_job)[0] == [16384, 16383]
    assert not job.tree.exists()


def test_arena_that_no_option_makes_small_enough(job: CompileJob) -> None:
    two_layers(job, "MAX_POOL_2D")
    assert refusal(with_memory(job, "smallest", 16383), compile_if_needed) == ([16384, 16383], [])
    assert refusal(with_memory(job, "balanced", 16383), compile_if_needed) == ([16384, 16383], [16384])


def test_archive_of_another_compiler_has_no_memory_option(job: CompileJob, tmp_path: Path) -> None:
    source = tmp_path / "net.tar"
    two_layers(job, "MAX_POOL_2D")
    compile_model(replace(with_memory(job, "fastest"), archive=source))
    taken = replace(job, compiler="archive", request=replace(job.request, source=source), ram_limit=16383)
    assert refusal(taken, compile_if_needed) == ([16384, 16383], [])


def test_state_counts_as_ram(job: CompileJob) -> None:
    """SVDF over 2 frames of 6 features: 8 filters of 2 numbers are kept."""
    network = Network()
    weights = [network.constant(np.ones(shape, np.float32)) for shape in ((8, 6), (8, 2), (8,))]
    kept = network.activation((1, 16))
    network.tensors[kept].is_variable = True
    operands = [network.input((1, 6)), *weights, kept]
    network.operator("SVDF", operands, network.activation((1, 8)), "SVDFOptions", Rank=1, FusedActivationFunction=0)
    job.request.source.write_bytes(network.build())
    (module,) = NATIVE.compile(job.request).modules
    arena = module.main[0].workspace_size
    assert module.state_size == 64
    assert refusal(with_memory(job, "smallest", arena + 63), compile_if_needed) == ([arena, 64, arena + 63], [])
    assert compile_if_needed(with_memory(job, "smallest", arena + 64))


def test_board_with_least_ram_determines_a_shared_archive(job: CompileJob, tmp_path: Path) -> None:
    two_layers(job, "MAX_POOL_2D")
    jobs = [with_memory(job, "fastest", limit) for limit in (None, 16384, 16383)]
    jobs = [replace(each, archive=tmp_path / f"{index}.tar") for index, each in enumerate(jobs)]
    assert refusal(jobs[0], lambda _: models.compile_once(jobs))[0] == [16384, 16383]
    assert not list(tmp_path.glob("*.tar"))
    assert next(iter(models.compile_once(jobs[:2]))) == jobs[1].archive


def test_build_interrupted_before_unpacking_is_completed(
    target: TargetJob, job: CompileJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    build([target])
    source = job.tree / "codegen/host/src/net_lib0.c"
    old = source.read_bytes()
    job.request.source.write_bytes(tiny_network(2))
    with monkeypatch.context() as patch:
        patch.setattr(models.trees, "unpack", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            build([target])
    assert source.read_bytes() == old
    report = build([target])
    assert not report.models[0].compiled
    assert source.read_bytes() != old
    assert tree_is_whole(job.tree)


def test_models_that_are_not_built_stay_in_the_fragment(tmp_path: Path, target: TargetJob) -> None:
    (tmp_path / "more.tflite").write_bytes(tiny_network(3))
    project = tmp_path / "mlfbuild.yml"
    project.write_text(project.read_text().replace("{net: ", "{more: {source: more.tflite}, net: "))
    build(target_jobs(load(project), models=["net"]))
    fragment = target.tree / "mlf.cmake"
    assert "/more/mlf.cmake" not in fragment.read_text()
    build([only_target(tmp_path)])
    assert "/more/mlf.cmake" in fragment.read_text()
    build(target_jobs(load(project), models=["net"]))
    assert "/more/mlf.cmake" in fragment.read_text(), "its tree is there"
