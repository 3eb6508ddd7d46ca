"""What a build compiles so that a module of any flavour has TVM's C interface.

Modules of the native compiler have it. A source that another compiler generated is not compiled itself, but included by
a *unit* that first says which module it belongs to: ``runtime/tvm`` gives the names of that module to what all modules
would define alike. So any number of them link together, each with its own workspace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from mlfbuild.code.files import SOURCE_SUFFIXES
from mlfbuild.compilers.native.names import member_name
from mlfbuild.errors import InputFileError
from mlfbuild.executor.entry import notice, print_around
from mlfbuild.executor.graph_plan import GraphPlan, plan_graph
from mlfbuild.executor.graph_source import Array, GraphSource, print_graph
from mlfbuild.executor.kernel_workspace import kernel_workspace
from mlfbuild.executor.packed import packed_graph, packed_name
from mlfbuild.files import read_bytes
from mlfbuild.library import FULL_MODEL, CodegenFile, Content, Module, TensorInfo
from mlfbuild.library.c_interface import CInterface, Member, guarded, interface_parts
from mlfbuild.library.graph_json import parse_graph
from mlfbuild.targets import RUNTIME

FOLDER = "executor"
"""Of an unpacked tree: where the generated sources stand."""
INCLUDE_DIR = f"{FOLDER}/include"
"""Of an unpacked tree: headers of modules that came without one."""
_RUNTIME = RUNTIME / "tvm"
_FIRST = ("crt/module.h", "metadata_types.h")
"""Headers that a unit includes before its source, so that TVM's own, which a firmware may have, come too late."""

PROVIDED_HEADERS = tuple(
    path.relative_to(_RUNTIME).as_posix() for path in sorted(_RUNTIME.rglob("*.h")) if path.parent != _RUNTIME
)
"""What the sources of modules may include of TVM's runtime."""
PROVIDED_NAMES = frozenset({
    "TVMAPISetLastError", "TVMGetLastError", "TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace",
    "TVMBackendParallelLaunch", "TVMBackendParallelBarrier", "TVMSystemLibEntryPoint",
})  # fmt: skip
"""The functions of TVM's runtime that they may call."""


@dataclass(frozen=True)
class Executable:
    """The sources of a module with TVM's C interface; paths are relative to the tree."""

    sources: tuple[str, ...]
    """What is compiled; objects stay as they are."""
    include_dirs: tuple[str, ...]
    """Of the headers that firmware includes."""
    private_include_dirs: tuple[str, ...]
    """Of those that only the sources need."""
    files: Mapping[str, Content] = field(default_factory=dict)
    """The generated files and the runtime's headers, beside the archive's own."""


def executable(module: Module) -> Executable | None:
    """Return how ``module`` is built; ``None`` for one that needs nothing added: the native compiler's, or no model.

    Raises ``InputFileError`` and ``UnsupportedModelError`` where its graph or its sources cannot be run.
    """
    if module.model_id or module.style != FULL_MODEL or not _c_sources(module):
        return None
    if module.executor == "graph" and module.graph_json is not None:
        plan = plan_graph(parse_graph(bytes(module.graph_json), f"{module.name}.graph"), module.params, module.name)
        return _with_entry(module, plan, module.params, renamed=None)
    if module.interface == "packed" and module.inputs and module.outputs:
        plan = plan_graph(packed_graph(module), (), module.name)
        return _with_entry(module, plan, {}, renamed=packed_name(module))
    return _with_interface(module) if module.interface == "c" else None


def with_c_interface(module: Module) -> Module:
    """Return ``module`` as firmware sees it: with the header of its C interface, also where that is generated."""
    found = executable(module)
    headers = [path for path in (found.files if found else ()) if PurePosixPath(path).is_relative_to(INCLUDE_DIR)]
    if found is None or not headers:
        return module
    generated = (
        CodegenFile(PurePosixPath("host/include", PurePosixPath(path).name), found.files[path]) for path in headers
    )
    return replace(module, interface="c", codegen=(*module.codegen, *generated))


def _c_sources(module: Module) -> tuple[CodegenFile, ...]:
    return tuple(file for file in module.codegen if file.path.suffix in SOURCE_SUFFIXES)


def _with_entry(module: Module, plan: GraphPlan, params: Mapping[str, Array], renamed: str | None) -> Executable:
    texts = _texts(module)
    needed = kernel_workspace(module, list(texts.values()))
    interface = CInterface(
        module.name, _members(module, module.inputs), _members(module, module.outputs), plan.storage_size + needed
    )
    folder, runtime = _runtime_files()
    entry = f"{FOLDER}/{module.name}_entry.c"
    units = {unit: _unit(module, path, folder, renamed) for unit, path in _units(texts)}
    source = GraphSource(interface, plan, params, needed)
    about = ("Everything lies in a static workspace: one call at a time.",)
    results = (r"\return 0, -1 if a pointer is NULL, or what a kernel returned that failed",)
    files: dict[str, Content] = {
        **runtime,
        **{path: text.encode() for path, text in units.items()},
        entry: print_graph(source, notice(module.name), folder).encode(),
        f"{INCLUDE_DIR}/{interface.prefix}.h": guarded(
            f"{interface.prefix.upper()}_H_", notice(module.name), interface_parts(interface, about, results)
        ).encode(),
    }
    return Executable((entry, *units), (INCLUDE_DIR,), (folder,), files)


def _with_interface(module: Module) -> Executable:
    """Return how a module is built that has the C interface: its sources, and the workspace that its kernels take."""
    texts = _texts(module)
    needed = kernel_workspace(module, list(texts.values()))
    folder, runtime = _runtime_files()
    inner = f"mlf_{module.name}_inner_run" if needed else None
    files = {unit: _unit(module, path, folder, inner).encode() for unit, path in _units(texts)}
    if inner is not None:
        files[f"{FOLDER}/{module.name}_entry.c"] = print_around(module, needed, inner, folder).encode()
    return Executable(tuple(files), _include_dirs(module), (folder,), {**runtime, **files})


def _include_dirs(module: Module) -> tuple[str, ...]:
    headers = (file.path for file in module.codegen if file.path.match("*/include/*"))
    return tuple(sorted({f"codegen/{path.parts[0]}/include" for path in headers}))


def _texts(module: Module) -> dict[PurePosixPath, str]:
    return {file.path: bytes(file.content).decode(errors="replace") for file in _c_sources(module)}


def _members(module: Module, tensors: Sequence[TensorInfo]) -> tuple[Member, ...]:
    members = tuple(Member(member_name(tensor.name), tensor.size) for tensor in tensors)
    if len({member.name.upper() for member in members}) < len(members):
        names = ", ".join(repr(tensor.name) for tensor in tensors)
        raise InputFileError(f"{module.name}: the names {names} are not different in C; rename them in the model")
    return members


def unit_names(source: PurePosixPath) -> tuple[PurePosixPath, PurePosixPath]:
    """Return the two paths that the unit of ``source``, in the tree, may have: by its name, or with its folders."""
    return PurePosixPath(FOLDER, source.name), PurePosixPath(FOLDER, "_".join(source.parts[1:]))


def _units(paths: Collection[PurePosixPath]) -> Iterator[tuple[str, PurePosixPath]]:
    """Yield the path of the unit of each source: with its folders where another has the same name."""
    times = Counter(path.name for path in paths)
    for path in paths:
        yield str(unit_names(PurePosixPath("codegen", path))[times[path.name] > 1]), path


def _unit(module: Module, path: PurePosixPath, runtime: str, renamed: str | None) -> str:
    lines = [f"/* {path.name} as a part of the module {module.name}. Generated by mlfbuild. Do not edit. */"]
    lines.append(f"#define MLF_MODULE {module.name}")
    if renamed is not None:
        lines.append(f"#define tvmgen_{module.name}_run {renamed} /* the C interface has this name */")
    folder = PurePosixPath(runtime).name
    lines += [f'#include "{folder}/tvm/runtime/{header}"' for header in _FIRST]
    lines.append(f'#include "../codegen/{path}"')
    return "\n".join(lines) + "\n"


def _runtime_files() -> tuple[str, dict[str, Content]]:
    """Return the folder of the runtime's headers, and its files."""
    paths = sorted(path for path in _RUNTIME.rglob("*.h"))
    folder = f"{FOLDER}/runtime"
    return folder, {
        f"{folder}/{path.relative_to(_RUNTIME).as_posix()}": read_bytes(path, "runtime header") for path in paths
    }
