"""Checks that need two values of a project file: names that lead somewhere, and things that fit each other.

They work on the plain values, so that a file with other mistakes still gets all of these reported in the same run; a
value of the wrong kind is somebody else's report and is skipped here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlfbuild.project.budgets import check_instruction_budgets
from mlfbuild.project.document import Document
from mlfbuild.project.problems import KeyPath, quoted, unknown
from mlfbuild.project.provisions import check_dependencies
from mlfbuild.project.rules import EXTERNAL_COMPILERS, source_problem
from mlfbuild.project.sections import check_sections
from mlfbuild.project.sources import SOURCES, source_suffix
from mlfbuild.targets import BOARDS, CLANG, CPUS, GCC

_BLOBS = "_blobs"
_SHARE = "share-workspace"


def check_references(document: Document) -> None:
    """Add every mistake between values to the problems of ``document``."""
    for section in ("targets", "firmware"):
        _check_folder_names(document, section)
    for name, target in _entries(document.data, "targets"):
        _check_board(document, ("targets", name), target)
        _check_c_compiler(document, ("targets", name), target)
    for name, model in _entries(document.data, "models"):
        _check_model(document, ("models", name), model)
    for name, firmware in _entries(document.data, "firmware"):
        _check_firmware(document, ("firmware", name), firmware)
    _check_shared_workspace(document)
    _check_growth(document)
    check_dependencies(document)
    check_instruction_budgets(document)
    check_sections(document)


def _entries(data: object, section: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the names and mappings of a section, leaving out what is not a mapping."""
    for name, entry in _mapping(data, section).items():
        if isinstance(entry, dict):
            yield name, entry


def _mapping(data: object, key: str) -> Mapping[str, object]:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def _texts(entry: Mapping[str, object], key: str) -> list[tuple[int, str]] | None:
    """Return the texts of a list with their indices, ``None`` where the key holds no list."""
    value = entry.get(key)
    return [(i, text) for i, text in enumerate(value) if isinstance(text, str)] if isinstance(value, list) else None


def _check_folder_names(document: Document, section: str) -> None:
    """Names become folders and files, which some machines tell apart only by more than case."""
    first: dict[str, str] = {}
    for name in _mapping(document.data, section):
        other = first.setdefault(name.lower(), name)
        if other != name:
            document.add((section, name), f"differs from {quoted(other)} only in case; choose another", at_key=True)


def _check_board(document: Document, path: KeyPath, target: Mapping[str, object]) -> None:
    cpu, board = target.get("cpu"), target.get("board")
    if not isinstance(cpu, str) or not isinstance(board, str) or cpu not in CPUS or board not in BOARDS:
        return
    if not BOARDS[board].takes(CPUS[cpu]):
        fitting = [other.name for other in BOARDS.values() if other.takes(CPUS[cpu])]
        advice = f"boards with a {cpu}: {', '.join(fitting)}" if fitting else "no board has this cpu; leave board out"
        document.add((*path, "board"), f"{board} has a {BOARDS[board].cpu}, the target's cpu is {cpu} ({advice})")


def _check_c_compiler(document: Document, path: KeyPath, target: Mapping[str, object]) -> None:
    cpu, compiler = target.get("cpu"), target.get("c-compiler")
    if compiler is not None and "toolchain" in target:
        reason = "not together with toolchain, which names its own compiler; leave one of them out"
        document.add((*path, "c-compiler"), reason, at_key=True)
    elif isinstance(cpu, str) and cpu in CPUS and compiler in {GCC, CLANG} and compiler not in CPUS[cpu].compilers:
        known = CPUS[cpu].compilers
        advice = f"use {' or '.join(known)}" if known else "CMake takes what the environment variable CC says"
        document.add((*path, "c-compiler"), f"there is no toolchain file for {cpu} with {compiler}; {advice}")


def _check_model(document: Document, path: KeyPath, model: Mapping[str, object]) -> None:
    name = str(path[-1])
    if name.endswith(_BLOBS) and name.removesuffix(_BLOBS) in _mapping(document.data, "models"):
        reason = f"the build of {quoted(name.removesuffix(_BLOBS))} makes a target of this name; choose another"
        document.add(path, reason, at_key=True)
    source, compiler = model.get("source"), model.get("compiler")
    fitting = SOURCES.get(source_suffix(source)) if isinstance(source, str) else None
    if fitting and compiler in SOURCES.values() and compiler != fitting:
        reason = f"compiler {quoted(str(compiler))} does not read {source_suffix(str(source))} files; use {fitting}"
        document.add((*path, "compiler"), reason)
    if (compiler or fitting) == "native" and model.get("executor") == "graph":
        _check_placement_of_graph(document, (*path, "placement"), _mapping(model, "placement"))
    if compiler not in EXTERNAL_COMPILERS and isinstance(source, str) and source.strip():
        problem = source_problem(source)
        if problem:
            document.add((*path, "source"), problem)
    _check_program(document, path, model)
    _check_names(document, path, model, "target")


def _check_program(document: Document, path: KeyPath, model: Mapping[str, object]) -> None:
    """Check that the keys of a program that compiles are there with the compilers that need them, and no others."""
    compiler = model.get("compiler")
    if compiler == "command" and "command" not in model:
        document.add((*path, "compiler"), "needs the key command, which says what to run")
    for key, compilers in (("command", ["command"]), ("python", ["tvm"]), ("inputs", EXTERNAL_COMPILERS)):
        if key in model and compiler not in compilers:
            needed = " or ".join(f'"compiler: {name}"' for name in compilers)
            reason = f"only with {needed}; add that, or leave {key} out"
            document.add((*path, key), reason, at_key=True)


def _check_placement_of_graph(document: Document, path: KeyPath, placement: Mapping[str, object]) -> None:
    if isinstance(placement.get("params"), dict):
        document.add((*path, "params"), "constants of a graph have no classes; name one section, or use executor aot")
    if "state" in placement:
        document.add((*path, "state"), "a graph keeps no state; leave it out, or use executor aot", at_key=True)


def _check_names(document: Document, path: KeyPath, entry: Mapping[str, object], what: str) -> None:
    """Check that the list ``targets`` or ``models`` of an entry holds each name once and only names that exist."""
    known = _mapping(document.data, f"{what}s")
    seen: set[str] = set()
    for index, name in _texts(entry, f"{what}s") or ():
        place = (*path, f"{what}s", index)
        if name not in known:
            document.add(place, unknown(what, name, known))
        elif name in seen:
            document.add(place, f"{quoted(name)} is in the list twice")
        seen.add(name)


def _check_shared_workspace(document: Document) -> None:
    """Check that ``share-workspace`` names two models or more, once each, whose workspaces we decide about."""
    models = _mapping(document.data, "models")
    names = _texts(document.data if isinstance(document.data, dict) else {}, _SHARE)
    if names is not None and len(names) < 2:
        document.add((_SHARE,), "needs two models or more that share")
    seen: set[str] = set()
    for index, name in names or ():
        if name not in models:
            document.add((_SHARE, index), unknown("model", name, models))
        elif name in seen:
            document.add((_SHARE, index), f"{quoted(name)} is in the list twice")
        else:
            _check_sharing(document, (_SHARE, index), name, _mapping(models, name))
        seen.add(name)


def _check_growth(document: Document) -> None:
    keys = document.data if isinstance(document.data, dict) else {}
    if "budget-growth" in keys and "budget-file" not in keys:
        reason = "means nothing without budget-file; name the file that sizes are compared with, or leave this out"
        document.add(("budget-growth",), reason, at_key=True)


def _check_sharing(document: Document, path: KeyPath, name: str, model: Mapping[str, object]) -> None:
    source = model.get("source")
    fitting = SOURCES.get(source_suffix(source)) if isinstance(source, str) else None
    compiler = model.get("compiler") or fitting
    if compiler == "native" and model.get("executor") == "graph":
        document.add(path, f"the executor of {quoted(name)}, a graph, has its own workspace; leave it out")
    if isinstance(compiler, str) and compiler != "native":
        document.add(path, f"the code of {quoted(name)} is compiled already and has its own workspace; leave it out")
    if "workspace" in _mapping(model, "placement"):
        reason = f"not for {quoted(name)}, which shares its workspace: the linker places that as a common symbol"
        document.add(("models", name, "placement", "workspace"), reason)


def _check_firmware(document: Document, path: KeyPath, firmware: Mapping[str, object]) -> None:
    if "cmake" in firmware:
        for key in ("sources", "include-dirs"):
            if key in firmware:
                document.add((*path, key), "not together with cmake, whose CMakeLists.txt names them", at_key=True)
    elif "sources" not in firmware:
        document.add(path, "needs sources, or cmake with the folder of a CMakeLists.txt", at_key=True)
    _check_names(document, path, firmware, "target")
    _check_names(document, path, firmware, "model")
    _check_built(document, path, firmware)


def _check_built(document: Document, path: KeyPath, firmware: Mapping[str, object]) -> None:
    """Check that every model a firmware names is built for every target of the firmware."""
    models = _mapping(document.data, "models")
    all_targets = list(_mapping(document.data, "targets"))
    wanted = _texts(firmware, "targets")
    for index, name in _texts(firmware, "models") or ():
        model = models.get(name)
        built = _texts(model, "targets") if isinstance(model, dict) else None
        if built is None:
            continue
        names = [target for _, target in built]
        missing = [
            t for t in ([t for _, t in wanted] if wanted else all_targets) if t in all_targets and t not in names
        ]
        if missing:
            reason = f"{quoted(name)} is not built for {', '.join(missing)} (its targets: {', '.join(names)})"
            document.add((*path, "models", index), reason)
