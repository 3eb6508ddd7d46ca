"""``models.apply(env)``: add models to firmware that is linked with SCons' own ``Program``."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from SCons.Node import NodeList
from SCons.Node.FS import Dir
from SCons.Script import GetOption
from SCons.Tool import SourceFileScanner

from mlfbuild.core import UsageError, listed as listed_names
from mlfbuild.jobs import BlobSources, DevicePart, Part, TargetJob, check_compiler
from mlfbuild.library import ResolvedLibrary
from mlfbuild.scons.actions import action
from mlfbuild.scons.includes import known_object
from mlfbuild.scons.symbol_check import check_programs, remember_owner
from mlfbuild.scons.trees import TreeNodes
from mlfbuild.scons.variables import extend, listed
from mlfbuild.targets import CPUS, macro_rules

_required: dict[str, Any] = {}
"""The library's node by its path."""


def dependency_dirs(tree: TreeNodes, source: ResolvedLibrary) -> list[Any]:
    """Return the include folders of ``source``, whose files are copied to the folder of the target.

    They are nodes of SCons for ``CPPPATH``. The copies are made when the tree of the target is completed, so that they
    need not exist yet.
    """
    folder = _copies(tree, source)
    return [folder.Dir(path) for path in source.include_dirs]


def dependency_library(env: Any, folder: Any, tree: TreeNodes, source: ResolvedLibrary, theirs: list[Any]) -> Any:
    """Return the node of the static library of ``source`` in ``folder``, one for all models of ``env``.

    It is compiled with the flags that ``env`` has when the build runs, with its own options, and without warnings,
    because users cannot change its code. ``theirs`` are the include folders of the firmware.
    """
    if not source.sources:
        return []
    target = folder.File(env.subst(f"${{LIBPREFIX}}mlf_dep_{source.name}$LIBSUFFIX"))
    key = target.get_abspath()
    # The same library for all models: two targets for one file are an error in SCons.
    if key not in _required:
        copies = _copies(tree, source)
        changes = {
            "CPPPATH": [*dependency_dirs(tree, source), *theirs],
            "MLFDEPENDENCYFLAGS": _options(env, source),
            "_CCCOMCOM": f"{env.get('_CCCOMCOM', '')} $MLFDEPENDENCYFLAGS",  # after all flags of env
        }
        objects = [
            env.StaticObject(_object_node(env, folder.Dir(f"dep_{source.name}"), path), copies.File(path), **changes)
            for path in source.sources
        ]
        _required[key] = env.StaticLibrary(target, objects)
    return _required[key]


def _copies(tree: TreeNodes, source: ResolvedLibrary) -> Any:
    return tree.folder.up().Dir("dependencies").Dir(source.name)


def _options(env: Any, source: ResolvedLibrary) -> list[str]:
    # By its name, because SCons does not tell which family a compiler belongs to.
    compiler = os.path.basename(env.subst("$CC"))  # noqa: PTH119 - flags may follow it
    # SCons would take $ in an option of the project file for a variable.
    options = [option.replace("$", "$$") for option in source.compile_options]
    if "gcc" in compiler or "clang" in compiler or compiler == "cc":
        # Options that other compilers may not know.
        options += ["-w", "-ffunction-sections", "-fdata-sections"]
    return options


def device_library(env: Any, folder: Any, tree: TreeNodes, part: DevicePart) -> Any:
    """Return the node of the library of ``part``, in ``folder``.

    Only ``MLF_DEVICE_<NAME>_COMPILER`` and ``MLF_DEVICE_<NAME>_FLAGS`` of ``env`` have an effect on it. Raises
    ``UsageError`` if no compiler is known.
    """
    compiler = env.subst(f"${part.variable}_COMPILER") or os.environ.get(part.tools.variable) or part.tools.compiler
    if not compiler:
        raise UsageError(
            "device-compiler-unknown",
            place=f"device {part.name}",
            reason=f"codegen/{part.name} of module {part.module} is code for it, and no compiler is known",
            hint=f"set {part.variable}_COMPILER, and its options in {part.variable}_FLAGS",
        )
    flags = env.get(f"{part.variable}_FLAGS")
    folders = [tree.folder.Dir(path) for path in part.include_dirs]
    command = [compiler, *(part.flags if flags is None else env.Split(flags)), *(f"-I{each}" for each in folders)]
    action = env.Action([[*command, "-o", "$TARGET", "-c", "$SOURCE"]], "$CCCOMSTR")
    objects = [
        env.Command(
            folder.Dir(part.target).File(f"{path.replace('/', '-')}.o"),
            tree.folder.File(path),
            action,
            source_scanner=SourceFileScanner,
            CPPPATH=folders,
        )
        for path in part.sources
    ]
    compiled = [tree.folder.File(path) for path in part.objects]
    # Not $AR: the archiver of the host cannot index the objects of another machine in all cases.
    archive = env.Action([[_archiver(compiler), "rcs", "$TARGET", "$SOURCES"]], "$ARCOMSTR")
    return env.Command(folder.File(f"libmlf_{part.target}.a"), [*objects, *compiled], archive)


@functools.cache
def _archiver(compiler: str) -> str:
    """Return the archiver that belongs to ``compiler``; if it does not run, the first compilation reports that."""
    # Neither compiles anything, so the compiler need not be installed.
    if GetOption("clean") or GetOption("help"):
        return "ar"
    try:
        done = subprocess.run([compiler, "-print-prog-name=ar"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "ar"
    return done.stdout.strip() or "ar"


_LIBRARIES_FOLDER = "mlf.lib"
"""Folder in the build folder of the trees; the dot makes it different from every target's name."""

_users: dict[str, list[Any]] = {}
"""The environments that compile into a folder: each has its own subfolder."""
_made: dict[tuple[str, str], Any] = {}
"""The library's node, by its folder and its module's path."""
_models: dict[Any, str] = {}
"""The module's path of each library's node."""
_include_dirs: set[Any] = set()
"""Every folder that was added to a ``CPPPATH``."""


def apply(
    env: Any, target: TargetJob, trees: Sequence[TreeNodes], dependencies: Sequence[ResolvedLibrary] = ()
) -> NodeList:
    """Add the include folders and the libraries of ``trees`` to ``CPPPATH`` and ``LIBS``; return the libraries.

    ``trees`` are of ``target``. The ``dependencies`` that they require follow them; their headers are visible to the
    program only if declared public. The libraries are compiled with the flags that ``env`` has when the build runs. A
    second call changes nothing; a clone of an environment gets separate libraries, compiled with its own flags.
    """
    # Without our own folders of an earlier call, so that a second call gives the same commands and compiles nothing.
    theirs = [item for item in listed(env, "CPPPATH") if not (isinstance(item, Dir) and item in _include_dirs)]
    libraries = NodeList()
    places = set()
    dirs: list[Any] = []
    for tree in trees:
        for module in tree.outline.modules:
            required = (each for each in dependencies if not each.package and _needs(module, each))
            needed = [folder for each in required for folder in dependency_dirs(tree, each)]
            libraries += _library(env, target, tree, module, theirs, needed)
            places.add(_place(tree, module))
            dirs += [tree.folder.Dir(path) for path in _public_dirs(module)]
    for tree, source in _needed(trees, dependencies):
        libraries += dependency_library(env, _folder(env, tree), tree, source, theirs)
        dirs += dependency_dirs(tree, source) if source.public_headers else []
    _include_dirs.update(dirs)
    extend(env, "CPPPATH", dirs)
    # Libraries of the same models that are there if this environment is a clone: its own, with its own flags, replace
    # them.
    others = [node for node, place in _models.items() if place in places and node not in libraries]
    extend(env, "LIBS", libraries, dropped=others, front=True)  # they may require libm, which LIBS may name
    if any(module.libm for tree in trees for module in tree.outline.modules) and "m" not in listed(env, "LIBS"):
        # Last: a linker searches a library for what those before it need.
        extend(env, "LIBS", ["m"])
    check_programs(env, target)
    return libraries


def chosen(trees: Sequence[TreeNodes], names: Sequence[str]) -> list[TreeNodes]:
    """Return the trees of the models ``names``, or all if there are none; raise ``UsageError`` for unknown names."""
    known = [tree.job.model for tree in trees]
    for name in names:
        if name not in known:
            reason = f"MlfModels returned only {listed_names(known) or 'no model'}"
            hint = "correct the name, or add the model to MlfModels"
            raise UsageError("model-not-in-nodes", place=f"model {name!r}", reason=reason, hint=hint)
    return [tree for tree in trees if not names or tree.job.model in names]


def _needed(
    trees: Sequence[TreeNodes], dependencies: Sequence[ResolvedLibrary]
) -> Iterator[tuple[TreeNodes, ResolvedLibrary]]:
    """Yield each library that ``trees`` require, with the first such tree; libraries of packages are in ``LIBS``."""
    for source in dependencies:
        needing = (tree for tree in trees if any(_needs(module, source) for module in tree.outline.modules))
        first = next(needing, None)
        if first is not None and not source.package:
            yield first, source


def _needs(module: Part, dependency: ResolvedLibrary) -> bool:
    return any(need.name == dependency.name for need in module.needs)


def _place(tree: TreeNodes, module: Part) -> str:
    return f"{tree.folder.get_abspath()}:{module.name}"


def _public_dirs(module: Part) -> list[str]:
    return [*module.include_dirs, *module.blob_dirs]


def _library(env: Any, target: TargetJob, tree: TreeNodes, module: Part, theirs: list[Any], needed: list[Any]) -> Any:
    folder = _folder(env, tree)
    key = (folder.get_abspath(), _place(tree, module))
    if key not in _made:
        objects = list(_objects(env, folder, tree, module, theirs, needed))
        library = folder.File(env.subst(f"${{LIBPREFIX}}mlf_{module.name}$LIBSUFFIX"))
        _made[key] = env.StaticLibrary(library, objects) if objects else NodeList()
        if objects:
            env.AddPreAction(_made[key], _compiler_check(target))
        for device in module.devices:
            made = device_library(env, folder, tree, device)
            env.AppendUnique(MLF_DEVICE_LIBRARIES=made)
            if device.tools.linked:
                _made[key] = _made[key] + made
            else:  # built with the module, for an image of the device
                env.Requires(_made[key], made)
        _models.update(dict.fromkeys(_made[key], key[1]))
        owner = tree.job.module_title(module.name, [part.name for part in tree.outline.modules])
        for node in _made[key]:
            remember_owner(node, owner, target, tree.job.model)
    return _made[key]


def _compiler_check(target: TargetJob) -> Any:
    """Return the action that refuses a compiler for another CPU than the target's, with the flags at the time of build.

    Only the architecture is compared: the models are compiled with the flags of the firmware that calls them, so each
    float ABI is right, and fewer instructions than the CPU has are the firmware's choice.
    """
    cpu, place = target.cpu.name, f"target {target.name} ({target.cpu.name})"  # SCons compares what functions hold

    def check(_target: list[Any], _source: list[Any], env: Any) -> None:
        command = [str(word) for word in env.subst_list("$CC $CFLAGS $CCFLAGS")[0]]
        check_compiler(macro_rules(CPUS[cpu])[:1], command, Path(env.Dir("#").get_abspath()), place)

    return action(check, None)


def _folder(env: Any, tree: TreeNodes) -> Any:
    """Return the folder of objects and libraries for ``tree``, in the build folder of the trees.

    ``MLFBUILDDIR`` would be relative to the SConscript that calls ``apply``. Each variant folder has a folder here, so
    that a build of one variant does not replace the libraries of another.
    """
    # The tree of a model is at BUILD/mlf/TARGET/MODEL.
    build, here = tree.folder.up().up().up(), env.Dir(".")
    shared = here.srcnode() is here or build.is_under(here)
    variant = "" if shared else f".{here.get_internal_path().strip(os.sep).replace(os.sep, '.')}"
    folder = build.Dir(_LIBRARIES_FOLDER).Dir(f"{tree.job.target}{variant}")
    # A clone may have other flags, and two environments that build one file with different commands are an error in
    # SCons.
    users = _users.setdefault(folder.get_abspath(), [])
    number = next((index for index, user in enumerate(users) if user is env), None)
    if number is None:
        number = len(users)
        users.append(env)
    return folder.Dir(str(number)) if number else folder


def _objects(
    env: Any, folder: Any, tree: TreeNodes, module: Part, theirs: list[Any], needed: list[Any]
) -> Iterator[Any]:
    # Its own folders come first, so that other headers of the same name are not used.
    paths = [*_public_dirs(module), *module.private_include_dirs]
    cpp_path = [*needed, *(tree.folder.Dir(path) for path in paths), *theirs]
    # At the end of the command, after CCFLAGS, which may still change: SCons substitutes an override only once.
    options = {"_CCCOMCOM": f"$_CCCOMCOM {' '.join(module.options)}"} if module.options else {}
    for path in module.objects:
        yield tree.folder.File(path)
    interface = [tree.folder.File(path) for path in tree.outline.interface(module)]
    for path in module.sources:
        target, source = _object(env, folder, module, path), tree.folder.File(path)
        if tree.outline.self_contained:
            yield from known_object(env, target, source, interface, theirs, CPPPATH=cpp_path, **options)
        else:
            yield from env.StaticObject(target, source, CPPPATH=cpp_path, **options)
    for blobs in module.blobs:
        yield from _blob(env, folder, tree, module, blobs, cpp_path)


def _blob(env: Any, folder: Any, tree: TreeNodes, module: Part, blobs: BlobSources, cpp_path: list[Any]) -> Any:
    # incbin compiles in no time and needs GNU's assembler; an array works with every compiler.
    form = env.subst("$MLFBLOBS")
    if form not in {"array", "incbin"}:
        raise UsageError(
            "unknown-blob-form", place="MLFBLOBS", reason=f"unknown value {form!r}", hint="set it to array or incbin"
        )
    if form == "array":
        target = _object(env, folder, module, blobs.array)
        return env.StaticObject(target, tree.folder.File(blobs.array), CPPPATH=cpp_path)
    target = _object(env, folder, module, blobs.assembler)
    made = env.StaticObject(target, tree.folder.File(blobs.assembler), CPPPATH=[tree.folder, *cpp_path])
    env.Depends(made, [tree.folder.File(path) for path in blobs.reads])
    return made


def _object(env: Any, folder: Any, module: Part, path: str) -> Any:
    """Return the node for the object of ``path``, with a name that no other source of the module has."""
    # Sources of TVM are in one folder, whose name would only make the names of objects longer.
    short = path.removeprefix("codegen/host/src/").removeprefix("codegen/")
    return _object_node(env, folder.Dir(module.name), short)


def _object_node(env: Any, folder: Any, path: str) -> Any:
    """Return the node in ``folder`` for the object of the source ``path``.

    Suffixes other than ``.c`` stay in its name: a library may have ``start.c`` beside ``start.S``.
    """
    return folder.File(env.subst(f"${{OBJPREFIX}}{path.removesuffix('.c').replace('/', '-')}$OBJSUFFIX"))
