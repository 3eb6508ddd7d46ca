"""Describe in Markdown how firmware calls a module, and the commands that compile its code without mlfbuild.

Both depend on the kind of module. Commands use only names that mlfbuild knows and patterns, because names in an archive
are not to be trusted in a shell.
"""

from __future__ import annotations

import re

from mlfbuild.core import printable
from mlfbuild.library import (
    C_TYPES,
    INCLUDE_DIR,
    OPERATOR,
    TVM_RUNTIME,
    Library,
    Module,
    TensorInfo,
    element_size,
    requirements_of,
    sanitize_name,
    struct_prefix,
)
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
