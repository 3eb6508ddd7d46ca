"""What a build compiles so that a module of any flavour has TVM's C interface.

Modules of the native compiler have it. A source that another compiler generated is not compiled itself, but included by
a *unit* that first says which module it belongs to: ``runtime/tvm`` gives the names of that module to what all modules
would define alike. So any number of them link together, each with its own workspace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mlfbuild.code.files import SOURCE_SUFFIXES
from mlfbuild.compilers.native.names import member_name
from mlfbuild.errors import InputFileError
from mlfbuild.executor.entry import notice, print_around
from mlfbuild.executor.graph_plan import GraphPlan, plan_graph
from mlfbuild.executor.graph_source import Array, GraphSource, print_graph
from mlfbuild.executor.kernel_workspace import kernel_workspace
from mlfbuild.executor.packed import packed_graph, packed_name
from mlfbuild.files import read_bytes, sha256
from mlfbuild.library import FULL_MODEL, CodegenFile, Content, Module, TensorInfo
from mlfbuild.library.c_interface import CInterface, Member, guarded, interface_parts
from mlfbuild.library.graph_json import parse_graph
from mlfbuild.targets import RUNTIME

FOLDER = "executor"
"""Of an unpacked tree: where the generated sources stand."""
_RUNTIME = RUNTIME / "tvm"


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


def _c_sources(module: Module) -> tuple[CodegenFile, ...]:
    return tuple(file for file in module.codegen if file.path.suffix in SOURCE_SUFFIXES)


def _with_entry(module: Module, plan: GraphPlan, params: Mapping[str, Array], renamed: str | None) -> Executable:
    texts = _texts(module)
    needed = kernel_workspace(module, list(texts.values()))
    interface = CInterface(
        module.name, _members(module, module.inputs), _members(module, module.outputs), plan.storage_size + needed
    )
    runtime_folder, runtime = _runtime_files()
    include = f"{FOLDER}/include"
    entry = f"{FOLDER}/{module.name}_entry.c"
    units = {f"{FOLDER}/{path.name}": _unit(module, path, renamed) for path in texts}
    source = GraphSource(interface, plan, params, needed)
    about = ("Everything lies in a static workspace: one call at a time.",)
    results = (r"\return 0, -1 if a pointer is NULL, or what a kernel returned that failed",)
    files: dict[str, Content] = {
        **runtime,
        **{path: text.encode() for path, text in units.items()},
        entry: print_graph(source, notice(module.name)).encode(),
        f"{include}/{interface.prefix}.h": guarded(
            f"{interface.prefix.upper()}_H_", notice(module.name), interface_parts(interface, about, results)
        ).encode(),
    }
    return Executable((entry, *units), (include,), (runtime_folder,), files)


def _with_interface(module: Module) -> Executable:
    """Return how a module is built that has the C interface: its sources, and the workspace that its kernels take."""
    texts = _texts(module)
    needed = kernel_workspace(module, list(texts.values()))
    runtime_folder, runtime = _runtime_files()
    inner = f"mlf_{module.name}_inner_run" if needed else None
    files = {f"{FOLDER}/{path.name}": _unit(module, path, inner).encode() for path in texts}
    entry = {f"{FOLDER}/{module.name}_entry.c": print_around(module, needed, inner).encode()} if inner else {}
    sources = (*entry, *files)
    return Executable(sources, _include_dirs(module), (runtime_folder,), {**runtime, **files, **entry})


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


def _unit(module: Module, path: PurePosixPath, renamed: str | None) -> str:
    lines = [f"/* {path.name} as a part of the module {module.name}. Generated by mlfbuild. Do not edit. */"]
    lines.append(f"#define MLF_MODULE {module.name}")
    if renamed is not None:
        lines.append(f"#define tvmgen_{module.name}_run {renamed} /* the C interface has this name */")
    lines.append(f'#include "../codegen/{path}"')
    return "\n".join(lines) + "\n"


def _runtime_files() -> tuple[str, dict[str, Content]]:
    """Return the folder of the runtime's headers, named by what is in them, and its files."""
    paths = sorted(path for path in _RUNTIME.rglob("*.h"))
    contents = {path.relative_to(_RUNTIME).as_posix(): read_bytes(path, "runtime header") for path in paths}
    digest = sha256(b"".join(f"{name}\n".encode() + data for name, data in contents.items()))[:12]
    folder = f"{FOLDER}/runtime-{digest}"
    return folder, {f"{folder}/{name}": data for name, data in contents.items()}
