"""Checks that need two values of a project file: names that must exist, and values that must fit each other.

They work on the plain values, so that a file with other mistakes gets all of these reported in the same run. A value of
the wrong type is reported by ``validate`` and skipped here.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.core import Mistake, in_quotes, unknown
from mlfbuild.project.budget_checks import check_targets_of_budgets
from mlfbuild.project.device import check_devices, check_npu
from mlfbuild.project.document import Document, mapping_in
from mlfbuild.project.evaluation_checks import check_evaluations
from mlfbuild.project.memory_checks import check_memories
from mlfbuild.project.memory_script import MemoryScript
from mlfbuild.project.problems import KeyPath, dotted
from mlfbuild.project.program import EXTERNAL_COMPILERS
from mlfbuild.project.provider import check_dependencies
from mlfbuild.project.rules import CHOICES, QEMU
from mlfbuild.project.runner import check_runners
from mlfbuild.project.sections import check_sections
from mlfbuild.project.services import check_services
from mlfbuild.project.sharing import partners
from mlfbuild.project.sources import SOURCES, source_problem, source_suffix
from mlfbuild.project.timing_checks import check_timing
from mlfbuild.targets import BOARDS, CLANG, CPUS, GCC

_BLOBS = "_blobs"
_SHARE, _CONCURRENT = "share-workspace", "concurrent"


def check_references(document: Document, scripts: Mapping[str, MemoryScript]) -> None:
    """Add every mistake between values to the problems of ``document``; ``scripts`` are linker scripts by target."""
    # The order of the checks does not matter: problems are sorted by their lines.
    for section in ("targets", "firmware"):
        _check_folder_names(document, section)
    for name, target in document.entries("targets"):
        if not {"cpu", "mcu"} & {*target}:
            _refuse_without_core(document, ("targets", name), target)
        _check_board(document, ("targets", name), target)
        _check_c_compiler(document, ("targets", name), target)
        check_devices(document, name, target)
        check_npu(document, name, target)
    for name, model in document.entries("models"):
        _check_model(document, ("models", name), model)
    for name, firmware in document.entries("firmware"):
        _check_firmware(document, ("firmware", name), firmware)
    _check_shared_workspace(document)
    _check_growth(document)
    check_dependencies(document)
    check_targets_of_budgets(document)
    check_evaluations(document)
    check_sections(document)
    check_timing(document)
    check_memories(document, scripts)
    check_runners(document)
    check_services(document)


def _refuse_without_core(document: Document, path: KeyPath, target: Mapping[str, object]) -> None:
    """Report that ``target`` has no core, unless its board is refused, which would have said which one it has."""
    if any(problem.path == (*path, "board") for problem in document.problems):
        return
    hint = "add cpu" if "board" in target else "add board, mcu or cpu"
    document.add(path, Mistake("missing-key", reason='missing key "cpu"', hint=hint), at_key=True)


def _texts(entry: Mapping[str, object], key: str) -> list[tuple[int, str]] | None:
    """Return the texts of a list with their indices, ``None`` if the key has no list."""
    return _texts_of(entry.get(key))


def _texts_of(value: object) -> list[tuple[int, str]] | None:
    return [(i, text) for i, text in enumerate(value) if isinstance(text, str)] if isinstance(value, list) else None


def _check_folder_names(document: Document, section: str) -> None:
    """Report names that differ only in case: they become folders and files, and some file systems ignore case."""
    first: dict[str, str] = {}
    for name in document.mapping(section):
        other = first.setdefault(name.lower(), name)
        if other != name:
            reason = f"differs from {in_quotes(other)} only in case"
            document.report((section, name), "names-differ-in-case", reason, "choose another name", at_key=True)


def _check_board(document: Document, path: KeyPath, target: Mapping[str, object]) -> None:
    cpu, board = target.get("cpu"), target.get("board")
    if isinstance(cpu, str) and cpu in CPUS and board == QEMU:
        document.report(
            (*path, "board"), "board-of-another-cpu", f"QEMU emulates no board that runs code for {cpu}", "remove board"
        )
    if not isinstance(cpu, str) or not isinstance(board, str) or cpu not in CPUS or board not in BOARDS:
        return
    if not BOARDS[board].takes(CPUS[cpu]):
        fitting = " or ".join(other.name for other in BOARDS.values() if other.takes(CPUS[cpu]))
        reason = f"{board} has a {BOARDS[board].cpu}, but the target's cpu is {cpu}"
        hint = f"use {fitting}" if fitting else "remove board, because no board has this cpu"
        document.report((*path, "board"), "board-of-another-cpu", reason, hint)


def _check_c_compiler(document: Document, path: KeyPath, target: Mapping[str, object]) -> None:
    cpu, compiler = target.get("cpu"), target.get("c-compiler")
    if compiler is not None and "toolchain" in target:
        reason = "is not accepted together with toolchain, which names a compiler itself"
        document.report((*path, "c-compiler"), "misplaced-key", reason, "remove one of them", at_key=True)
    elif isinstance(cpu, str) and cpu in CPUS and compiler in (GCC, CLANG) and compiler not in CPUS[cpu].compilers:
        known = " or ".join(CPUS[cpu].compilers)
        hint = f"use {known}" if known else "remove c-compiler, and set the environment variable CC"
        reason = f"there is no toolchain file for {cpu} with {compiler}"
        document.report((*path, "c-compiler"), "no-toolchain-file", reason, hint)


def _check_model(document: Document, path: KeyPath, model: Mapping[str, object]) -> None:
    name = str(path[-1])
    if name.endswith(_BLOBS) and name.removesuffix(_BLOBS) in document.mapping("models"):
        reason = f"the build of {in_quotes(name.removesuffix(_BLOBS))} has a CMake target of this name"
        document.add(path, Mistake("reserved-name", reason=reason, hint="choose another name"), at_key=True)
    source, compiler = model.get("source"), model.get("compiler")
    fitting = _fitting(model)
    if fitting and compiler in SOURCES.values() and compiler != fitting:
        reason = f"compiler {in_quotes(str(compiler))} does not read {source_suffix(str(source))} files"
        document.add((*path, "compiler"), Mistake("wrong-compiler", reason=reason, hint=f"use {fitting}"))
    if (compiler or fitting) == "native" and model.get("executor") == "graph":
        _check_placement_of_graph(document, (*path, "placement"), mapping_in(model, "placement"))
    # Programs of the project may read any file.
    if compiler not in EXTERNAL_COMPILERS and isinstance(source, str) and source.strip():
        mistake = source_problem(source)
        if mistake is not None:
            document.add((*path, "source"), mistake)
    _check_program(document, path, model)
    _check_interface(document, path, model, str(compiler or fitting or "native"))
    _check_choices(document, path, model, str(compiler or fitting or "native"))
    _check_parameters(document, path, model, str(compiler or fitting or "native"))
    _check_names(document, path, model, "target")


def _check_program(document: Document, path: KeyPath, model: Mapping[str, object]) -> None:
    """Check that the keys for external compilers are used with those compilers only."""
    compiler = model.get("compiler")
    if compiler == "command" and "command" not in model:
        hint = "add command, the command line to run"
        document.report((*path, "compiler"), "missing-key", "compiler command requires the key command", hint)
    for key, compilers in (("command", ["command"]), ("python", ["tvm"]), ("inputs", EXTERNAL_COMPILERS)):
        if key in model and compiler not in compilers:
            needed = " or ".join(f'"compiler: {name}"' for name in compilers)
            reason = f"is only accepted together with {needed}"
            document.report((*path, key), "misplaced-key", reason, f"add that, or remove {key}", at_key=True)


def _check_choices(document: Document, path: KeyPath, model: Mapping[str, object], compiler: str) -> None:
    """Check that mlfbuild itself reads the model whose dimensions, constants, state or signature are chosen."""
    for key in CHOICES:
        if key in model and compiler != "native":
            reason = f"compiler {in_quotes(compiler)} reads the model as it is"
            hint = f"remove {key}, or change the model when you export"
            document.report((*path, key), "misplaced-key", reason, hint, at_key=True)


def _check_parameters(document: Document, path: KeyPath, model: Mapping[str, object], compiler: str) -> None:
    """Check that the native compiler makes the code whose values can be replaced, and that the key stands once."""
    place = (*path, "parameters")
    if "parameters" not in model:
        return
    if "parameters" in mapping_in(model, "options"):
        reason = "is also in options"
        document.report(place, "misplaced-key", reason, "remove one of them", at_key=True)
    if compiler != "native":
        reason = f"compiler {in_quotes(compiler)} determines where constants are"
        document.report(place, "misplaced-key", reason, "remove parameters", at_key=True)
    elif model["parameters"] != "linked" and model.get("executor") == "graph":
        reason = "the graph executor has its values in a file of its own"
        document.report(place, "misplaced-key", reason, "remove it, or use executor aot", at_key=True)


def _check_interface(document: Document, path: KeyPath, model: Mapping[str, object], compiler: str) -> None:
    """Check that names of inputs and outputs are distinct, and that mlfbuild generates the code that has them."""
    if "interface" not in model:
        return
    if compiler != "native":
        reason = f"compiler {in_quotes(compiler)} determines the names in its code"
        hint = "remove interface, and initialise the structs by position"
        document.report((*path, "interface"), "misplaced-key", reason, hint, at_key=True)
    interface = mapping_in(model, "interface")
    first: dict[str, KeyPath] = {}
    for kind in ("inputs", "outputs"):
        names = interface.get(kind)
        found = names.items() if isinstance(names, dict) else enumerate(names) if isinstance(names, list) else ()
        for key, name in found:
            place = (*path, "interface", kind, key)
            if isinstance(name, str) and first.setdefault(name, place) != place:
                reason = f"{in_quotes(name)} is also {dotted(first[name])}"
                document.add(place, Mistake("repeated-name", reason=reason, hint="choose another name"))


def _check_placement_of_graph(document: Document, path: KeyPath, placement: Mapping[str, object]) -> None:
    if isinstance(placement.get("params"), dict):
        reason = "constants of a graph have no classes"
        document.report((*path, "params"), "graph-without-classes", reason, "name one section, or use executor aot")
    if "state" in placement:
        mistake = Mistake("graph-without-state", reason="a graph keeps no state", hint="remove it, or use executor aot")
        document.add((*path, "state"), mistake, at_key=True)


def _check_names(document: Document, path: KeyPath, entry: Mapping[str, object], what: str) -> None:
    """Check that the list ``targets`` or ``models`` of an entry has each name once and only names that exist."""
    _check_list(document, (*path, f"{what}s"), _texts(entry, f"{what}s"), what)


def _check_list(document: Document, path: KeyPath, names: list[tuple[int, str]] | None, what: str) -> None:
    known = document.mapping(f"{what}s")
    seen: set[str] = set()
    for index, name in names or ():
        if name not in known:
            document.add((*path, index), unknown(what, name, known, code=f"dangling-{what}"))
        elif name in seen:
            document.report((*path, index), "repeated-name", f"{in_quotes(name)} is in the list twice", "remove one")
        seen.add(name)


def _check_shared_workspace(document: Document) -> None:
    """Check that ``share-workspace`` names models that exist, once each, and at least two modules.

    A model of the native compiler is one module; how many an archive has is not known here.
    """
    models = document.mapping("models")
    names = _texts(document.mapping(), _SHARE)
    if names is not None and (not names or (len(names) == 1 and _is_native(mapping_in(models, names[0][1])))):
        document.report((_SHARE,), "shared-workspace-of-one", "requires at least two models", "add a model")
    _check_list(document, (_SHARE,), names, "model")
    for name in dict.fromkeys(name for _, name in names or () if name in models):
        if "workspace" in mapping_in(mapping_in(models, name), "placement"):
            reason = f"the linker places the workspace that {in_quotes(name)} shares"
            document.report(("models", name, "placement", "workspace"), "shared-workspace-placed", reason, "remove it")
    _check_concurrent(document, [name for _, name in names or ()])


def _check_concurrent(document: Document, shared: list[str]) -> None:
    """Check that groups of ``concurrent`` have models in ``share-workspace``, some of which still share.

    A model that may run at the same time as all others of ``shared`` is a contradiction between the two keys.
    """
    groups = document.mapping().get(_CONCURRENT)
    groups = groups if isinstance(groups, list) else []
    found = [(at, _texts_of(group) or []) for at, group in enumerate(groups)]
    concurrent = [[name for _, name in names] for _, names in found]
    for at, names in found:
        if len(names) < 2 and isinstance(groups[at], list):
            hint = "add a model, or remove the group"
            document.report((_CONCURRENT, at), "concurrent-with-none", "requires at least two models", hint)
        _check_list(document, (_CONCURRENT, at), names, "model")
        for index, name in names:
            place = (_CONCURRENT, at, index)
            if name in document.mapping("models") and name not in shared:
                reason = f"{in_quotes(name)} is not in {_SHARE}, so it has its own workspace"
                document.report(place, "concurrent-alone", reason, f"add it to {_SHARE}, or remove it here")
    for index, name in enumerate(shared):
        own = [dotted((_CONCURRENT, at)) for at, names in found if name in [each for _, each in names]]
        if own and not {*shared} - partners(name, concurrent) - {name}:
            reason = f"{in_quotes(name)} may run at the same time as all other models here: {', '.join(own)}"
            hint = f"remove it from {_SHARE} and {_CONCURRENT}"
            document.report((_SHARE, index), "concurrent-with-all", reason, hint)


def _is_native(model: Mapping[str, object]) -> bool:
    return (model.get("compiler") or _fitting(model) or "native") == "native"


def _fitting(model: Mapping[str, object]) -> str | None:
    """Return the compiler that reads files such as the source of ``model``, if that is known."""
    source = model.get("source")
    return SOURCES.get(source_suffix(source)) if isinstance(source, str) else None


def _check_growth(document: Document) -> None:
    keys = document.mapping()
    if "budget-growth" in keys and "budget-file" not in keys:
        hint = "add budget-file, the file to compare sizes with, or remove budget-growth"
        document.report(("budget-growth",), "misplaced-key", "has no effect without budget-file", hint, at_key=True)


def _check_firmware(document: Document, path: KeyPath, firmware: Mapping[str, object]) -> None:
    if "cmake" in firmware:
        for key in ("sources", "include-dirs"):
            if key in firmware:
                reason = "is not accepted together with cmake, whose CMakeLists.txt names them"
                document.add((*path, key), Mistake("misplaced-key", reason=reason, hint=f"remove {key}"), at_key=True)
    elif "sources" not in firmware:
        hint = "add sources, or cmake with the folder of a CMakeLists.txt"
        document.add(path, Mistake("missing-key", reason="has no sources", hint=hint), at_key=True)
    _check_names(document, path, firmware, "target")
    _check_names(document, path, firmware, "model")
    _check_built(document, path, firmware)


def _check_built(document: Document, path: KeyPath, firmware: Mapping[str, object]) -> None:
    """Check that every model that a firmware names is built for every target of the firmware."""
    models = document.mapping("models")
    all_targets = list(document.mapping("targets"))
    wanted = _texts(firmware, "targets")
    for index, name in _texts(firmware, "models") or ():
        model = models.get(name)
        built = _texts(model, "targets") if isinstance(model, dict) else None
        # Without a list, a model is built for all targets.
        if built is None:
            continue
        names = [target for _, target in built]
        own = [target for _, target in wanted] if wanted else all_targets
        missing = [target for target in own if target in all_targets and target not in names]
        if missing:
            reason = f"{in_quotes(name)} is not built for {', '.join(missing)}"
            hint = f"add {'it' if len(missing) == 1 else 'them'} to the targets of {in_quotes(name)}"
            document.report((*path, "models", index), "model-not-built-for-target", reason, hint)
