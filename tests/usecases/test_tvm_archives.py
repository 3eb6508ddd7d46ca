"""Archives of TVM, of every version and style, as sources of a build: unpacked, compiled, and run."""

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from mlfbuild.archive import open_archive, pack_archive, tar
from mlfbuild.core.errors import UnsupportedModelError, UsageError
from mlfbuild.executor import callable_modules
from mlfbuild.jobs import load, target_jobs
from mlfbuild.jobs.model_builds import unpack_archive
from mlfbuild.jobs.tree import TreeSettings, tree_damage
from mlfbuild.library import Library, MainMemory
from mlfbuild.usecases.build import build_project as build
from mlfbuild.usecases.compare import compare_archives
from mlfbuild.usecases.convert import convert_archive
from mlfbuild.usecases.inspect import archive_text
from mlfbuild.usecases.run import run_archive
from mlfbuild.usecases.verify import verify_job, verify_jobs
from mlfbuild.verify.compare import first_difference
from support.errors import raises
from support.examples import first_on_push
from support.libraries import graph_library
from support.old_archives import MODELS, model_archive, operator_archive, sketch_archive
from support.tvm_archives import TVM_ARCHIVES
from support.tvm_headers import write_tvm_headers


@pytest.fixture
def headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """TVM's headers on the compiler's path, as in a firmware that has TVM's runtime."""
    folder = write_tvm_headers(tmp_path / "tvm")
    monkeypatch.setenv("CPATH", str(folder))
    return folder


def run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", TVM_ARCHIVES)
def test_unpacked_archive_is_complete_and_unchanged(shared: Path, tmp_path: Path, name: str) -> None:
    archive = shared / "archives" / f"{name}.tar"
    first = unpack_archive(archive, tmp_path / "tree")
    assert "README.md" in first.written and "mlf.cmake" in first.written
    assert tree_damage(tmp_path / "tree") == []
    second = unpack_archive(archive, tmp_path / "tree")
    assert (second.written, second.removed) == ((), ())
    (tmp_path / "tree/README.md").write_text("edited")
    assert tree_damage(tmp_path / "tree") != [], "the page is a file of the tree like any other"
    assert unpack_archive(archive, tmp_path / "tree").written == ("README.md",)


OLD = {f"v{version}-{executor}": model_archive(version, executor) for version, executor in MODELS}
OLD |= {f"v{version}-operator": operator_archive(version) for version in (4, 5, 6, 7)}
OLD |= {"sketch": sketch_archive()}


@pytest.mark.parametrize("name", OLD)
def test_archives_of_every_version_become_trees(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "old.tar"
    archive.write_bytes(b"".join(tar.pack(OLD[name], 0)))
    unpack_archive(archive, tmp_path / "tree", TreeSettings("kws"))
    fragment = (tmp_path / "tree/mlf.cmake").read_text()
    sources = {PurePosixPath(path).name for path in OLD[name] if path.endswith(".c")}
    assert sources
    assert all(re.search(rf'/(\w+_)?{re.escape(source)}"', fragment) for source in sources)
    assert "add_library(mlf::kws ALIAS mlf_add)" in fragment
    assert tree_damage(tmp_path / "tree") == []


@pytest.mark.parametrize("name", OLD)
def test_archives_of_every_version_equal_those_of_version_7(tmp_path: Path, name: str) -> None:
    old, new = tmp_path / "old.tar", tmp_path / "new.tar"
    old.write_bytes(b"".join(tar.pack(OLD[name], 0)))
    convert_archive(old, 7, new)
    comparison = compare_archives(old, new)
    assert comparison.equal, comparison.differences
    assert "add" in archive_text(old)


@pytest.mark.sweep
@pytest.mark.usefixtures("headers")
@pytest.mark.parametrize("name", TVM_ARCHIVES)
def test_unpacked_archive_compiles(shared: Path, tmp_path: Path, tool: Callable[..., str], name: str) -> None:
    tool("cmake", "ninja", "gcc")
    archive = shared / "archives" / f"{name}.tar"
    unpack_archive(archive, tmp_path / "tree")
    modules = [module.name for module in open_archive(archive).modules]
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES C)\n"
        "add_library(cmsis_nn INTERFACE)\nadd_library(mlf::dep::cmsis-nn ALIAS cmsis_nn)\n"  # its headers alone
        "include(tree/mlf.cmake)\n"
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja")
    run("cmake", "--build", tmp_path / "build", "--target", *(f"mlf_{module}" for module in modules))


FLAVOURS = {
    "old": "v5-add-aotc", "new": "conv-aotc", "graph": "v5-many-graphlink", "packed": "byoc-aotp",
    "several": "multi-mixed",
}  # fmt: skip
WITH_VECTORS = [name for name in TVM_ARCHIVES if name not in {"operator-add", "kws_int8-cmsisnn_m4"}]
"""An operator has none, and CMSIS-NN is in no archive."""
OBJECTS = "conv-llvm_graph_m4"
MACHINES = {
    "host": "{cpu: host}",
    "m4": "{cpu: cortex-m4, board: mps2-an386}",
    "m55": "{cpu: cortex-m55, board: mps3-an547}",
}


def vectors(shared: Path, name: str) -> dict[str, Path]:
    """Return the vectors file of each module; the only module has an empty name."""
    found = sorted((shared / "archives").glob(f"{name}*.npz"))
    files = {path.name.removeprefix(name).removesuffix(".npz").lstrip("."): path for path in found}
    assert files
    return {"": files[""]} if "" in files else files


def answers(shared: Path, folder: Path, names: Mapping[str, str], targets: str) -> dict[str, bool]:
    models = ""
    for model, name in names.items():
        files = vectors(shared, name)
        value = files.get("", "{" + ", ".join(f"{module}: {path}" for module, path in files.items()) + "}")
        models += f"  {model}: {{source: {shared}/archives/{name}.tar, vectors: {value}}}\n"
    (folder / "mlfbuild.yml").write_text(f"mlfbuild: 1\ntargets:\n{targets}models:\n{models}")
    project = load(folder / "mlfbuild.yml")
    jobs = target_jobs(project)
    build(jobs, jobs=1)
    return {job.title: verify_job(job).passed for job in verify_jobs(project, jobs, folder / "build")}


@pytest.fixture
def tools(tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "gcc", "arm-none-eabi-gcc", "qemu-system-arm")


@pytest.mark.usefixtures("tools")
def test_archives_of_every_kind_equal_tvm(shared: Path, tmp_path: Path) -> None:
    found = answers(shared, tmp_path, FLAVOURS, "  m4: {cpu: cortex-m4, board: mps2-an386}\n")
    modules = [f"{model} for m4" for model in FLAVOURS if model != "several"]
    modules += [f"several (module mod{number}) for m4" for number in (1, 2)]
    assert found == dict.fromkeys(modules, True)


@pytest.mark.sweep
@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("name", WITH_VECTORS)
def test_archives_give_the_same_results_on_every_machine(shared: Path, tmp_path: Path, name: str) -> None:
    machines = {key: value for key, value in MACHINES.items() if name != OBJECTS or key != "host"}
    targets = "".join(f"  {target}: {value}\n" for target, value in machines.items())
    found = answers(shared, tmp_path, {"model": name}, targets)
    assert len(found) == len(machines) * len(vectors(shared, name))
    assert all(found.values()), found


def ran(archive: Path, module: str, file: Path, folder: Path, board: str | None) -> None:
    """Run a module on every case of its vectors, and compare the results."""
    run_archive(archive, module or None, file, folder / "y.npz", 60.0, board)
    expected, got = np.load(file), np.load(folder / "y.npz")
    outputs = sorted(name for name in expected.files if name.startswith("out"))
    assert len(outputs) == len(got.files)
    for name, answer in zip(outputs, (got[name] for name in got.files), strict=True):
        for wanted, given in zip(expected[name], answer, strict=True):
            assert first_difference(wanted.reshape(-1), given.reshape(-1)) is None


@pytest.mark.sweep
@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("name", WITH_VECTORS)
@pytest.mark.parametrize("board", [None, "mps2-an386", "mps3-an547"])
def test_archives_run_without_a_project(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, board: str | None
) -> None:
    if name == OBJECTS and board is None:
        pytest.skip("objects of a Cortex-M4 do not run on this machine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module, file in vectors(shared, name).items():
        ran(shared / f"archives/{name}.tar", module, file, tmp_path, board)


ONE_MODULE = [name for name in WITH_VECTORS if not name.startswith("multi-") and name != OBJECTS]
CONVERTED = [("conv-usmp_external", 1), ("v5-many-graphlink", 2), ("add-aotp", 3)]
"""A C interface with pools, a graph, and packed functions."""
CONVERTED += [(name, version) for name in ONE_MODULE for version in (1, 2, 3, 4) if (name, version) not in CONVERTED]


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(("name", "version"), first_on_push(CONVERTED, 3))
def test_archives_written_in_old_versions_run(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    convert_archive(shared / f"archives/{name}.tar", version, tmp_path / "old.tar")
    assert open_archive(tmp_path / "old.tar").version == version
    (file,) = vectors(shared, name).values()
    ran(tmp_path / "old.tar", "", file, tmp_path, None)


@pytest.mark.usefixtures("tools")
def test_objects_run_on_a_board_of_their_cpu(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (file,) = vectors(shared, OBJECTS).values()
    ran(shared / f"archives/{OBJECTS}.tar", "", file, tmp_path, "mps2-an386")


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("board", [None, "mps2-an386"])
def test_operator_equals_numpy(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: str | None
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = shared / "archives/operator-add.tar"
    (function,) = callable_modules(open_archive(archive).modules[0])
    random = np.random.default_rng(3)
    values = {
        tensor.name: random.integers(-60, 60, (4, *(tensor.shape or ()))).astype(tensor.dtype)
        for tensor in function.inputs
    }
    np.savez(tmp_path / "x.npz", **values)
    result = run_archive(archive, None, tmp_path / "x.npz", tmp_path / "y.npz", 60.0, board)
    assert (result.model, result.cases) == ("add", 4)
    (output,) = np.load(tmp_path / "y.npz").values()
    first, second = values.values()
    np.testing.assert_array_equal(output, first + second)


def test_operator_is_built_into_a_tree(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "mlfbuild.yml").write_text(
        f"mlfbuild: 1\ntargets: {{pc: {{cpu: host}}}}\nmodels: {{op: {{source: {shared}/archives/operator-add.tar}}}}\n"
    )
    build(target_jobs(load(tmp_path / "mlfbuild.yml")), jobs=1)
    fragment = (tmp_path / "build/mlf/pc/op/mlf.cmake").read_text()
    assert "executor/add_entry.c" in fragment and "executor/lib1.c" in fragment
    assert "add_library(mlf::op ALIAS mlf_add)" in fragment
    assert "int32_t tvmgen_add_run(" in (tmp_path / "build/mlf/pc/op/executor/include/tvmgen_add.h").read_text()


def test_operator_has_no_executor(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {pc: {cpu: host}}\n"
        f"models: {{op: {{source: {shared}/archives/operator-add.tar, executor: aot}}}}\n"
    )
    with raises(UsageError, "operator-without-executor", "op: executor"):
        build(target_jobs(load(tmp_path / "mlfbuild.yml")), jobs=1)


def test_generated_memory_counts_as_ram(tmp_path: Path) -> None:
    calls = [("grow", 0), ("shrink", 1)]
    attributes = {"func_name": "tvmgen_net_add", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}
    nodes = [{"op": "null", "name": "x", "inputs": []}]
    nodes += [{"op": "tvm_op", "name": name, "attrs": attributes, "inputs": [[at, 0, 0]]} for name, at in calls]
    graph = {
        "nodes": nodes,
        "arg_nodes": [0],
        "heads": [[2, 0, 0]],
        "attrs": {"dltype": ["list_str", ["float32"] * 3], "storage_id": ["list_int", [0, 1, 2]],
         "shape": ["list_shape", [[1, 2], [1, 2_000_000], [1, 2]]]},
        "node_row_ptr": [0, 1, 2, 3],
    }  # fmt: skip
    (module,) = graph_library().modules
    module = replace(module, graph_json=json.dumps(graph).encode(), params={}, main=(MainMemory(0, 0, 16),), storage=())
    (tmp_path / "large.tar").write_bytes(pack_archive(Library((module,))))
    archive = tmp_path / "large.tar"
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4, board: mps2-an386}}\nmodels: {large: {source: large.tar}}\n"
    )
    with raises(UnsupportedModelError, "arena-larger-than-ram", "large.tar: module 'net'") as caught:
        build(target_jobs(load(tmp_path / "mlfbuild.yml")), jobs=1)
    assert "8,000,000" in caught.value.reason and "4,194,304" in caught.value.reason
    assert not (tmp_path / "build/mlf/m4/large").exists()
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 1, 2), np.float32))
    with raises(UnsupportedModelError, "board-too-small", "large.tar: module 'net'"):
        run_archive(archive, None, tmp_path / "x.npz", tmp_path / "y.npz", 1.0, "mps2-an386")
    assert not (tmp_path / "y.npz").exists()
