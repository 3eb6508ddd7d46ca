"""Compile a module's C with this machine's compiler into a shared object, kept in the user's cache folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import mlfbuild
from mlfbuild.c_analysis import SOURCE_SUFFIXES
from mlfbuild.compilers import check_fit
from mlfbuild.core import ProcessFailedError, UnsupportedModelError, cache_folder, find_tool, make_once, run, sha256
from mlfbuild.executor import Executable, check_described, executable, missing_header
from mlfbuild.library import MERGED_SYSTEM_LIBRARY, Library, Module, ResolvedLibrary
from mlfbuild.targets import CPUS
from mlfbuild.verify.devices import refuse_device_code
from mlfbuild.verify.host.shim import print_shim
from mlfbuild.verify.host.trace import is_graph, print_graph_trace, print_traced_shim

_FLAGS = ("-shared", "-fPIC", "-O2", "-w", "-fno-strict-aliasing", "-Wl,-Bsymbolic", "-Wl,--no-undefined")
_COMPILE_SECONDS = 600.0


def shared_object(module: Module, libraries: Sequence[ResolvedLibrary] = ()) -> Path:
    """Return the shared object of ``module`` and the ``libraries`` that it requires; compile it if it is not cached.

    Raises as ``executable``, ``UsageError`` for objects that were compiled for another machine,
    ``UnsupportedModelError`` for a module that cannot be called, ``ToolNotFoundError`` without a C compiler, and
    ``ProcessFailedError`` if the code does not compile or has unresolved symbols.
    """
    build = _executable(module)
    files = {f"codegen/{file.path}": file.data for file in module.codegen}
    files |= {path: bytes(content) for path, content in build.generated.items()}
    files["host_shim.c"] = _shim(module).encode()
    compiler = find_tool("gcc", os.environ.get("CC") or None)
    build, files = _with_libraries(build, files, libraries)
    path = cache_folder("host") / f"{_key(files, build, compiler)}.so"
    return make_once(path, lambda folder: _compiled(module, files, build, compiler, folder))


def _with_libraries(
    build: Executable, files: dict[str, bytes], libraries: Sequence[ResolvedLibrary]
) -> tuple[Executable, dict[str, bytes]]:
    """Return ``build`` and ``files`` with ``libraries``; their options are ignored, because they are for targets."""
    for source in libraries:
        folder = f"dependencies/{source.name}"
        files = {**files, **{f"{folder}/{path}": bytes(content) for path, content in source.files.items()}}
        build = replace(
            build,
            files=(*build.files, *(f"{folder}/{path}" for path in source.sources)),
            private_include_dirs=(*(f"{folder}/{path}" for path in source.include_dirs), *build.private_include_dirs),
        )
    return build, files


def _shim(module: Module) -> str:
    if is_graph(module):
        return "\n".join([print_shim(module), *print_graph_trace(module), ""])
    return "\n".join([*print_traced_shim(module), ""]) if module.trace else print_shim(module)


def _executable(module: Module) -> Executable:
    check_described(module)
    refuse_device_code(module)
    check_fit(Library((module,)), CPUS["host"], module.name)
    found = executable(module)
    if found is not None:
        # The table of merged modules refers to functions of modules that are not compiled here; it is not used.
        files = tuple(path for path in found.files if PurePosixPath(path).name != MERGED_SYSTEM_LIBRARY)
        return replace(found, files=files)
    sources = tuple(f"codegen/{file.path}" for file in module.codegen if file.path.suffix in SOURCE_SUFFIXES)
    if not sources or not module.model_id:
        raise UnsupportedModelError(
            "module-without-code",
            place=module.name,
            reason="the archive has no C code of the module that can be called",
            hint="compile the model to C",
        )
    return Executable(sources, ("codegen/host/include",), ())


def _key(files: dict[str, bytes], build: Executable, compiler: Path) -> str:
    parts = [mlfbuild.__version__, run([compiler, "--version"]), *_FLAGS, *build.files]
    parts += [f"{path} {sha256(data)}" for path, data in sorted(files.items())]
    return sha256("\n".join(parts).encode())


def _compiled(module: Module, files: dict[str, bytes], build: Executable, compiler: Path, folder: Path) -> Path:
    for relative, data in files.items():
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        (folder / relative).write_bytes(data)
    includes = [f"-I{folder / each}" for each in (*build.include_dirs, *build.private_include_dirs)]
    sources = [folder / source for source in (*build.files, "host_shim.c")]
    made = folder / "module.so"
    try:
        macros = ["-DMLF_TRACE"] if is_graph(module) else []
        # Compilers for Arm declare these types with their intrinsics, and sources of CMSIS-NN rely on that.
        types = ["-include", "stdint.h"] if any(path.startswith("dependencies/") for path in files) else []
        run([compiler, *_FLAGS, *macros, *types, *includes, *sources, "-o", made, "-lm"], timeout=_COMPILE_SECONDS)
    except ProcessFailedError as error:
        failed = ProcessFailedError(
            "module-not-built",
            error.output,
            place=module.name,
            reason="its C code does not compile on this machine",
            hint="see the output of the compiler below",
        )
        raise missing_header(module, error.output) or failed from None
    return made
