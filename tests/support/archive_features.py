"""What archives can contain, as samples for the table of docs/archive.md: a row per feature, a column per version.

``outcomes`` finds what works for a feature in a version:

read     the archive is opened, and the library has the feature
run      its code computes the expected numbers on this machine
convert  ``mlfbuild convert`` to version 7 keeps the meaning
write    mlfbuild writes the library in this version, and reads the same meaning back

If archives of a version come from another source than mlfbuild's writer, such as ``old_archives`` or a release of TVM,
these are read, run and converted; otherwise those that mlfbuild wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import mlfbuild
from mlfbuild.archive import archive_files, read_files, tar
from mlfbuild.archive.compare import compare
from mlfbuild.core import UsageError
from mlfbuild.graph import DType, Graph, Node, Tensor, ops
from mlfbuild.library import Library, Module
from mlfbuild.library.params_json import save_params_json
from support.foreign_archives import with_objects
from support.native import compile_network
from support.old_archives import model_archive
from support.tvm_archives import tvm_files

Files = Mapping[str, Any]
Arrays = Mapping[str, np.ndarray[Any, Any]]
VERSIONS = range(1, 8)
ALL = ("read", "run", "convert", "write")


@dataclass(frozen=True)
class Feature:
    """A row of the table."""

    title: str
    files: Callable[[Path, Path], Files]
    """Makes an archive that has the feature; the arguments are the folder of shared data and a folder for objects."""
    has: Callable[[Files, Library], bool]
    """Whether an archive and its library have the feature."""
    vectors: Sequence[tuple[str, str | Arrays]] = ()
    """Pairs of a module and its vectors, or their name in the shared data; empty if the code cannot run here."""
    older: Callable[[int], Files | None] = lambda _: None
    """Returns an archive of a version from another source than mlfbuild's writer, or ``None``."""


def outcomes(feature: Feature, shared: Path, folder: Path) -> dict[int, tuple[str, ...]]:
    """Return by version what works for ``feature``, in the order of ``ALL``."""
    library = read_files(feature.files(shared, folder), "sample.tar")
    ran: list[tuple[Library, bool]] = []
    return {version: _works(feature, library, version, shared, folder, ran) for version in VERSIONS}


def _works(
    feature: Feature, library: Library, version: int, shared: Path, folder: Path, ran: list[tuple[Library, bool]]
) -> tuple[str, ...]:
    written = _written(library, version)
    files = feature.older(version) or written
    if files is None:
        return ()
    found = read_files(files, "a.tar")
    works = {
        "read": found.version == version and feature.has(files, found),
        "run": _runs(feature, found, files, shared, folder, ran),
        "convert": compare(found, read_files(archive_files(found, 7), "a.tar")).equal,
        "write": written is not None and _keeps(feature, library, written),
    }
    return tuple(name for name in ALL if works[name])


def _keeps(feature: Feature, library: Library, files: Files) -> bool:
    found = read_files(files, "a.tar")
    return feature.has(files, found) and compare(library, found).equal


def _written(library: Library, version: int) -> Files | None:
    """Return the files of ``library`` in ``version``, or ``None`` if the version cannot hold it."""
    try:
        return archive_files(library, version)
    except UsageError:
        return None


def _runs(
    feature: Feature, library: Library, files: Files, shared: Path, folder: Path, ran: list[tuple[Library, bool]]
) -> bool:
    """Return whether ``files`` compute the vectors; archives with equal code are compiled only once."""
    for other, result in ran:
        if replace(other, version=library.version) == library:
            return result
    path = folder / f"{library.version}.tar"
    path.write_bytes(b"".join(tar.pack(files, 0)))
    result = bool(feature.vectors) and all(_computes(path, *pair, shared) for pair in feature.vectors)
    ran.append((library, result))
    return result


def _computes(archive: Path, module: str, vectors: str | Arrays, shared: Path) -> bool:
    arrays = np.load(shared / f"archives/{vectors}.npz") if isinstance(vectors, str) else vectors
    with mlfbuild.load(archive, module, isolated=True) as model:
        keys = {tensor.name: f"in_{tensor.name}" for tensor in model.inputs}
        keys = {name: key if key in arrays else f"in{at}" for at, (name, key) in enumerate(keys.items())}
        results = model.run({name: arrays[key][0] for name, key in keys.items()})
    expected = [arrays[f"out{at}"][0] for at in range(len(results))]
    return all(_close(got, want) for got, want in zip(results.values(), expected, strict=True))


def _close(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> bool:
    limit = 0.0 if want.dtype.kind in "iu" else 1e-5 * float(np.abs(want).max())
    return got.dtype == want.dtype and bool(np.allclose(got.reshape(want.shape), want, rtol=0, atol=limit))


# The rows ------------------------------------------------------------------------------------------------------------


def _every(condition: Callable[[Module], object]) -> Callable[[Files, Library], bool]:
    return lambda _, library: all(condition(module) for module in library.modules)


def _tvm(name: str) -> Callable[[Path, Path], Files]:
    return lambda shared, _: tvm_files(shared, name)


def _objects(shared: Path, folder: Path) -> Files:
    return with_objects(tvm_files(shared, "conv-graph"), folder, "gcc", "-fPIC")


def _executors(library: Library) -> list[str]:
    return [module.executor for module in library.modules]


def _edited(files: Files, **keys: Any) -> Files:
    """Return ``files`` with ``keys`` in the metadata of each module."""
    document = json.loads(files["metadata.json"])
    for module in document.get("modules", {"": document}).values():
        module.update(keys)
    return {**files, "metadata.json": json.dumps(document).encode()}


def _json_parameters(version: int = 7) -> Files:
    """Return an archive with its parameters in the JSON form of the first RFC."""
    files = model_archive(version)
    (module,) = read_files(files, "a.tar").modules
    others = {path: data for path, data in files.items() if path != "parameters/add.params"}
    return {**others, "parameters/add.json": save_params_json(module.params)}


def _native(executor: str) -> Callable[[Path, Path], Files]:
    tensors = [Tensor(name, (1, 2), DType.FLOAT32) for name in "abc"]
    network = Graph("net", tensors, [Node("sum", ops.Add(), ("a", "b"), ("c",))], ["a", "b"], ["c"])
    return lambda _, __: archive_files(compile_network(network, executor=executor))


ADD = (("add", "add-graph"),)
OPERATOR_ADD: Arrays = {
    name: np.array([values], np.int8) for name, values in {"in0": [3, -5], "in1": [4], "out0": [7, -1]}.items()
}
SUM: Arrays = {
    name: np.array([[values]], np.float32)
    for name, values in {"in0": [1.5, 2], "in1": [3, -4], "out0": [4.5, -2]}.items()
}
FEATURES = {
    "graph": Feature(
        "graph executor",
        _tvm("add-graph"),
        _every(lambda module: module.executor == "graph" and module.graph_json),
        ADD,
        model_archive,
    ),
    "linked": Feature(
        "graph executor, parameters in the code",
        _tvm("v5-many-graphlink"),
        _every(lambda module: module.executor == "graph" and not module.params),
        (("many", "v5-many-graphlink"),),
    ),
    "objects": Feature(
        "graph executor, compiled objects",
        _objects,
        _every(lambda module: all(file.path.suffix == ".o" for file in module.codegen)),
        (("conv", "conv-graph"),),
    ),
    "packed": Feature(
        "AOT executor, packed functions",
        _tvm("conv-aotp"),
        _every(lambda module: module.interface == "packed"),
        (("conv", "conv-aotp"),),
    ),
    "c": Feature(
        "AOT executor, C interface",
        _tvm("v5-add-aotc"),
        _every(lambda module: module.interface == "c"),
        (("add", "v5-add-aotc"),),
    ),
    "internal-pools": Feature(
        "AOT executor, memory pools in the code",
        _tvm("conv-aotc"),
        _every(lambda module: module.pools and not any(pool.external for pool in module.pools)),
        (("conv", "conv-aotc"),),
    ),
    "external-pools": Feature(
        "AOT executor, memory pools of the caller",
        _tvm("conv-usmp_external"),
        _every(lambda module: any(pool.external for pool in module.pools)),
        (("conv", "conv-usmp_external"),),
    ),
    "byoc": Feature(
        "functions of an external code generator (BYOC)",
        _tvm("byoc-aotp"),
        _every(lambda module: any("lib3" in file.path.name for file in module.codegen)),
        (("byoc", "byoc-aotp"),),
    ),
    "operator": Feature(
        "single operators",
        _tvm("operator-add"),
        _every(lambda module: module.style == "operator"),
        (("add", OPERATOR_ADD),),
    ),
    "modules": Feature(
        "several modules",
        _tvm("multi-aotc"),
        lambda _, library: _executors(library) == ["aot", "aot"],
        (("mod1", "multi-aotc.mod1"), ("mod2", "multi-aotc.mod2")),
    ),
    "mixed": Feature(
        "several modules with different executors",
        _tvm("multi-mixed"),
        lambda _, library: _executors(library) == ["aot", "graph"],
        (("mod1", "multi-mixed.mod1"), ("mod2", "multi-mixed.mod2")),
    ),
    "native": Feature(
        "mlfbuild's compiler, AOT executor",
        _native("aot"),
        _every(lambda module: module.model_id and module.network and module.complete),
        (("net", SUM),),
    ),
    "native-graph": Feature(
        "mlfbuild's compiler, graph executor",
        _native("graph"),
        _every(lambda module: module.model_id and module.network and module.executor == "graph"),
        (("net", SUM),),
    ),
    "json-parameters": Feature(
        "parameters as JSON (first RFC)",
        lambda _, __: _json_parameters(),
        lambda files, _: "parameters/add.json" in files,
        ADD,
        _json_parameters,
    ),
}
"""The rows of the table, in its order."""
