"""Write the tests of the package onnx as folders, models and data apart."""

import json
import shutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

VERSION = "1.23.2"
"""The release of onnx whose tests are counted; their number changes with every release."""
SIZES = {"node": 1404, "node-expanded": 480, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35}
"""The sets, with their number of tests. The tests of ``node-expanded`` have the bodies of functions as nodes."""
FOLDER = Path(__file__).resolve().parents[2] / "build/onnx-tests"
_TOLERANCE = (1e-3, 1e-7)
"""The relative and absolute tolerance of tests that do not set one, as in onnx's own runner."""


@dataclass(frozen=True, order=True)
class Test:
    """A test: its set and its name, which is unique in the set."""

    __test__ = False
    set: str
    name: str

    def __str__(self) -> str:
        return f"{self.set}/{self.name}"


@dataclass(frozen=True)
class Data:
    """The inputs and outputs of a test in the order of the model's, with the tolerances."""

    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    rtol: float
    atol: float


class Suite:
    """The folders of all tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def model(self, test: Test) -> Path:
        """Return the model file; its folder holds nothing else."""
        return self._folder / "models" / test.set / test.name / "model.onnx"

    def data(self, test: Test) -> list[Data]:
        """Read the data sets of ``test``."""
        folder = self._folder / "data" / test.set / test.name
        tolerances = json.loads((folder / "data.json").read_text())
        ports = onnx.load(str(self.model(test)), load_external_data=False).graph
        return [
            Data(_values(each, "input", ports.input), _values(each, "output", ports.output), **tolerances)
            for each in sorted(folder.glob("test_data_set_*"))
        ]

    def tests(self) -> list[Test]:
        """Return all tests, sorted; asserts the size of each set."""
        found = [Test(path.parent.parent.name, path.parent.name) for path in self._folder.glob("models/*/*/model.onnx")]
        sizes = {name: sum(test.set == name for test in found) for name in SIZES}
        assert (sizes, len(found)) == (SIZES, sum(SIZES.values()))
        return sorted(found)


def suite(folder: Path = FOLDER) -> Suite:
    """Return the suite of the installed onnx in ``folder``, which is written if it is not there yet."""
    assert onnx.__version__ == VERSION, f"onnx {VERSION} is required, and {onnx.__version__} is installed"
    whole = folder / VERSION
    if not whole.is_dir():
        part = folder / f"{VERSION}.part"
        shutil.rmtree(part, ignore_errors=True)
        _write(part)
        part.rename(whole)
    return Suite(whole)


def _write(folder: Path) -> None:
    for case in collected():
        _write_case(folder, case)
    shipped = Path(onnx.__file__).parent / "backend/test/data"
    for kind in set(SIZES) - {"node", "node-expanded"}:
        for path in (shipped / kind).glob("*/model.onnx"):
            _copy_case(folder, kind, path.parent)


def collected() -> Sequence[Any]:
    """Return the node tests, which onnx computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package computes infinities on purpose
        from onnx.backend.test.case.node import collect_testcases

        return list(collect_testcases(None))


def _write_case(folder: Path, case: Any) -> None:
    place = Path("node-expanded" if "_expanded" in case.name else "node") / case.name
    data = folder / "data" / place
    for number, values in enumerate(case.data_sets):
        part = data / f"test_data_set_{number}"
        part.mkdir(parents=True)
        for word, ports, each in zip(
            ("input", "output"), (case.model.graph.input, case.model.graph.output), values, strict=True
        ):
            for index, (port, value) in enumerate(zip(ports, each, strict=True)):
                (part / f"{word}_{index}.pb").write_bytes(_stored(port, value))
    (data / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}))
    model = folder / "models" / place
    model.mkdir(parents=True)
    (model / "model.onnx").write_bytes(case.model.SerializeToString())


def _copy_case(folder: Path, kind: str, source: Path) -> None:
    data = folder / "data" / kind / source.name
    shutil.copytree(source, data, ignore=shutil.ignore_patterns("model.onnx"))
    tolerances = dict(zip(("rtol", "atol"), _TOLERANCE, strict=True))
    if (data / "data.json").exists():
        given = json.loads((data / "data.json").read_text())
        tolerances |= {name: given[name] for name in tolerances if name in given}
    (data / "data.json").write_text(json.dumps(tolerances))
    model = folder / "models" / kind / source.name
    model.mkdir(parents=True)
    shutil.copy(source / "model.onnx", model)


def _stored(port: onnx.ValueInfoProto, value: Any) -> bytes:
    """Return ``value`` as onnx's own command writes it."""
    if port.type.HasField("sequence_type"):
        return bytes(numpy_helper.from_list(value, port.name).SerializeToString())
    if port.type.HasField("optional_type"):
        return bytes(numpy_helper.from_optional(value, port.name).SerializeToString())
    tensor = value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value), port.name)
    return bytes(tensor.SerializeToString())


def _values(folder: Path, word: str, ports: Sequence[onnx.ValueInfoProto]) -> tuple[Any, ...]:
    count = len(list(folder.glob(f"{word}_*.pb")))
    return tuple(_value(folder / f"{word}_{index}.pb", ports[index]) for index in range(count))


def _value(path: Path, port: onnx.ValueInfoProto) -> Any:
    data = path.read_bytes()
    if port.type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if port.type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(TensorProto.FromString(data))


def matching(tests: Sequence[Test], patterns: Sequence[str]) -> Iterator[Test]:
    """Yield the tests whose name, or set and name, match one of ``patterns``."""
    for test in tests:
        path = Path(str(test))
        if any(path.match(pattern) for pattern in patterns):
            yield test
