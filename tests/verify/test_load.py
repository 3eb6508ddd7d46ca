"""Networks of archives on this machine: correct results, checked inputs, isolated crashes."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mlfbuild
from mlfbuild.core.errors import ProcessFailedError, TimedOutError, UsageError
from mlfbuild.library import CodegenFile, Library
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor, ops
from mlfbuild.verify.host import Model
from support.errors import raises
from support.examples import first_on_push
from support.host_c import build, write_tree
from support.native import compile_bytes, compile_network
from support.tflite_builder import Network

ARCHIVES = (
    "add-aotc", "add-aotp", "add-graph", "byoc-aotp", "conv-aotc", "conv-aotp", "conv-graph", "conv-graphlink",
    "conv-usmp_external", "kws_int8-aotc", "kws_int8-graph", "many-aotc", "many-graph", "multi-aotc.mod1",
    "multi-aotc.mod2", "multi-mixed.mod1", "multi-mixed.mod2", "v5-add-aotc", "v5-add-graph",
    "v5-kws_int8-graph", "v5-many-graphlink",
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]
) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def opened() -> Iterator[list[Model]]:
    """Models to close after the test."""
    models: list[Model] = []
    yield models
    for model in models:
        model.close()


OF_EACH_KIND = ("byoc-aotp", "conv-aotc", "conv-graph", "conv-usmp_external", "multi-mixed.mod2", "v5-add-graph")


@pytest.mark.parametrize(
    ("name", "isolated"),
    [
        *first_on_push([(name, False) for name in (*OF_EACH_KIND, *sorted({*ARCHIVES} - {*OF_EACH_KIND}))], 6),
        *first_on_push([(name, True) for name in (*OF_EACH_KIND[2:], *sorted({*ARCHIVES} - {*OF_EACH_KIND[2:]}))], 3),
    ],
)
def test_archives_of_tvm(shared: Path, opened: list[Model], name: str, isolated: bool) -> None:
    archive, _, module = name.partition(".")
    path = shared / "archives" / f"{archive}.tar"
    model = mlfbuild.load(path, module or None, isolated=isolated)
    opened.append(model)
    vectors = np.load(shared / "archives" / f"{name}.npz")
    inputs = {tensor.name: vectors[f"in_{tensor.name}"][0] for tensor in model.inputs}
    for index, got in enumerate(model.run(inputs).values()):
        expected = vectors[f"out{index}"][0].reshape(got.shape)
        assert got.dtype == expected.dtype
        limit = 0 if got.dtype.kind in "iu" else 1e-5 * float(np.abs(expected).max())
        np.testing.assert_allclose(got, expected, rtol=0, atol=limit)


def adder(states: bool = False) -> Graph:
    """Return y = x + kept, where kept is a state or an input."""
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "kept", "y")]
    kept = [State("kept", "y", np.zeros((1, 4), np.float32))] if states else []
    return Graph("net", tensors, [Node("sum", ops.Add(), ("x", "kept"), ("y",))],
                 ["x"] if states else ["x", "kept"], ["y"], kept)  # fmt: skip


X = np.arange(4, dtype=np.float32).reshape(1, 4)


def saved(folder: Path, library: Library, name: str = "net.tar") -> Path:
    mlfbuild.write_archive(library, folder / name)
    return folder / name


def test_network_of_the_native_compiler(tmp_path: Path) -> None:
    model = mlfbuild.load(saved(tmp_path, compile_network(adder())))
    assert model.name == "net"
    assert [tensor.name for tensor in model.inputs] == ["x", "kept"]
    np.testing.assert_array_equal(model.run({"x": X, "kept": X[:, ::-1]})["y"], np.full((1, 4), 3, np.float32))


def quantized_network() -> Library:
    """Return an int8 convolution of one pixel by one weight."""
    network = Network()
    x = network.input((1, 8, 8, 1), 0.3, zero_point=-5, name="x")
    y = network.conv2d(x, np.full((1, 1, 1, 1), 64, np.int8), weight_scales=[0.01], scale=0.25, zero_point=3)
    network.tensors[y].name = "y"
    return compile_bytes(network.build())


_QUANTIZE = """
#include <stdio.h>
#include "tvmgen_net.h"
int main(void) {
  float real;
  while (fread(&real, sizeof real, 1, stdin) == 1) printf("%d ", mlf_net_quantize_x(real));
  return 0;
}
"""


def test_real_numbers_are_stored_as_the_header_stores_them(tmp_path: Path) -> None:
    library = quantized_network()
    (tensor,) = library.modules[0].inputs
    # Ties, saturation and what is no number, besides ordinary values.
    special = [0.5, -0.5, 1.5, -2.5, 0.49999997, -0.49999997, 1e9, -1e30, np.inf, -np.inf, np.nan]
    steps = np.array([*special, *np.random.default_rng(3).normal(0, 60, 5000)], np.float32)
    reals = np.concatenate([steps, steps * np.float32(tensor.scale or 0)])
    program = build(write_tree(library, tmp_path), _QUANTIZE)
    done = subprocess.run([program], input=reals.tobytes(), capture_output=True, check=True)
    assert list(tensor.quantized(reals)) == [int(word) for word in done.stdout.split()]


def test_real_numbers_go_in_and_come_out(tmp_path: Path) -> None:
    model = mlfbuild.load(saved(tmp_path, quantized_network()))
    reals = np.random.default_rng(4).uniform(-36, 39, (1, 8, 8, 1))
    real = model.run({"x": reals}, quantize=True)["y"]
    assert real.dtype == np.float32
    np.testing.assert_allclose(real, 0.64 * reals, atol=0.25)
    stored = model.run({"x": model.inputs[0].quantized(reals)})["y"]
    np.testing.assert_array_equal(real, model.outputs[0].dequantized(stored))
    assert repr(model).splitlines() == [
        "Model net",
        "  input   x int8 [1, 8, 8, 1], scale 0.3, zero point -5",
        "  output  y int8 [1, 8, 8, 1], scale 0.25, zero point 3",
    ]


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])
def test_streams_of_one_archive_are_separate(tmp_path: Path, opened: list[Model], isolated: bool) -> None:
    path = saved(tmp_path, compile_network(adder(states=True)))
    one, two = (mlfbuild.load(path, isolated=isolated) for _ in range(2))
    opened += [one, two]
    assert [float(one.run({"x": X})["y"][0, 3]) for _ in range(3)] == [3, 6, 9]
    assert float(two.run({"x": X})["y"][0, 3]) == 3
    one.reset()
    assert float(one.run({"x": X})["y"][0, 3]) == 3
    assert float(two.run({"x": X})["y"][0, 3]) == 6


@pytest.mark.parametrize(
    ("inputs", "place"),
    [
        ({"x": X}, "net: input 'kept': "),
        ({"x": X, "kept": X, "z": X}, "net: .*'z'"),
        ({"x": X.astype(np.float64), "kept": X}, "net: input 'x': .*float64.*float32"),
        ({"x": X[0], "kept": X}, r"net: input 'x': .*\[4\].*\[1, 4\]"),
        ({"x": [[1, 2, 3, 4]], "kept": X}, "net: input 'x': .*int64.*float32"),
    ],
)
def test_wrong_inputs_are_rejected_before_the_code_runs(tmp_path: Path, inputs: dict[str, object], place: str) -> None:
    model = mlfbuild.load(saved(tmp_path, compile_network(adder())))
    with pytest.raises(ValueError, match=place):
        model.run(inputs)  # type: ignore[arg-type]  # one of them is wrong on purpose


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])
def test_many_cases_run_in_one_call_each_from_the_initial_state(
    tmp_path: Path, opened: list[Model], isolated: bool
) -> None:
    model = mlfbuild.load(saved(tmp_path, compile_network(adder(states=True))), isolated=isolated)
    opened.append(model)
    cases = np.random.default_rng(0).random((3000, 1, 4), np.float32)
    (outputs,) = model.run_cases([cases])
    np.testing.assert_array_equal(outputs, cases)
    with pytest.raises(ValueError, match="float64"):
        model.run_cases([cases.astype(np.float64)])


def changed(old: str, new: str) -> Library:
    """Return the adder with ``old`` in its C replaced."""
    (module,) = compile_network(adder()).modules
    files = [
        CodegenFile(file.path, file.data.replace(old.encode(), new.encode()))
        if file.path.name == "net_lib0.c"
        else file
        for file in module.codegen
    ]
    assert any(file.data != was.data for file, was in zip(files, module.codegen, strict=True))
    return Library((replace(module, codegen=tuple(files)),))


def test_crash_is_an_error_of_that_run_only(tmp_path: Path, opened: list[Model]) -> None:
    crash = "    if (((const float *)inputs->x)[0] > 8.0f) { *(volatile int *)8 = 1; }\n    return 0;\n}"
    model = mlfbuild.load(saved(tmp_path, changed("    return 0;\n}", crash)), isolated=True)
    opened.append(model)
    with raises(ProcessFailedError, "run-crashed", "net"):
        model.run({"x": X + 9, "kept": X})
    assert float(model.run({"x": X, "kept": X})["y"][0, 3]) == 6


def test_a_crash_among_many_cases_has_the_number_of_its_case(tmp_path: Path, opened: list[Model]) -> None:
    fail = "    if (((const float *)inputs->x)[0] > 8.0f) { %s; }\n    return 0;\n}"
    for number, (code, error) in enumerate((("*(volatile int *)8 = 1", "run-crashed"), ("return 5", "run-failed"))):
        library = changed("    return 0;\n}", fail % code)
        model = mlfbuild.load(saved(tmp_path, library, f"net{number}.tar"), isolated=True)
        opened.append(model)
        cases = np.repeat(X[np.newaxis], 200, axis=0)
        assert model.run_cases([cases, cases])[0].shape == (200, 1, 4)
        cases[150, 0, 0] = 9
        with raises(ProcessFailedError, error, "net: case 1150"):
            model.run_cases([cases, cases], first=1000)


@pytest.mark.parametrize(
    ("code", "error"),
    [("for (volatile int i = 0;; i++) {}", "run-timed-out"), ("extern void _exit(int); _exit(3);", "run-crashed")],
)
def test_a_run_that_hangs_or_ends_the_process_is_reported(
    tmp_path: Path, opened: list[Model], code: str, error: str
) -> None:
    library = changed("    return 0;\n}", f"    {code}\n    return 0;\n}}")
    model = mlfbuild.load(saved(tmp_path, library), isolated=True, timeout=0.5 if error == "run-timed-out" else 60)
    opened.append(model)
    with raises(TimedOutError if error == "run-timed-out" else ProcessFailedError, error, "net"):
        model.run({"x": X, "kept": X})


def test_code_that_prints_has_no_effect(tmp_path: Path, opened: list[Model]) -> None:
    talk = '    extern int puts(const char *); puts("hello");\n    return 0;\n}'
    model = mlfbuild.load(saved(tmp_path, changed("    return 0;\n}", talk)), isolated=True)
    opened.append(model)
    assert float(model.run({"x": X, "kept": X})["y"][0, 3]) == 6


def test_error_code_is_reported(tmp_path: Path) -> None:
    model = mlfbuild.load(saved(tmp_path, changed("    return 0;\n}", "    return 7;\n}")))
    with raises(ProcessFailedError, "run-failed", "net"):
        model.run({"x": X, "kept": X})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return 0;", "return nothing;", "nothing"),
        ("    return 0;\n}", "    extern int f(void); return f();\n}", "`f'"),
    ],
)
def test_code_that_does_not_build_is_reported(tmp_path: Path, old: str, new: str, said: str) -> None:
    with raises(ProcessFailedError, "module-not-built", "net") as caught:
        mlfbuild.load(saved(tmp_path, changed(old, new)))
    assert said in caught.value.output


def test_second_load_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, compile_network(adder()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    mlfbuild.load(path)
    (made,) = (tmp_path / "own/mlfbuild/host").iterdir()
    before = made.stat().st_mtime_ns
    mlfbuild.load(path)
    assert [file.stat().st_mtime_ns for file in (tmp_path / "own/mlfbuild/host").iterdir()] == [before]


def test_module_must_be_selected(shared: Path) -> None:
    path = shared / "archives/multi-mixed.tar"
    with raises(UsageError, "module-not-chosen", "multi-mixed.tar"):
        mlfbuild.load(path)
    with raises(UsageError, "unknown-module", "multi-mixed.tar"):
        mlfbuild.load(path, "kws")


def test_objects_for_another_cpu_are_rejected(shared: Path) -> None:
    with raises(UsageError, "object-for-another-cpu", "conv: codegen/host/lib/conv_lib0.o"):
        mlfbuild.load(shared / "archives/conv-llvm_graph_m4.tar")


@pytest.mark.parametrize("isolated", [False, True], ids=["here", "isolated"])
def test_operator(shared: Path, opened: list[Model], isolated: bool) -> None:
    model = mlfbuild.load(shared / "archives/operator-add.tar", isolated=isolated)
    opened.append(model)
    assert [(tensor.name, tensor.shape) for tensor in model.inputs] == [("placeholder", (2,)), ("placeholder_1", (1,))]
    left, right = np.array([100, -7], np.int8), np.array([50], np.int8)
    np.testing.assert_array_equal(model.run({"placeholder": left, "placeholder_1": right})["C"], left + right)
