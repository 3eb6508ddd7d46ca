"""Compare two archives or model files by their content, or by what they compute.

``compare_archives`` compares modules, interface, memory, code and weights. ``compare_runs`` runs a network of each
archive on the same inputs and finds the first operator whose result differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from mlfbuild import verify
from mlfbuild.archive.compare import LibraryComparison, compare, network_differences
from mlfbuild.core import CheckFailedError, MlfError, ProcessFailedError, UnsupportedModelError, UsageError, read_bytes
from mlfbuild.jobs import is_model, open_beside, open_model
from mlfbuild.library import CompileRequest, TracedTensor
from mlfbuild.native import read_network
from mlfbuild.targets import CPUS
from mlfbuild.verify.host import Model, load

Array = npt.NDArray[Any]


def compare_archives(left: Path, right: Path) -> LibraryComparison:
    """Return how the content of the archive ``right`` differs from ``left``; raises as ``open_model``.

    A model file is compiled as ``open_beside`` does. If both are model files and their archives differ, the differences
    of their tensors come first.
    """
    if is_model(left) and is_model(right):
        return _compare_models(left, right)
    # The model file is compiled for the CPU of the archive on the other side; otherwise the differences would be those
    # of two CPUs.
    if is_model(left) and not is_model(right):
        second = open_model(right)
        return compare(open_beside(left, second), second)
    first = open_model(left)
    return compare(first, open_beside(right, first))


def _compare_models(left: Path, right: Path) -> LibraryComparison:
    first = open_model(left)
    # The code names the file that it comes from, which is not a difference between two copies of a model.
    same = read_bytes(left, "model") == read_bytes(right, "model")
    found = compare(first, first if same else open_beside(right, first))
    if found.equal:
        return found
    (module,) = first.modules
    networks = [read_network(CompileRequest(module.name, path, CPUS["host"], options={}))[0] for path in (left, right)]
    return replace(found, differences=(*network_differences(module.name, *networks), *found.differences))


def compare_runs(
    archives: tuple[Path, Path], models: tuple[str | None, str | None], inputs: Path, timeout: float
) -> verify.RunComparison:
    """Run a network of each of ``archives`` on this machine with every case of ``inputs`` and compare the results.

    ``models`` are the networks' names, required for an archive with several. Networks with state keep it from case to
    case. The code runs in separate processes, and each case may take ``timeout`` seconds. Integers must be equal,
    floats within ``verify.float_tolerance`` of the deeper one.

    Raises as ``mlfbuild.load``; ``UsageError`` if the inputs or outputs of the two networks differ, ``InputFileError``
    if ``inputs`` do not fit them, and ``ProcessFailedError`` if one fails, crashes or hangs.
    """
    with ExitStack() as stack:
        runners = []
        for archive, name in zip(archives, models, strict=True):
            # One after the other: if the second cannot be loaded, the process of the first is ended.
            runners.append(_loaded(archive, name, timeout))
            stack.callback(runners[-1].model.close)
        return _compare(runners[0], runners[1], inputs)


@dataclass(frozen=True)
class _Runner:
    """A network, and the archive that error messages about it name."""

    archive: Path
    model: Model

    def run(self, values: Sequence[Array], *, traced: bool) -> tuple[list[Array], list[Array]]:
        """Return the outputs for the flat ``values`` of the inputs and, if ``traced``, the results of operators."""
        inputs = {
            tensor.name: value if tensor.shape is None else value.reshape(tensor.shape)
            for tensor, value in zip(self.model.inputs, values, strict=True)
        }
        try:
            outputs, tensors = self.model.run_traced(inputs) if traced else (self.model.run(inputs), {})
            return list(outputs.values()), list(tensors.values())
        except ProcessFailedError as error:
            raise _of_archive(self.archive, error) from None

    def side(self) -> verify.ComparedNetwork:
        """Return this network's part of the report."""
        count = len(self.model.traced)
        return verify.ComparedNetwork(
            str(self.archive), self.model.name, count, "" if count else self.model.how_to_trace
        )


def _loaded(archive: Path, name: str | None, timeout: float) -> _Runner:
    try:
        return _Runner(archive, load(archive, name, isolated=True, timeout=timeout))
    except (CheckFailedError, ProcessFailedError, UnsupportedModelError, UsageError) as error:
        raise _of_archive(archive, error) from None


def _of_archive(archive: Path, error: MlfError) -> MlfError:
    """Return ``error`` with the archive as its outer place, as modules of both may have the same name."""
    return error if error.message.startswith(str(archive)) else error.within(archive)


_Found = dict[int, tuple[int, int, verify.ElementDifference]]
"""By the number of a tensor: the first case in which it differs, the number of such cases, and the first difference."""


def _compare(first: _Runner, second: _Runner, path: Path) -> verify.RunComparison:
    sources, results = (_ports(kind, first, second) for kind in ("input", "output"))
    pairs = verify.pair_traced(*(verify.Traced(runner.model.name, runner.model.traced) for runner in (first, second)))
    cases, arrays = verify.load_inputs(path, first.model)
    # Rounding errors add up with each layer, so the deeper network decides for both.
    tolerance = verify.float_tolerance(max(first.model.layers, second.model.layers))
    outputs: _Found = {}
    tensors: _Found = {}
    for case in range(cases):
        values = [array[case] for array in arrays]
        # Both run the same case before the next one, so that networks with state have the same history.
        got = first.run(values, traced=bool(pairs))
        # The second network may have its inputs in another order.
        values = [values[pair.first] for pair in sorted(sources, key=lambda pair: pair.second)]
        other = second.run(values, traced=bool(pairs))
        for kind, (found, common) in enumerate(((outputs, results), (tensors, pairs))):
            for number, pair in enumerate(common):
                arrays_of_pair = got[kind][pair.first].reshape(-1), other[kind][pair.second].reshape(-1)
                bound = 0 if kind else first.model.bound(pair.first)
                difference = verify.first_difference(*arrays_of_pair, tolerance, bound)
                if difference is not None:
                    # The first difference is kept; later ones of the same tensor say nothing new.
                    begin, count, known = found.get(number, (case, 0, difference))
                    found[number] = (begin, count + 1, known)
    return verify.RunComparison(
        (first.side(), second.side()),
        cases,
        tuple(kind for kind, ports in (("inputs", sources), ("outputs", results)) if not all(p.by_name for p in ports)),
        len(results),
        pairs,
        _first_operator(first.model, pairs, tensors, anyhow=bool(outputs)),
        tuple(
            verify.TensorDifference(
                TracedTensor(first.model.outputs[results[number].first], "", ""), True, *outputs[number]
            )
            for number in sorted(outputs)
        ),
    )


def _ports(kind: str, first: _Runner, second: _Runner) -> tuple[verify.TensorPair, ...]:
    sides = ((runner.model.inputs if kind == "input" else runner.model.outputs) for runner in (first, second))
    try:
        return verify.pair_ports(kind, *sides)
    except UsageError as error:
        place, reason = f"{first.archive} and {second.archive}", f"the networks cannot run on the same inputs: {error}"
        raise UsageError("interfaces-differ", place=place, reason=reason, hint="omit --inputs") from None


def _first_operator(
    model: Model, pairs: Sequence[verify.TensorPair], found: _Found, *, anyhow: bool
) -> verify.TensorDifference | None:
    """Return the first tensor that differs: one of the same name, unless outputs differ ``anyhow`` or there is none.

    If the network keeps a state, an error in one case continues in the next, so the first wrong case is returned.
    """
    # A pair without a common name may be no pair; it is believed if an output is wrong as well, which something must
    # have caused.
    wrong = [number for number in found if anyhow or pairs[number].by_name] or [*found]
    if not wrong:
        return None
    first = min(wrong, key=lambda number: (found[number][0] if model.keeps_state else 0, number))
    return verify.TensorDifference(model.traced[pairs[first].first], pairs[first].by_name, *found[first])
