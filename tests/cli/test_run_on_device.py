"""`mlfbuild run --target` and `mlfbuild.load(target=...)`: networks on a device; QEMU's GDB stub is the debugger."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mlfbuild
from mlfbuild.archive import pack_archive
from mlfbuild.core.errors import ProcessFailedError, UnsupportedModelError, UsageError
from mlfbuild.library import CodegenFile
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor, ops
from support.command import Folder
from support.errors import raises
from support.examples import first_on_push
from support.native import compile_network

PROJECT = """\
mlfbuild: 1
targets:
  desk: {cpu: cortex-m4, runner: {qemu: mps2-an386, memory: {ram: {origin: 0x20000000, size: 1 MiB}}}}
  board: {cpu: cortex-m4, board: mps2-an386}
  own: {cpu: cortex-m4}
  pc: {cpu: host}
models:
  net: {source: net.tar}
"""
X = np.arange(8, dtype=np.float32).reshape(2, 1, 4)


@pytest.fixture
def project(folder: Folder, tool: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return a folder with ``net.tar``, which adds up its inputs, and ``x.npz`` with two cases."""
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm", "gdb-multiarch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.root / "cache"))
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "kept", "y")]
    state = State("kept", "y", np.zeros((1, 4), np.float32))
    graph = Graph("net", tensors, [Node("sum", ops.Add(), ("x", "kept"), ("y",))], ["x"], ["y"], [state])
    folder.write("net.tar", pack_archive(compile_network(graph)))
    folder.write("mlfbuild.yml", PROJECT.encode())
    np.savez(folder.root / "x.npz", in0=X)
    return folder


def test_model_runs_call_after_call_and_keeps_its_state(project: Folder) -> None:
    root = project.root
    with mlfbuild.load(root / "net.tar", target="desk", file=root / "mlfbuild.yml") as model:
        assert model.name == "net" and model.keeps_state
        outputs = [model.run({"x": value})["y"] for value in X]
        np.testing.assert_array_equal(outputs, [X[0], X[0] + X[1]])
        model.reset()
        np.testing.assert_array_equal(model.run({"x": X[1]})["y"], X[1])
        with pytest.raises(ValueError, match="has no input"):
            model.run({"z": X[0]})
        with raises(UnsupportedModelError, "module-not-traceable"):
            model.trace({"x": X[0]})


@pytest.mark.sweep
def test_all_cases(project: Folder) -> None:
    arguments = ("run", "net.tar", "--inputs", "x.npz", "-o", "y.npz")
    for target in ("desk", "board"):
        ended = project.run(*arguments, "--target", target)
        assert (ended.status, ended.out) == (0, "y.npz: 2 cases of net on qemu mps2-an386\n")
        outputs = np.load(project.root / "y.npz")
        np.testing.assert_array_equal(outputs["y"], [X[0], X[0] + X[1]])
    again = project.run(*arguments, "--target", "desk", "--format", "json")
    assert again.json["device"] == "qemu mps2-an386"


def test_mistakes(project: Folder) -> None:
    arguments = ("run", "net.tar", "--inputs", "x.npz", "-o", "y.npz")
    refused = {
        ("--target", "own"): (2, "runner-missing", "target own"),
        ("--target", "pc"): (2, "runner-missing", "target pc"),
        ("--target", "desk", "--board", "mps2-an386"): (2, "option-not-applicable", "--board"),
        ("--target", "desk", "--sandbox"): (2, "option-not-applicable", "--sandbox"),
        ("--target", "desk", "--target", "own"): (2, "too-many-targets", "--target"),
        ("-f", "mlfbuild.yml"): (2, "option-not-applicable", "--file"),
    }
    for options, expected in refused.items():
        assert project.refused(*arguments, *options) == expected
    assert not (project.root / "y.npz").exists()
    with raises(UsageError, "unknown-target"):
        mlfbuild.load(project.root / "net.tar", target="none", file=project.root / "mlfbuild.yml")


@pytest.mark.sweep
def test_crash_and_hang_are_errors_of_that_run_only(project: Folder) -> None:
    root = project.root
    library = mlfbuild.open_archive(root / "net.tar")
    (module,) = library.modules
    wrong = "if (((const float *)inputs->x)[0] == 4.0f) { %s }\n"
    for statement, reason in (("*(volatile int *)0xE0100000 = 1;", "faulted"), ("for (;;) { }", "no result after 1 s")):
        files = tuple(with_statement(file, wrong % statement) for file in module.codegen)
        mlfbuild.write_archive(replace(library, modules=(replace(module, codegen=files),)), root / "b.tar")
        with mlfbuild.load(root / "b.tar", target="desk", file=root / "mlfbuild.yml", timeout=1) as model:
            with raises(ProcessFailedError, "run-failed", place="net") as error:
                model.run({"x": X[1]})
            assert reason in error.value.reason
            np.testing.assert_array_equal(model.run({"x": X[0]})["y"], X[0])


def with_statement(file: CodegenFile, statement: str) -> CodegenFile:
    """Return ``file`` with ``statement`` at the begin of the run function."""
    text = bytes(file.data).decode()
    begin = "int32_t tvmgen_net_run("
    if not str(file.path).endswith(".c") or begin not in text:
        return file
    at = text.index("{", text.index(begin)) + 1
    return replace(file, content=(text[:at] + statement + text[at:]).encode())


OF_EACH_KIND = ("byoc-aotp", "conv-aotc", "conv-graph", "conv-usmp_external", "multi-mixed.mod2", "v5-add-graph")


@pytest.mark.parametrize("name", first_on_push(OF_EACH_KIND))
def test_archives_of_tvm(shared: Path, project: Folder, name: str) -> None:
    archive, _, module = name.partition(".")
    folder = shared / "archives"
    arguments = ["run", str(folder / f"{archive}.tar"), *(["--model", module] if module else [])]
    project.run(*arguments, "--inputs", str(folder / f"{name}.npz"), "-o", "y.npz", "--target", "desk", status=0)
    outputs, vectors = np.load(project.root / "y.npz"), np.load(folder / f"{name}.npz")
    for index, got in enumerate(outputs.values()):
        expected = vectors[f"out{index}"].reshape(got.shape)
        assert got.dtype == expected.dtype
        limit = 0 if got.dtype.kind in "iu" else 1e-5 * float(np.abs(expected).max())
        np.testing.assert_allclose(got, expected, rtol=0, atol=limit)
