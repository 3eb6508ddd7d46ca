"""Write the ``README.md`` of an archive, which explains the archive to people who do not know the format.

The first design of Model Library Format proposed such a page, but TVM's exporters never wrote one. The page depends
only on the library, so equal libraries have equal pages. Its text is the template ``readme.md``. Readers ignore it,
because all of its content is in other files of the archive.

How firmware calls a module, and the commands that compile its code without mlfbuild, depend on the kind of module.
Commands use only names that mlfbuild knows and patterns, because names in an archive are not to be trusted in a shell.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mlfbuild.archive.describe.facts import context_facts, context_text
from mlfbuild.core import counted, listed, markdown_code, markdown_table, printable, text_templates
from mlfbuild.library import (
    ARCHIVE_FOLDER,
    C_TYPES,
    INCLUDE_DIR,
    OPERATOR,
    TVM_RUNTIME,
    Content,
    ExternalDependency,
    LazyBytes,
    Library,
    Module,
    OperatorBuffer,
    TensorInfo,
    device_code,
    element_size,
    requirements_of,
    runtime_requirement,
    sanitize_name,
    struct_prefix,
    symbol_prefix,
)
from mlfbuild.library.metadata import FORMATS
from mlfbuild.targets import CPUS, GCC, Cpu, compiler_program

if TYPE_CHECKING:
    from jinja2 import Environment

_INCLUDE = "codegen/host/include"
_CPU = re.compile(r"-(?:mcpu|march)=(\S+)")


def commands(library: Library) -> list[str]:
    """Return the shell commands that make a static library of the code in the folder of an extracted archive.

    Empty if there is no such recipe: the archive has code for several processors, C++, or code that requires
    libraries which it does not contain.
    """
    modules = library.modules
    paths = [file.path for module in modules for file in module.codegen]
    sources = [path for path in paths if path.suffix == ".c"]
    cpu = _cpu(modules)
    foreign = any(path.parts[0] != "host" or path.suffix in {".cc", ".cpp", ".cxx"} for path in paths)
    if cpu is None or foreign or not sources or any(requirements_of(module) for module in modules):
        return []
    runtime = _runtime(library)
    if runtime is None:
        return []
    folders = [_INCLUDE] if any(path.parts[1] == "include" for path in paths) else []
    clone, more = runtime
    compiler = "gcc" if cpu.name == "host" else compiler_program(cpu, GCC)
    include = [f"-I {folder}" for folder in (*folders, *more)]
    objects = ["codegen/host/lib/*.o"] if any(path.suffix == ".o" for path in paths) else []
    name = sanitize_name(modules[0].name) if len(modules) == 1 else "models"
    archiver = f"{compiler.removesuffix('gcc')}ar"
    return [
        *clone,
        " ".join([compiler, *cpu.flags, "-O2", "-c", *include, "codegen/host/src/*.c"]),
        " ".join([archiver, "rcs", f"lib{name}.a", "*.o", *objects]),
    ]


def _cpu(modules: tuple[Module, ...]) -> Cpu | None:
    """Return the processor of all modules, the host if none is named; ``None`` if they differ or it is unknown."""
    names = {name for module in modules for target in module.targets for name in _CPU.findall(target.text)}
    return CPUS["host"] if not names else CPUS.get(names.pop()) if len(names) == 1 else None


def _runtime(library: Library) -> tuple[list[str], list[str]] | None:
    """Return the commands that get the headers of TVM's runtime, and their folders; ``None`` if it is not known how."""
    needing = [module for module in library.modules if not module.complete]
    if not needing:
        return [], []
    if any(file.path.is_relative_to(INCLUDE_DIR) for file in library.other_files):
        return [], [INCLUDE_DIR]
    if not all(TVM_RUNTIME in module.external_dependencies for module in needing):
        return None
    # TVM's headers include dlpack/dlpack.h, which is in a submodule.
    clone = f"git clone --depth 1 --branch {TVM_RUNTIME.version_spec} --recurse-submodules=3rdparty/dlpack"
    return [f"{clone} {TVM_RUNTIME.url}"], ["tvm/include", "tvm/3rdparty/dlpack/include"]


_SHOWN = 4


def added_functions(module: Module) -> list[str]:
    """Return the first functions that the static executor adds to a module without a C interface."""
    if module.style == OPERATOR:
        names = list(dict.fromkeys(buffer.function for buffer in module.buffers))[:_SHOWN]
    else:
        called = module.executor == "graph" or module.interface == "packed"
        names = [module.name] if called and module.inputs and module.outputs else []
    prefixes = (printable(struct_prefix(name)) for name in names)
    return [f"`{prefix}_run` in `{prefix}.h`" for prefix in prefixes]


def argument_order(module: Module) -> str:
    """Return the names of the arguments of a packed function, in its order."""
    known = (*module.inputs, *module.outputs) if module.inputs and module.outputs else ()
    return ", ".join(printable(tensor.name) for tensor in known) or "inputs, then outputs"


def c_buffer(tensor: TensorInfo) -> str:
    """Return the declarator of a C array that holds ``tensor``: ``float x[3]``, bytes if C has no such type."""
    c_type, size = C_TYPES.get(tensor.dtype), element_size(tensor.dtype)
    if c_type is None or not size:
        c_type, size = "uint8_t", 1
    return f"{c_type} {sanitize_name(tensor.name)}[{tensor.size // size}]"


README = "README.md"
_MARK = "<!-- Derived by mlfbuild from the rest of this archive; edits are lost when the archive is written again. -->"
_DETAILED = 8
"""Largest number of modules with one section each; more modules get one line each."""
_WIDTH = 100


def is_derived(content: Content) -> bool:
    """Return whether ``content``, a ``README.md``, was written by ``readme_text``."""
    mark = _MARK.encode()
    # Only as much as the mark, because the content may be in a large file.
    start = content.read(0, len(mark)) if isinstance(content, LazyBytes) else content[: len(mark)]
    return start == mark


def is_written_archive(files: Mapping[str, Content]) -> bool:
    """Return whether ``files`` are those of an archive that mlfbuild wrote: it adds the page to every archive.

    ``files`` has contents by path. Only the beginning of the page is read. A page of another tool, or one without the
    mark of mlfbuild, does not count.
    """
    return README in files and is_derived(files[README])


def has_page(paths: Iterable[str]) -> bool:
    """Return whether a file or folder in ``paths`` has the name of the page, in upper or lower case."""
    return any(path.split("/", 1)[0].lower() == README.lower() for path in paths)


def readme_text(library: Library) -> str:
    """Return the page for ``library``, in Markdown; ``library.version`` must be the version of the archive.

    Equal libraries give equal pages. Names from the archive are escaped, so that they begin neither formatting nor HTML
    nor another block.
    """
    modules = library.modules
    names = [module.name for module in modules]
    declared = dict.fromkeys(item for module in modules for item in module.external_dependencies)
    missing = dict.fromkeys(_missing(library))
    return (
        _environment()
        .get_template("readme.md")
        .render(
            mark=_MARK,
            title=_title(modules),
            library=library,
            modules=modules,
            detailed=len(modules) <= _DETAILED,
            folder=names[0] if len(names) == 1 else "models",
            linked=[f"mlf::{name}" for name in names[:_DETAILED]],
            commands=commands(library),
            runtime=any(runtime_requirement(module) for module in modules),
            devices=sorted({code.name for module in modules for code in device_code(module)}),
            required=[*declared, *missing],
            missing=list(dict.fromkeys(markdown_code(item.short_name) for item in missing)),
        )
    )


@functools.cache
def _environment() -> Environment:
    return text_templates(
        Path(__file__).parent,
        added_functions,
        argument_order,
        c_buffer,
        listed,
        struct_prefix,
        symbol_prefix,
        buffers=_buffers,
        code=markdown_code,
        contents=_contents,
        dependencies=lambda found: _table(("name", "version", "source"), [_dependency(item) for item in found]),
        device=lambda context: context_text(context_facts(context), markdown_code),
        in_c=sanitize_name,
        in_folder=lambda name: markdown_code(f"codegen/{name}/"),
        memory=lambda module: _table(("memory", "bytes"), _memory(module)),
        overview=_overview,
        paragraph=_paragraph,
        plain=_plain,
        tensors=_tensors,
    )


def _paragraph(text: str) -> str:
    """Return ``text`` in lines of at most 100 columns; longer words stay whole."""
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _title(modules: Sequence[Module]) -> str:
    if len(modules) > 1:
        return f"{counted(len(modules), 'neural network')}, compiled for firmware"
    kind = "an operator" if modules[0].style == OPERATOR else "a neural network"
    return f"{_plain(modules[0].name)}: {kind}, compiled for firmware"


def _overview(modules: Sequence[Module]) -> str:
    rows = [
        [markdown_code(m.name), m.executor or m.style, *(f"{size:,}" for size in (_workspace(m), _constants(m)))]
        for m in modules
    ]
    return _table(("module", "executor", "workspace, bytes", "constants, bytes"), rows)


def _tensors(module: Module) -> str:
    tensors = [("input", t) for t in module.inputs] + [("output", t) for t in module.outputs]
    head = ("", "name", "type", "shape", "bytes", "quantisation", "in the model file")
    return _table(head, [_tensor(kind, tensor) for kind, tensor in tensors])


def _buffers(module: Module) -> str:
    return _table(("function", "argument", "type", "shape", "bytes"), [_buffer(b) for b in module.buffers])


def _tensor(kind: str, tensor: TensorInfo) -> list[str]:
    scale = "" if tensor.scale is None else f"scale {tensor.scale:.9g}, zero point {tensor.zero_point}"
    name, dtype, source = map(markdown_code, (tensor.name, tensor.dtype, tensor.source_name))
    return [kind, name, dtype, _shape(tensor.shape), f"{tensor.size:,}", scale, source]


def _buffer(buffer: OperatorBuffer) -> list[str]:
    function, name, dtype = map(markdown_code, (buffer.function, buffer.input_binding or "", buffer.dtype))
    return [function, name, dtype, _shape(buffer.shape), f"{buffer.size:,}"]


def _shape(shape: Sequence[int] | None) -> str:
    return "unknown" if shape is None else " x ".join(map(str, shape)) or "scalar"


def _memory(module: Module) -> list[list[str]]:
    owner = "which are in the workspace" if module.workspace_io else "which the caller owns"
    rows = [
        ["workspace, for intermediate results", f"{_workspace(module):,}"],
        ["constants, such as weights", f"{_constants(module):,}"],
        [f"inputs and outputs, {owner}", f"{sum(entry.io_size for entry in module.main):,}"],
    ]
    arenas = module.network.arenas if module.network else ()
    rows[1:1] = [[f"of it in {markdown_code(memory.name)}", f"{memory.size:,}"] for memory in arenas]
    if module.state_size:
        rows.append(["state, kept between runs", f"{module.state_size:,}"])
    sizes = [(markdown_code(pool.name), "unknown" if pool.size is None else f"{pool.size:,}") for pool in module.pools]
    return rows + [[f"pool {name}", size] for name, size in sizes]


def _workspace(module: Module) -> int:
    return sum(entry.workspace_size for entry in module.main)


def _constants(module: Module) -> int:
    return sum(entry.constants_size for entry in module.main)


def _missing(library: Library) -> Iterator[ExternalDependency]:
    """Yield requirements of the code that are not in the metadata."""
    for module in library.modules:
        for requirement in requirements_of(module):
            if not requirement.declared:
                yield ExternalDependency(
                    requirement.name, requirement.url, requirement.url_type, requirement.version or "unknown"
                )


def _dependency(dependency: ExternalDependency) -> list[str]:
    kind = "folder of the archive" if dependency.url_type == ARCHIVE_FOLDER else printable(dependency.url_type)
    name, version, url = map(markdown_code, (dependency.short_name, dependency.version_spec, dependency.url))
    return [name, version, f"{_plain(kind)} {url}"]


_CONTENTS = {
    "codegen": "generated code: C and C++ in `src/`, headers in `include/`, objects in `lib/`",
    "dependencies": "libraries that the code requires, with sources, headers and licences, and a description of each",
    "runtime-config": "the graph for TVM's graph executor, as JSON",
    "executor-config": "graphs for TVM's graph executor, as JSON",
    "parameters": "weights as named arrays, in TVM's byte format; empty if the weights are in the code",
    "src": "text of the programs before code generation",
    "relay.txt": "text of the program before code generation",
    "runtime": "TVM's C runtime, headers and sources",
    "templates": "TVM's templates of platform functions and of the runtime's configuration",
}


def _contents(library: Library) -> str:
    form = FORMATS[library.version]
    full = [module for module in library.modules if module.style != OPERATOR]
    present = {"codegen", PurePosixPath(form.program).parts[0] if full else "src"}
    present |= {"parameters"} if full else set()
    present |= {PurePosixPath(form.graph).parts[0]} if any(module.graph_json is not None for module in full) else set()
    present |= {file.path.parts[0] for file in library.other_files}
    rows = [["`metadata.json`", "names, memory sizes, inputs and outputs, dependencies"]]
    found = [(name, content) for name, content in sorted(_CONTENTS.items()) if name in present]
    rows += [[f"`{name}`" if "." in name else f"`{name}/`", content] for name, content in found]
    return _table(("path", "content"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table without the columns that are empty in all rows."""
    kept = [index for index in range(len(head)) if any(row[index] for row in rows)]
    return markdown_table([head[index] for index in kept], [[row[index] for index in kept] for row in rows])


def _plain(text: str) -> str:
    """Return a name from the archive as text of a page, with the characters of Markdown and HTML escaped."""
    return "".join(f"\\{char}" if char in "\\`*[]<>#&" else char for char in printable(text))
