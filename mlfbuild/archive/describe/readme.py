"""Write the ``README.md`` of an archive, which explains the archive to people who do not know the format.

The first design of Model Library Format proposed such a page, but TVM's exporters never wrote one. The page depends
only on the library, so equal libraries have equal pages. Its text is the template ``readme.md``. Readers ignore it,
because all of its content is in other files of the archive.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mlfbuild.archive.describe.calling import added_functions, argument_order, c_buffer, commands
from mlfbuild.archive.describe.facts import context_facts, context_text
from mlfbuild.core import counted, listed, markdown_code, markdown_table, printable, text_templates
from mlfbuild.library import (
    ARCHIVE_FOLDER,
    OPERATOR,
    Content,
    ExternalDependency,
    LazyBytes,
    Library,
    Module,
    OperatorBuffer,
    TensorInfo,
    device_code,
    requirements_of,
    runtime_requirement,
    sanitize_name,
    struct_prefix,
    symbol_prefix,
)
from mlfbuild.library.metadata import FORMATS

if TYPE_CHECKING:
    from jinja2 import Environment

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
    """Return whether ``files`` are those of an archive that mlfbuild wrote: it adds the page to every archive."""
    return README in files and is_derived(files[README])


def has_page(paths: Iterable[str]) -> bool:
    """Return whether a file or folder in ``paths`` has the name of the page, in upper or lower case."""
    return any(path.split("/", 1)[0].lower() == README.lower() for path in paths)


def readme_text(library: Library) -> str:
    """Return the page for ``library``, in Markdown; ``library.version`` must be the version of the archive."""
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
        added_functions=added_functions,
        argument_order=argument_order,
        buffers=_buffers,
        c_buffer=c_buffer,
        code=markdown_code,
        contents=_contents,
        dependencies=lambda found: _table(("name", "version", "source"), [_dependency(item) for item in found]),
        device=lambda context: context_text(context_facts(context), markdown_code),
        in_c=sanitize_name,
        in_folder=lambda name: markdown_code(f"codegen/{name}/"),
        listed=listed,
        memory=lambda module: _table(("memory", "bytes"), _memory(module)),
        overview=_overview,
        paragraph=_paragraph,
        plain=_plain,
        struct_prefix=struct_prefix,
        symbol_prefix=symbol_prefix,
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
