"""The commands that compile the code of an archive without mlfbuild, for the archive's page.

They use only names that mlfbuild knows and patterns, because names in an archive are not to be trusted in a shell.
"""

from __future__ import annotations

import re

from mlfbuild.library import INCLUDE_DIR, TVM_RUNTIME, Library, Module, requirements_of, sanitize_name
from mlfbuild.targets import CPUS, GCC, Cpu, compiler_program

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
    clone = f"git clone --depth 1 --branch {TVM_RUNTIME.version_spec} --recurse-submodules=3rdparty/dlpack"
    return [f"{clone} {TVM_RUNTIME.url}"], ["tvm/include", "tvm/3rdparty/dlpack/include"]
