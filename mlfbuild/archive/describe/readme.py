"""Write the ``README.md`` of an archive, which explains the archive to people who do not know the format.

The first design of Model Library Format proposed such a page, but TVM's exporters never wrote one. The page depends
only on the library, so equal libraries have equal pages. Readers ignore it, because all of its content is in other
files of the archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from mlfbuild.archive.describe.calling import call_text, commands, paragraph
from mlfbuild.archive.describe.facts import context_facts, context_text
from mlfbuild.core import counted, listed, printable
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
)
from mlfbuild.library.metadata import FORMATS

README = "README.md"
_MARK = "<!-- Derived by mlfbuild from the rest of this archive; edits are lost when the archive is written again. -->"
_DETAILED = 8
"""Largest number of modules with one section each; more modules get one line each."""


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
    return "\n".join(_lines(library)) + "\n"


def _lines(library: Library) -> Iterator[str]:
    modules = library.modules
    yield _MARK
    yield ""
    yield f"# {_title(modules)}"
    yield ""
    yield from paragraph(
        f"This archive is in Model Library Format, version {library.version}, the format of Apache TVM and mlfbuild "
        "for neural networks that are compiled for firmware. Programs read `metadata.json`; this page describes the "
        "archive for people."
    )
    if len(modules) <= _DETAILED:
        for module in modules:
            yield from _section(module)
    else:
        yield from _overview(modules)
    yield from _building(library)
    yield from _files(library)


def _title(modules: Sequence[Module]) -> str:
    if len(modules) > 1:
        return f"{counted(len(modules), 'neural network')}, compiled for firmware"
    kind = "an operator" if modules[0].style == OPERATOR else "a neural network"
    return f"{_plain(modules[0].name)}: {kind}, compiled for firmware"


def _overview(modules: Sequence[Module]) -> Iterator[str]:
    rows = [
        [_code(m.name), m.executor or m.style, *(f"{size:,}" for size in (_workspace(m), _constants(m)))]
        for m in modules
    ]
    yield ""
    yield from _table(("module", "executor", "workspace, bytes", "constants, bytes"), rows)
    yield ""
    yield "`mlfbuild inspect --model <module> <archive>` shows the inputs, outputs and memory of one module."


def _section(module: Module) -> Iterator[str]:
    yield ""
    yield f"## {_plain(module.name)}"
    yield ""
    for target in module.targets:
        yield f"Compiled for the target {_code(target.text.strip())}."
    for context in module.contexts:
        yield f"Runs on the device {context_text(context_facts(context), _code)}."
    tensors = [("input", t) for t in module.inputs] + [("output", t) for t in module.outputs]
    if tensors:
        yield ""
        yield from _table(
            ("", "name", "type", "shape", "bytes", "quantisation", "in the model file"),
            [_tensor(kind, tensor) for kind, tensor in tensors],
        )
    if module.buffers:
        yield ""
        yield from _table(("function", "argument", "type", "shape", "bytes"), [_buffer(b) for b in module.buffers])
    if module.main:
        yield ""
        yield from _table(("memory", "bytes"), _memory(module))
    yield ""
    yield from call_text(module)


def _tensor(kind: str, tensor: TensorInfo) -> list[str]:
    scale = "" if tensor.scale is None else f"scale {tensor.scale:.9g}, zero point {tensor.zero_point}"
    source = _code(tensor.source_name)
    return [kind, _code(tensor.name), _code(tensor.dtype), _shape(tensor.shape), f"{tensor.size:,}", scale, source]


def _buffer(buffer: OperatorBuffer) -> list[str]:
    name = _code(buffer.input_binding) if buffer.input_binding else ""
    return [_code(buffer.function), name, _code(buffer.dtype), _shape(buffer.shape), f"{buffer.size:,}"]


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
    pools = [
        [f"pool {_code(pool.name)}", "unknown" if pool.size is None else f"{pool.size:,}"] for pool in module.pools
    ]
    return rows + pools


def _workspace(module: Module) -> int:
    return sum(entry.workspace_size for entry in module.main)


def _constants(module: Module) -> int:
    return sum(entry.constants_size for entry in module.main)


# The archive as a whole ----------------------------------------------------------------------------------------------


def _building(library: Library) -> Iterator[str]:
    names = [module.name for module in library.modules]
    folder = names[0] if len(names) == 1 else "models"
    linked = " ".join(f"mlf::{name}" for name in names[:_DETAILED])
    yield ""
    yield "## Building"
    yield ""
    yield "With mlfbuild and CMake (builds of the unpacked folder do not need Python):"
    yield ""
    yield "```sh"
    yield f"mlfbuild unpack <archive> -o {folder}"
    yield "```"
    yield "```cmake"
    yield f"include({folder}/mlf.cmake)"
    yield f"target_link_libraries(app PRIVATE {linked}){' # and so on' if len(names) > _DETAILED else ''}"
    yield "```"
    yield ""
    yield from _by_hand(library)
    devices = sorted({code.name for module in library.modules for code in device_code(module)})
    if devices:
        folders = listed([_code(f"codegen/{name}/") for name in devices])
        yield ""
        yield from paragraph(
            f"The code in {folders} is for {'another device' if len(devices) == 1 else 'other devices'} than the host, "
            "such as an accelerator: compile it with the compiler of that device. With mlfbuild, declare each under "
            "`devices` of the target in the project file."
        )
    dependencies = dict.fromkeys(item for module in library.modules for item in module.external_dependencies)
    missing = dict.fromkeys(_missing(library))
    if dependencies or missing:
        yield ""
        yield "The code requires these libraries:"
        yield ""
        yield from _table(("name", "version", "source"), [_dependency(item) for item in (*dependencies, *missing)])
    if missing:
        yield ""
        unnamed = listed(list(dict.fromkeys(_code(item.short_name) for item in missing)))
        yield from paragraph(
            f"The metadata does not list {unnamed}. The requirement follows from the headers that the code includes, "
            "and the version, if known, from the release of TVM that exported the code."
        )


def _by_hand(library: Library) -> Iterator[str]:
    """Yield how to build the archive without mlfbuild: the commands, or what to compile."""
    lines = commands(library)
    if not lines:
        yield from paragraph(
            "By hand: compile all files in `codegen/host/src/` with `codegen/host/include/` on the include path, and "
            "link the objects in `codegen/host/lib/`. An archive may lack some of these folders."
        )
        return
    yield "By hand, in the folder of the extracted archive:"
    yield ""
    yield "```sh"
    yield from lines
    yield "```"
    if any(runtime_requirement(module) for module in library.modules):
        yield ""
        yield from paragraph(
            "Firmware that links the library contains TVM's C runtime, too (`src/runtime/crt` in TVM's repository). "
            "The folder that `mlfbuild unpack` writes does not need it."
        )


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
    return [_code(dependency.short_name), _code(dependency.version_spec), f"{_plain(kind)} {_code(dependency.url)}"]


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


def _files(library: Library) -> Iterator[str]:
    form = FORMATS[library.version]
    full = [module for module in library.modules if module.style != OPERATOR]
    present = {"codegen", PurePosixPath(form.program).parts[0] if full else "src"}
    present |= {"parameters"} if full else set()
    present |= {PurePosixPath(form.graph).parts[0]} if any(module.graph_json is not None for module in full) else set()
    present |= {file.path.parts[0] for file in library.other_files}
    yield ""
    yield "## Files"
    yield ""
    rows = [["`metadata.json`", "names, memory sizes, inputs and outputs, dependencies"]]
    found = [(name, content) for name, content in sorted(_CONTENTS.items()) if name in present]
    rows += [[f"`{name}`" if "." in name else f"`{name}/`", content] for name, content in found]
    yield from _table(("path", "content"), rows)


# Markdown ------------------------------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table without the columns that are empty in all rows."""
    kept = [index for index in range(len(head)) if any(row[index] for row in rows)]
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row[index] for index in kept)} |"


def _plain(text: str) -> str:
    """Return a name from the archive as text of a page, with the characters of Markdown and HTML escaped."""
    return "".join(f"\\{char}" if char in "\\`*[]<>|#&" else char for char in printable(text))


def _code(text: str) -> str:
    """Return a name from the archive as code, which may be in a cell of a table."""
    # Markdown has no escape for a backtick in code. In a table, a bar needs one even there.
    return "`" + printable(text).replace("`", "'").replace("|", "\\|") + "`" if text else ""
