"""The table of docs/archive.md: what works for each feature of archives, in each version of the format."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlfbuild
from mlfbuild.archive import archive_files, read_files, tar
from mlfbuild.archive.compare import compare
from mlfbuild.core import UsageError
from mlfbuild.library import DeviceContext, Library, Module
from mlfbuild.library.params_json import save_params_json
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import DType, Graph, Node, Tensor, ops
from support.device_archives import device_files
from support.examples import first_on_push
from support.foreign_archives import with_objects
from support.native import request
from support.old_archives import model_archive
from support.packed_archives import packed_archive, with_system_lib
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


def _defines_registry(module: Module) -> bool:
    return any(b"TVMSystemLibEntryPoint(void) {" in file.data for file in module.codegen)


def _executors(library: Library) -> list[str]:
    return [module.executor for module in library.modules]


def _edited(files: Files, **keys: Any) -> Files:
    """Return ``files`` with ``keys`` in the metadata of each module."""
    document = json.loads(files["metadata.json"])
    for module in document.get("modules", {"": document}).values():
        module.update(keys)
    return {**files, "metadata.json": json.dumps(document).encode()}


def _with_dependency(files: Files) -> Files:
    entry = {"short_name": "vendor-nn", "url": "https://example.com/nn.git", "url_type": "git", "version_spec": "1.0"}
    return _edited(files, external_dependencies=[entry])


def _json_parameters(version: int = 7) -> Files:
    """Return an archive with its parameters in the JSON form of the first RFC."""
    files = model_archive(version)
    (module,) = read_files(files, "a.tar").modules
    others = {path: data for path, data in files.items() if path != "parameters/add.params"}
    return {**others, "parameters/add.json": save_params_json(module.params)}


def _native(executor: str = "aot", **options: str) -> Callable[[Path, Path], Files]:
    tensors = [Tensor(name, (1, 2), DType.FLOAT32) for name in "abc"]
    network = Graph("net", tensors, [Node("sum", ops.Add(), ("a", "b"), ("c",))], ["a", "b"], ["c"])
    wanted = replace(request("net", cpu="host"), executor=executor)
    wanted = replace(wanted, options={**wanted.options, **options})
    return lambda _, __: archive_files(compile_graph(network, wanted, "ab" * 32))


ADD = (("add", "add-graph"),)
OPERATOR_ADD: Arrays = {
    name: np.array([values], np.int8) for name, values in {"in0": [3, -5], "in1": [4], "out0": [7, -1]}.items()
}
CONTEXTS = [
    {"device_type": "accel", "device_id": 2, "compiler": "vendor-cc", "config": {"tiles": 4}, "target": "npu -v=2"}
]
VENDOR = '{"build": [1, null]}'
SUM: Arrays = {
    name: np.array([[values]], np.float32)
    for name, values in {"in0": [1.5, 2], "in1": [3, -4], "out0": [4.5, -2]}.items()
}
FEATURES = {
    "graph": Feature("graph executor", _tvm("add-graph"),
     _every(lambda module: module.executor == "graph" and module.graph_json), ADD, model_archive),
    "linked": Feature("graph executor, parameters in the code", _tvm("v5-many-graphlink"),
     _every(lambda module: module.executor == "graph" and not module.params), (("many", "v5-many-graphlink"),)),
    "objects": Feature("graph executor, compiled objects", _objects,
     _every(lambda module: all(file.path.suffix == ".o" for file in module.codegen)), (("conv", "conv-graph"),)),
    "packed": Feature("AOT executor, packed functions", _tvm("conv-aotp"),
     _every(lambda module: module.interface == "packed"), (("conv", "conv-aotp"),)),
    "packed-registry": Feature("AOT executor, packed functions, `system-lib` of TVM 0.8", lambda shared,
     _: packed_archive(tvm_files(shared, "v5-add-graph"), "add"),
     _every(lambda module: module.interface == "packed" and _defines_registry(module)), (("add", "v5-add-graph"),)),
    "packed-outputs": Feature(
        "AOT executor, packed functions, several outputs",
        lambda shared, _: packed_archive(tvm_files(shared, "v5-many-graphlink"), "many", system_lib=False),
        _every(lambda module: module.interface == "packed" and len(module.outputs) == 2),
        (("many", "v5-many-graphlink"),),
    ),
    "c-registry": Feature("AOT executor, C interface, `system-lib`", lambda shared,
     _: with_system_lib(tvm_files(shared, "conv-aotc"), "conv"),
     _every(lambda module: module.interface == "c" and _defines_registry(module)), (("conv", "conv-aotc"),)),
    "c": Feature("AOT executor, C interface", _tvm("v5-add-aotc"), _every(lambda module: module.interface == "c"),
     (("add", "v5-add-aotc"),)),
    "internal-pools": Feature("AOT executor, memory pools in the code", _tvm("conv-aotc"),
     _every(lambda module: module.pools and not any(pool.external for pool in module.pools)), (("conv", "conv-aotc"),)),
    "external-pools": Feature("AOT executor, memory pools of the caller", _tvm("conv-usmp_external"),
     _every(lambda module: any(pool.external for pool in module.pools)), (("conv", "conv-usmp_external"),)),
    "byoc": Feature("functions of an external code generator (BYOC)", _tvm("byoc-aotp"),
     _every(lambda module: any("lib3" in file.path.name for file in module.codegen)), (("byoc", "byoc-aotp"),)),
    "operator": Feature("single operators", _tvm("operator-add"), _every(lambda module: module.style == "operator"),
     (("add", OPERATOR_ADD),)),
    "modules": Feature("several modules", _tvm("multi-aotc"), lambda _, library: _executors(library) == ["aot", "aot"],
     (("mod1", "multi-aotc.mod1"), ("mod2", "multi-aotc.mod2"))),
    "mixed": Feature("several modules with different executors", _tvm("multi-mixed"), lambda _,
     library: _executors(library) == ["aot", "graph"], (("mod1", "multi-mixed.mod1"), ("mod2", "multi-mixed.mod2"))),
    "contexts": Feature("`contexts` of the first RFC", lambda _, __: _edited(model_archive(7), contexts=CONTEXTS),
     _every(lambda module: module.contexts == (DeviceContext("accel", 2, "vendor-cc", '{"tiles": 4}', "npu -v=2"),)),
     ADD, lambda version: _edited(model_archive(version), contexts=CONTEXTS)),
    "unknown": Feature(
        "fields that the format does not define",
        lambda _, __: _edited(model_archive(7), vendor={"build": [1, None]}),
        _every(lambda module: [(field.place, field.value) for field in module.unknown] == [("/vendor", VENDOR)]),
        ADD,
        lambda version: _edited(model_archive(version), vendor={"build": [1, None]}),
    ),
    "dependencies": Feature("external dependencies", lambda _, __: _with_dependency(model_archive(7)),
     _every(lambda module: [each.short_name for each in module.external_dependencies] == ["vendor-nn"]),
     older=lambda version: _with_dependency(model_archive(version))),
    "targets": Feature("several targets for one device type", lambda _,
     __: _edited(model_archive(7), target=["c -keys=cpu", "cmsis-nn"]),
     _every(lambda module: [target.text for target in module.targets] == ["c -keys=cpu", "cmsis-nn"]), ADD),
    "devices": Feature("code for other devices", lambda _, __: device_files(),
     _every(lambda module: {file.path.parts[0] for file in module.device_files} == {"accel"})),
    "native": Feature("mlfbuild's compiler, AOT executor", _native(),
     _every(lambda module: module.model_id and module.network and module.complete), (("net", SUM),)),
    "native-single-file": Feature("mlfbuild's compiler, AOT executor, `layout: single-file`",
     _native(layout="single-file"), _every(lambda module: module.model_id and len(module.codegen) == 2),
     (("net", SUM),)),
    "native-packed": Feature("mlfbuild's compiler, AOT executor, `interface-api: packed`",
     _native(**{"interface-api": "packed"}), _every(lambda module: module.model_id and module.interface == "packed"),
     (("net", SUM),)),
    "native-graph": Feature("mlfbuild's compiler, graph executor", _native("graph"),
     _every(lambda module: module.model_id and module.network and module.executor == "graph"), (("net", SUM),)),
    "json-parameters": Feature("parameters as JSON (first RFC)", lambda _, __: _json_parameters(), lambda files,
     _: "parameters/add.json" in files, ADD, _json_parameters),
}  # fmt: skip
"""The rows of the table, in its order."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


ON_PUSH = ["graph", "packed-registry", "c", "unknown", "modules", "native-packed"]


@pytest.mark.parametrize("name", first_on_push([*ON_PUSH, *sorted({*FEATURES} - {*ON_PUSH})], len(ON_PUSH)))
def test_feature(shared: Path, tmp_path: Path, golden: Callable[[str, str], None], name: str) -> None:
    feature = FEATURES[name]
    found = outcomes(feature, shared, tmp_path)
    lines = [feature.title, *(f"{version}: {', '.join(works) or '-'}" for version, works in found.items())]
    golden("\n".join(lines) + "\n", "outcomes.txt")
