"""Find the operator that causes a wrong result.

The model is compiled again with the result of every operator as an output, run on the target with the inputs of the
wrong case, and compared with the numpy reference of each operator.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlfbuild.archive import open_archive_with_id
from mlfbuild.core import MlfError, make_folder
from mlfbuild.jobs import CompileJob, TargetJob, run_placement, target_dependencies
from mlfbuild.jobs.tree import DEPENDENCIES_FOLDER, unpack, write_dependencies
from mlfbuild.native import Array, Graph, evaluate_in_turn
from mlfbuild.verify.device import Connection
from mlfbuild.verify.module import verify_module
from mlfbuild.verify.result import VerifyReport
from mlfbuild.verify.vectors import load_vectors


def first_wrong_operator(
    job: CompileJob,
    target: TargetJob,
    vectors: Path,
    folder: Path,
    report: VerifyReport,
    connection: Connection | None = None,
) -> str:
    """Return a line about the first operator with a wrong result on the target, in the first wrong case of ``report``.

    The model of ``job`` is compiled again with the result of every operator as an output, and run with ``vectors`` on
    the device of ``connection``, on the board of ``target``, or on this machine. Everything is built below ``folder``.
    The line is empty if the operator cannot be found: the model was compiled elsewhere, or its tensors together do not
    fit the board. No errors of mlfbuild are raised.
    """
    if job.compiler != "native":
        return ""
    try:
        return _locate(job, target, vectors, folder / "operators", report.wrong[0][0], connection)
    except MlfError:
        # Anything may fail here: with all tensors as outputs, the network may not fit the board any more.
        return ""  # only a hint: its failure must not hide the mismatch


def _locate(
    job: CompileJob, target: TargetJob, vectors: Path, folder: Path, case: int, connection: Connection | None
) -> str:
    from mlfbuild.native import read_network

    network = read_network(job.request)[0]
    graph = observed(network)
    # The archive, not the project file, says which inputs the vectors must fit.
    library, archive_id = open_archive_with_id(job.archive)
    arrays = load_vectors(vectors, library.modules[0]).inputs
    cases = range(case + 1) if graph.states else [case]  # state depends on all previous cases
    runs = [_inputs(graph, [array[at] for array in arrays]) for at in cases]
    found = _run(job, target, graph, archive_id, folder, list(evaluate_in_turn(graph, runs)), connection)
    board = found.board if connection or target.run_board else "this machine"
    # Floats first: small differences of each operator may add up to one that is too large at the end.
    if not found.wrong and any(network.tensor(name).dtype.numpy.kind == "f" for name in network.outputs):
        return (
            f"{job.model}: on {board} every operator is within the tolerance of its reference, so rounding errors add "
            "up to more; if the outputs are good enough, add a tolerance to the vectors"
        )
    if not found.wrong:
        runtime = "LiteRT's reference kernels" if network.litert else "TensorFlow Lite Micro"
        return (
            f"{job.model}: on {board} every operator matches its reference, so the expected outputs come from other "
            f"arithmetic: create them with {runtime} from this model file"
        )
    name = graph.outputs[found.wrong[0][1]]
    node = next(node for node in graph.nodes if name in node.outputs)
    return f"{job.model}: the first operator with a wrong result on {board} is {node.operator.name} {node.name!r}"


def observed(graph: Graph) -> Graph:
    """Return ``graph`` with the result of every node as an output, in order of execution, and tensors renamed t0, t1..

    The names of a model's inner tensors may be the same identifier in C.
    """
    # Numbers are unique by construction, and short names keep the generated structs readable.
    names = {name: f"t{index}" for index, name in enumerate(graph.tensors)}
    nodes = [
        replace(
            node,
            inputs=tuple(None if name is None else names[name] for name in node.inputs),
            outputs=tuple(names[name] for name in node.outputs),
        )
        for node in graph.nodes
    ]
    return Graph(
        graph.name,
        [replace(tensor, name=names[name]) for name, tensor in graph.tensors.items()],
        nodes,
        [names[name] for name in graph.inputs],
        [name for node in nodes for name in node.outputs],
        [replace(state, before=names[state.before], after=names[state.after]) for state in graph.states],
    )


def _inputs(graph: Graph, arrays: list[Array]) -> dict[str, Array]:
    tensors = [graph.tensor(name) for name in graph.inputs]
    return {tensor.name: array.reshape(tensor.shape) for tensor, array in zip(tensors, arrays, strict=True)}


def _run(
    job: CompileJob,
    target: TargetJob,
    graph: Graph,
    model_id: str,
    folder: Path,
    runs: list[dict[str, Array]],
    connection: Connection | None,
) -> VerifyReport:
    from mlfbuild.native import compile_graph

    library = compile_graph(graph, job.request, model_id)
    make_folder(folder)
    unpack(library, folder / "tree", archive_id=model_id)
    write_dependencies(folder / DEPENDENCIES_FOLDER, target_dependencies(target))  # of the same kernels
    vectors = folder / "vectors.npz"
    arrays: dict[str, Any] = {}
    for kind, names in (("in", graph.inputs), ("out", graph.outputs)):
        arrays |= {f"{kind}{index}": np.stack([values[name] for values in runs]) for index, name in enumerate(names)}
    np.savez(vectors, **arrays)
    module = library.modules[0]
    return verify_module(
        folder / "tree",
        module,
        target.board if connection else target.run_board,
        vectors,
        folder / "run",
        toolchain=target.toolchain,
        placement=run_placement(target, job, folder, on_device=connection is not None),
        connection=connection,
    )
