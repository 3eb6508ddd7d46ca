"""The MLPerf Tiny networks on this machine, with sanitizers, equal the vectors of TensorFlow Lite Micro."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.compilers import compiler_called
from mlfbuild.library import CompileRequest, Module
from mlfbuild.targets import CPUS
from support.examples import first_on_push
from support.host_c import run_cases_on_host, run_many_on_host

ARENAS = {"kws_int8": 9_840, "ic_int8": 28_288, "ad_int8": 256, "vww_int8": 35_632}
"""Arena sizes in bytes: the tensors and rows in use at the same time, and the scratch memory of kernels."""

FLOAT_MODELS = ("ad_f32", "ic_f32", "vww_f32")


def compile_model(shared: Path, model: str) -> Module:
    request = CompileRequest(model, shared / "models" / f"{model}.tflite", CPUS["cortex-m4"])
    (module,) = compiler_called("native").compile(request).modules
    return module


@pytest.mark.parametrize(
    "model", first_on_push(["kws_int8", "ad_int8", "ad_f32", "ic_int8", "vww_int8", "ic_f32", "vww_f32"], 3)
)
def test_every_vector_under_sanitizers(shared: Path, model: str, tool: Callable[[str], str]) -> None:
    tool("gcc")
    request = CompileRequest(model, shared / "models" / f"{model}.tflite", CPUS["cortex-m4"])
    library = compiler_called("native").compile(request)
    vectors = np.load(shared / "golden" / f"{model}.npz")
    got = np.stack(
        [case[0] for case in run_cases_on_host(library, [[case] for case in vectors["in0"]], optimise="-O1")]
    )
    expected = vectors["out0"].reshape(got.shape)
    if model in FLOAT_MODELS:
        assert np.abs(got - expected).max() <= 1e-5 * np.abs(expected).max()
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("model", ARENAS)
def test_arena_has_the_expected_size(shared: Path, model: str) -> None:
    assert compile_model(shared, model).main[0].workspace_size == ARENAS[model]


def test_two_models_in_one_program(shared: Path) -> None:
    jobs, expected = [], []
    for model in ("kws_int8", "ad_int8", "kws_int8"):
        request = CompileRequest(model, shared / "models" / f"{model}.tflite", CPUS["cortex-m4"])
        library = compiler_called("native").compile(request)
        vectors = np.load(shared / "golden" / f"{model}.npz")
        jobs.append((library, library.modules[0], [vectors["in0"][1]]))
        expected.append(vectors["out0"][1])
    for got, wanted in zip(run_many_on_host(jobs, optimise="-O1"), expected, strict=True):
        np.testing.assert_array_equal(got[0], wanted.reshape(got[0].shape))
