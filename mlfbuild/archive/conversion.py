"""Convert a library to another version of the format without changing its meaning, and rename its modules.

Little changes with the version, because the layout of the archive follows from it: the names of generated files begin
with the module's name from version 3 on, and targets take the form of the version. Operators do not change. A library
that the version cannot hold is refused.

Modules are renamed, for example, to link two archives that were both exported as ``default`` into one firmware. TVM
uses a module's name in its symbols (``tvmgen_<module>_...``), macros, files and graph; mlfbuild's symbols also begin
with ``mlf_<module>_``. All of them are changed together. Parameters, program texts and other files do not change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from mlfbuild.c_analysis import MAX_TEXT, OBJECT_SUFFIXES, TEXT_SUFFIXES
from mlfbuild.core import UsageError, listed, quoted
from mlfbuild.library import (
    CPU_DEVICE,
    OPERATOR,
    CodegenFile,
    Content,
    Library,
    Module,
    ModuleTarget,
    all_files,
    chunks,
    header_names,
    is_kernel_header,
    sanitize_name,
    spooled,
    text_of,
    with_files,
)
from mlfbuild.library.graph_json import CALL, GraphNode, graph_text, parse_graph
from mlfbuild.library.metadata import Format, written_format

NEW_NAME = re.compile(r"[a-z][a-z0-9_]*")
"""New names of modules follow the rules for names of models in a project file."""
_WORD = re.compile(r"\w+", re.ASCII)

Edit = Callable[[str], str]


def rename_modules(library: Library, names: Mapping[str, str]) -> Library:
    """Return ``library`` with modules renamed by ``names``: old name -> new name.

    Raises ``UsageError`` if a module does not exist, a new name is invalid or taken, or a module is an operator or has
    compiled objects, whose symbols cannot be renamed.
    """
    _check(library, names)
    headers = {
        header: f"tvmgen_{names.get(module.name, module.name)}.h"
        for module in library.modules
        for header in header_names(module.name)
    }
    edit = _edit_of(library, names)
    modules = tuple(
        _with_names(module, names.get(module.name, module.name), edit, headers) for module in library.modules
    )
    return replace(library, modules=modules)


def _check(library: Library, names: Mapping[str, str]) -> None:
    known = [module.name for module in library.modules]
    for old, new in names.items():
        if old not in known:
            raise UsageError(
                "module-unknown", reason=f"there is no module {quoted(old)}", hint=f"choose one of {listed(known)}"
            )
        if not NEW_NAME.fullmatch(new):
            raise UsageError(
                "module-name-invalid",
                reason=f"{quoted(new)} is not a valid name for a module",
                hint="use lower-case letters, digits and underscores, for example kws_v2",
            )
    # In lower case, as headers and structs have the names.
    after = [names.get(name, name).lower() for name in known]
    for name in after:
        if after.count(name) > 1:
            raise UsageError(
                "module-name-taken",
                reason=f"two modules would have the name {quoted(name)}",
                hint="choose another name",
            )
    for module in library.modules if names else ():
        if module.style == OPERATOR:
            reason = "an operator cannot be renamed, because it is called by the name of its function"
            raise UsageError("operator-not-renamed", place=f"module {module.name}", reason=reason, hint="leave it out")
        if any(file.path.suffix in OBJECT_SUFFIXES for file in all_files(module)):
            raise UsageError(
                "objects-not-renamed",
                place=f"module {module.name}",
                reason="the module has compiled objects, whose symbols cannot be renamed",
                hint="export it again with another name",
            )


def _edit_of(library: Library, names: Mapping[str, str]) -> Edit:
    """Return the function that renames the symbols of modules in C text, in mixed, lower and upper case."""
    forms: dict[str, str] = {}
    for module in library.modules:
        old, new = sanitize_name(module.name), names.get(module.name, sanitize_name(module.name))
        forms |= {old.lower(): new.lower(), old.upper(): new.upper(), old: new}
    # The longest first: of the modules kws and kws_v2, the pattern must not find kws in the symbols of kws_v2.
    alternatives = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    # `mlf:` begins the ID in an image, and `module "` ends the phrase of TVM's comments in headers. An underscore may
    # follow a name, as in tvmgen_kws_run; with a letter or digit, the name would be that of another module.
    pattern = re.compile(rf'(tvmgen_|TVMGEN_|mlf_|MLF_|mlf:|module ")({alternatives})(?![0-9A-Za-z])')
    # Renaming a module `conv2d` must not rename `mlf_conv2d` of a kernel.
    kernels = (file for module in library.modules for file in module.codegen if is_kernel_header(file.path))
    kept = frozenset(word for file in kernels for word in _WORD.findall(text_of(file.content)))
    usual = {f"tvmgen_{sanitize_name(module.name).lower()}.h" for module in library.modules}
    unusual = {
        header: f"tvmgen_{sanitize_name(module.name).lower()}.h"
        for module in library.modules
        for header in header_names(module.name) - usual
    }

    def edit(text: str) -> str:
        def changed(found: re.Match[str]) -> str:
            word = _WORD.match(text, found.start())
            if word is not None and word[0] in kept:
                return found[0]
            return found[1] + forms[found[2]]

        for header, other in unusual.items():
            text = text.replace(header, other)
        return pattern.sub(changed, text)

    return edit


def _with_names(module: Module, new: str, edit: Edit, headers: Mapping[str, str]) -> Module:
    graph: Content | None = None
    if module.graph_json is not None:
        parsed = parse_graph(bytes(module.graph_json), f"{module.name}.graph")
        graph = graph_text(replace(parsed, nodes=tuple(_node(node, edit) for node in parsed.nodes))).encode()
    return replace(
        module,
        name=new,
        codegen=tuple(_file(file, module.name, new, edit, headers) for file in module.codegen),
        device_files=tuple(_device_file(file, module.name, new, edit, headers) for file in module.device_files),
        trace=tuple(replace(traced, function=edit(traced.function)) for traced in module.trace),
        network=None if module.network is None else module.network.renamed(edit),
        operator_functions=tuple(replace(f, name=edit(f.name)) for f in module.operator_functions),
        graph_json=graph,
    )


def _file(file: CodegenFile, old: str, new: str, edit: Edit, headers: Mapping[str, str]) -> CodegenFile:
    if is_kernel_header(file.path) or file.path.suffix not in TEXT_SUFFIXES:
        return file
    name = headers.get(file.path.name) or edit(file.path.name)  # other headers as in the code that includes them
    if name.startswith(f"{old}_"):
        name = new + name.removeprefix(old)
    pieces = (edit(text).encode("latin-1") for text in _lines(file.content))
    return CodegenFile(file.path.with_name(name), spooled(pieces))


def _device_file(file: CodegenFile, old: str, new: str, edit: Edit, headers: Mapping[str, str]) -> CodegenFile:
    """Return a file of another device; symbols of blobs contain the names of files, without the module's."""
    if file.path.suffix in TEXT_SUFFIXES:
        return _file(file, old, new, edit, headers)
    name = file.path.name
    return replace(file, path=file.path.with_name(new + name.removeprefix(old))) if name.startswith(f"{old}_") else file


def _lines(content: Content) -> Iterator[str]:
    """Yield the text, one character per byte, in pieces of whole lines, because constants may be very large."""
    rest = b""
    for chunk in chunks(content):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield (rest + chunk[:end]).decode("latin-1")
            rest = chunk[end:]
        else:
            rest += chunk
    yield rest.decode("latin-1")


def _node(node: GraphNode, edit: Edit) -> GraphNode:
    if node.op != CALL:
        return node
    attrs = tuple((key, edit(value) if key == "func_name" else value) for key, value in node.attrs)
    return replace(node, name=edit(node.name), attrs=attrs)


_NUMBERED = r"lib[0-9]+\.\w+"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]*)"', re.MULTILINE)


def convert(library: Library, version: int) -> Library:
    """Return ``library`` in ``version``: 1 to 7.

    Raises ``UsageError`` if the version cannot hold the library: several modules before 7, several targets of one
    device before 6, an operator before 4, or an operator together with other modules.
    """
    form = written_format(version)
    names = [module.name for module in library.modules]
    if len(names) > 1 and not form.modules:
        raise UsageError(
            "format-holds-one-module",
            reason=f"version {version} of Model Library Format holds one module, but the library has {len(names)}: "
            f"{listed(names)}",
            hint="write version 7",
        )
    operators = [module.name for module in library.modules if module.style == OPERATOR]
    if operators and len(names) > 1:
        raise UsageError(
            "operator-not-alone",
            place=f"module {operators[0]}",
            reason=f"an operator must be the only module of an archive, but the library has {len(names)} modules",
            hint="write one archive for each operator",
        )
    if operators and not form.operators:
        raise UsageError(
            "format-holds-no-operator",
            place=f"module {operators[0]}",
            reason=f"version {version} of Model Library Format cannot hold single operators",
            hint="write version 4 or later",
        )
    return replace(library, version=version, modules=tuple(_converted(module, form) for module in library.modules))


def _converted(module: Module, form: Format) -> Module:
    targets = _by_device(module, form) if form.targets_by_device else _listed_targets(module)
    files = all_files(module) if module.style == OPERATOR else _renamed(module, form)
    return replace(with_files(module, files), targets=targets)


def _by_device(module: Module, form: Format) -> tuple[ModuleTarget, ...]:
    """Return the targets, which must have different device types; a single target is for the CPU."""
    if len(module.targets) == 1:
        (target,) = module.targets
        return (replace(target, device=CPU_DEVICE if target.device is None else target.device),)
    for device, count in Counter(target.device for target in module.targets).items():
        if device is None or count > 1:
            reason = "of unknown device" if device is None else f"for device type {device}"
            raise UsageError(
                "format-holds-one-target",
                place=f"module {module.name}",
                reason=f"version {form.version} of Model Library Format holds one target per device type, but the "
                f"module has {count} {reason}",
                hint="write version 7",
            )
    return module.targets


def _listed_targets(module: Module) -> tuple[ModuleTarget, ...]:
    """Return the targets; a single one for the CPU needs no device type."""
    if [target.device for target in module.targets] == [CPU_DEVICE]:
        return (replace(module.targets[0], device=None),)
    return module.targets


def _renamed(module: Module, form: Format) -> tuple[CodegenFile, ...]:
    """Return the generated files with the names of the version: ``lib<n>``, from version 3 on after the module's name.

    No file is renamed if the code includes one of them by its name, or if a new name is taken.
    """
    files = all_files(module)
    prefix = f"{module.name}_"
    old, new = ("", prefix) if "{module}" in form.codegen_name else (prefix, "")
    numbered = re.compile(re.escape(old) + _NUMBERED, re.ASCII)
    names = {
        file.path: file.path.with_name(new + file.path.name.removeprefix(old))
        for file in files
        if numbered.fullmatch(file.path.name)
    }
    taken = {file.path for file in files}
    if taken & set(names.values()) or (names and _included(module) & {path.name for path in names}):
        return files
    return tuple(replace(file, path=names.get(file.path, file.path)) for file in files)


def _included(module: Module) -> set[str]:
    """Return the names of the files that the module's code includes, without folders."""
    sources = (file.content for file in all_files(module) if file.path.suffix in TEXT_SUFFIXES)
    texts = (text_of(content) for content in sources if len(content) <= MAX_TEXT)
    return {path.split("/")[-1] for text in texts for path in _INCLUDE.findall(text)}
