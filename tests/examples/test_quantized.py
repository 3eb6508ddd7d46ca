"""The float twins of two examples: the build quantises them, and their accuracy stays within half a point."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.datasets import open_data
from mlfbuild.library import TensorInfo
from mlfbuild.native import parse_model
from mlfbuild.project import load_project
from support import warm
from support.oracle import tflite_micro_cases

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.sweep
def test_features_are_converted_to_the_scale_of_calibration(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    folder = shutil.copytree(EXAMPLES / "keyword", tmp_path / "keyword", ignore=shutil.ignore_patterns("build"))
    done = warm.run("mlfbuild", "run-firmware", "-C", "quantized", cwd=folder, status=0)
    page = (EXAMPLES / "keyword/README.md").read_text()
    (shown,) = re.findall(r"^\$ mlfbuild run-firmware -C quantized\n\.\.\.\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert done.stdout == shown
    scales = [re.findall(r"_FEATURES_SCALE (\S+)f$", header.read_text(), re.MULTILINE)
              for header in folder.glob("quantized/build/mlf/m4/*/codegen/host/include/tvmgen_*.h")]  # fmt: skip
    assert len({*map(tuple, scales)}) == 2


@pytest.mark.sweep  # on each push, docs/converting.md evaluates the twin of digits
@pytest.mark.parametrize(("name", "model"), [("digits", "digits"), ("keyword", "words")])
def test_the_quantised_twin_is_as_accurate_as_its_limit(tmp_path: Path, name: str, model: str) -> None:
    """And the limit is half a point below what TensorFlow Lite Micro computes with the float file."""
    left = shutil.ignore_patterns("build", "__pycache__")
    folder = shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=left) / "quantized"
    done = warm.run("mlfbuild", "evaluate", "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["evaluations"]
    assert found["passed"]

    keys = load_project(folder / "mlfbuild.yml").models[model]
    assert keys.evaluate is not None
    content = keys.source.read_bytes()
    graph = parse_model(content, model, keys.source)
    tensor = graph.tensor(graph.inputs[0])
    info = TensorInfo(tensor.name, "float32", tensor.size, tensor.shape)
    (batch,) = open_data(keys.evaluate.data, [info]).batches(1 << 16)
    outputs = tflite_micro_cases(content, [[case] for case in batch.inputs[0]])
    right = np.mean(np.array([row.argmax() for (row,) in outputs]) == batch.labels)
    assert keys.evaluate.at_least == pytest.approx(right - 0.005, abs=1e-4)
    quantised = (folder / "build/quantized" / f"{model}.tflite").read_bytes()
    assert {each.dtype.value for each in parse_model(quantised, model, keys.source).tensors.values()} <= {
        "int8",
        "int32",
    }
