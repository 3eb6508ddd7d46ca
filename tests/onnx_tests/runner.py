"""Compile tests, run them on this machine, and judge the results."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mlfbuild.archive import open_archive, write_archive
from mlfbuild.core.errors import MlfError, UnsupportedModelError
from mlfbuild.library import CompileRequest, Library
from mlfbuild.native.build import compile_model
from mlfbuild.targets import CPUS
from onnx_tests.suite import Data, Suite, Test
from support.host_c import run_many_on_host

CHUNK = 50
"""Models in one C program."""
PASS, WRONG, BROKEN = "pass", "wrong", "broken"
WIDENED = "float16-as-float32"
"""The model is compiled, with other types than those of the test, so that it is neither passed nor wrong."""


@dataclass(frozen=True)
class Outcome:
    """What became of a test: ``pass``, ``wrong``, ``broken``, ``float16-as-float32``, or the code of a refusal.

    The operator follows the code if there is one.
    """

    word: str
    reason: str = ""
    """Why the model is refused or the result is wrong, without the names of tensors."""

    @property
    def passed(self) -> bool:
        return self.word == PASS

    @property
    def failed(self) -> bool:
        """Whether the test is neither passed nor refused: a wrong number, or a traceback."""
        return self.word.split()[0] in {WRONG, BROKEN}


@dataclass(frozen=True)
class Result:
    """The outcomes of a test: of the model as shipped, and with all inputs but the first as constants."""

    test: Test
    shipped: Outcome
    constant: Outcome


def results(suite: Suite, tests: Sequence[Test], jobs: int = 2) -> Iterator[Result]:
    """Yield the result of each of ``tests``, in order."""
    chunks = [tests[start : start + CHUNK] for start in range(0, len(tests), CHUNK)]
    with ProcessPoolExecutor(jobs) as pool:
        for done in pool.map(_chunk, [suite] * len(chunks), chunks):
            yield from done


def _chunk(suite: Suite, tests: Sequence[Test]) -> list[Result]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shipped = _outcomes(suite, {test: suite.model(test) for test in tests}, folder)
        models = dict(_with_constants(suite, [test for test in tests if not shipped[test].passed], folder))
        constant = shipped | _outcomes(suite, models, folder)
    return [Result(test, shipped[test], constant[test]) for test in tests]


def _with_constants(suite: Suite, tests: Iterable[Test], folder: Path) -> Iterator[tuple[Test, Path]]:
    """Write models whose inputs are constant, except the first; yield those that differ from the test's."""
    for number, test in enumerate(tests):
        model = onnx.load(str(suite.model(test)), load_external_data=False)
        ports, values = model.graph.input, suite.data(test)[0].inputs
        if len(ports) < 2 or not all(port.type.HasField("tensor_type") for port in ports):
            continue
        for port, value in list(zip(ports, values, strict=False))[1:]:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), port.name))
        path = folder / f"constant{number}.onnx"
        path.write_bytes(model.SerializeToString())
        yield test, path


def _outcomes(suite: Suite, models: dict[Test, Path], folder: Path) -> dict[Test, Outcome]:
    """Compile all of ``models`` to archives; only then read the data of the tests, and run them."""
    outcomes: dict[Test, Outcome] = {}
    archives: dict[Test, Path] = {}
    for number, (test, model) in enumerate(models.items()):
        archive = folder / f"m{number}.tar"
        refused = _compile(model, archive)
        if refused is None:
            archives[test] = archive
        else:
            outcomes[test] = refused
    jobs = []
    for test, archive in archives.items():
        library = open_archive(archive)
        data = suite.data(test)
        reason = _misfit(library, models[test], data)
        if reason:
            widened = reason.replace("float16", "float32").partition(" and not ")
            alike = widened[0].partition(" are ")[2] == widened[2]
            found = Outcome(WIDENED, "float16 inputs and outputs are float32 in C")
            outcomes[test] = found if alike else Outcome(WRONG, reason)
        else:
            jobs.append(_Job(test, library, _fed(models[test], data)))
    return outcomes | _run(jobs)


def _compile(model: Path, archive: Path) -> Outcome | None:
    """Compile ``model``, which is copied into an empty folder, to ``archive``; return why it cannot be compiled."""
    with tempfile.TemporaryDirectory() as name:
        alone = shutil.copy(model, Path(name) / "model.onnx")
        try:
            write_archive(compile_model(CompileRequest(archive.stem, Path(alone), CPUS["host"])), archive)
        except UnsupportedModelError as error:
            return _refusal(error, str(alone))
        except MlfError as error:
            return Outcome(f"{BROKEN} {error.code}", f"{error.code}: {_stripped(str(error), str(alone))}")
        except Exception as error:  # noqa: BLE001 - every traceback is a result
            return Outcome(f"{BROKEN} traceback", f"{type(error).__name__}: {' '.join(str(error).split())}")
    return None


def _refusal(error: UnsupportedModelError, path: str) -> Outcome:
    operator = re.search(r"node \d+ \(([\w.]+)\)", error.place)
    words = [error.code, operator[1]] if operator else [error.code]
    return Outcome(" ".join(words), _stripped(f"{error.place}: {error.reason}", path))


def _stripped(text: str, path: str) -> str:
    """Return ``text`` without the file and the names of tensors."""
    text = text.replace(path, "").removeprefix(": ")
    text = re.sub(r"node \d+ \((\S+)\)(?: writing '[^']*')?", r"\1", text)
    return re.sub(r"'[^']*'", "...", text)


@dataclass(frozen=True)
class _Job:
    """A test, its library, and its data sets."""

    test: Test
    library: Library
    data: Sequence[Data]


def _fed(model: Path, data: Sequence[Data]) -> list[Data]:
    """Return ``data`` without the inputs that are constant in ``model``."""
    graph = onnx.load(str(model), load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    kept = [port.name not in constants for port in graph.input]
    return [
        Data(tuple(value for value, keep in zip(each.inputs, kept, strict=False) if keep), each.outputs,
             each.rtol, each.atol)
        if len(each.inputs) == len(kept) else each
        for each in data
    ]  # fmt: skip


def _misfit(library: Library, model: Path, data: Sequence[Data]) -> str:
    """Return how the inputs or outputs of ``library`` differ from those of the test, nothing if they do not."""
    (module,) = library.modules
    for each in _fed(model, data):
        for word, ports, values in (("input", module.inputs, each.inputs), ("output", module.outputs, each.outputs)):
            wanted = [_form(value) for value in values]
            made = [f"{port.dtype}{list(port.shape or ())}" for port in ports]
            if made != wanted:
                return f"{word}s are {', '.join(made)} and not {', '.join(wanted)}"
    return ""


def _form(value: Any) -> str:
    if not isinstance(value, np.ndarray | np.generic):
        return type(value).__name__
    return f"{value.dtype}{list(value.shape)}"


def _run(jobs: Sequence[_Job]) -> dict[Test, Outcome]:
    """Run ``jobs`` in one program; if that fails, halve them to find the test at fault."""
    if not jobs:
        return {}
    runs = [(job, data) for job in jobs for data in job.data]
    try:
        made = run_many_on_host(
            [(job.library, job.library.modules[0], data.inputs) for job, data in runs], sanitize=False
        )
    except AssertionError as error:
        if len(jobs) == 1:
            return {jobs[0].test: Outcome(f"{BROKEN} program", " ".join(str(error).split())[:300])}
        middle = len(jobs) // 2
        return _run(jobs[:middle]) | _run(jobs[middle:])
    outcomes: dict[Test, Outcome] = {}
    for (job, data), outputs in zip(runs, made, strict=True):
        found = _difference(outputs, data)
        if found or job.test not in outcomes:
            outcomes[job.test] = Outcome(WRONG, found) if found else Outcome(PASS)
    return outcomes


def _difference(made: Sequence[Any], data: Data) -> str:
    """Return how the outputs ``made`` differ from those of the test by more than its tolerances allow."""
    for index, (one, other) in enumerate(zip(made, data.outputs, strict=True)):
        if not np.allclose(one, other, rtol=data.rtol, atol=data.atol, equal_nan=True):
            return f"output {index} is {_start(one)} and not {_start(other)}"
    return ""


def _start(values: Any) -> str:
    return f"[{', '.join(f'{value:.6g}' for value in np.asarray(values).reshape(-1)[:8])}, ...]"
