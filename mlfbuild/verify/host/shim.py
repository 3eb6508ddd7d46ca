"""The C code between ctypes and a module: inputs and outputs as arrays of pointers, memory pools included."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.core import UnsupportedModelError, listed, shown
from mlfbuild.library import Module, Pool, TensorInfo, macro_prefix, sanitize_name, struct_prefix


def print_shim(module: Module) -> str:
    """Return a C file with ``mlf_host_run(inputs, outputs)`` and ``mlf_host_reset()`` for ``module``.

    Raises ``UnsupportedModelError`` if its caller must provide a device driver or a pool of unknown size.
    """
    # Drivers are C structs of functions that only firmware for the device can provide.
    if module.devices:
        raise UnsupportedModelError(
            "module-needs-driver",
            place=module.name,
            reason=f"this machine has no device driver for {listed(module.devices)}, which the module requires",
            hint="compile the model for the CPU only",
        )
    external = [pool for pool in module.pools if pool.external]
    unknown = [pool.name for pool in external if pool.size is None]
    if unknown:
        raise UnsupportedModelError(
            "pool-size-unknown",
            place=module.name,
            reason=f"its header does not define the size of the memory pool {shown(unknown[0])}",
        )
    run = _run_in_pools if module.workspace_io else _run
    return "\n".join([*_head(module), *_pools(module, external), *run(module, external), *_reset(module), ""])


def _head(module: Module) -> Iterator[str]:
    yield f'#include "{struct_prefix(module.name)}.h"'
    yield "#include <string.h>"
    yield ""


def _pools(module: Module, external: list[Pool]) -> Iterator[str]:
    for pool in external:
        name = sanitize_name(pool.name)
        # TVM's header has size and content of each pool as macros, so that this file contains no numbers.
        macro = f"{macro_prefix(module.name)}_{name.upper()}"
        if pool.kind == "workspace":
            yield f"static uint8_t pool_{name}[{macro}_WORKSPACE_POOL_SIZE] __attribute__((aligned(64)));"
        else:
            yield f"static uint8_t pool_{name}[{macro}_CONSTANT_POOL_SIZE] __attribute__((aligned(64))) = {{"
            yield f"    {macro}_CONSTANT_POOL_DATA"
            yield "};"


def _run(module: Module, external: list[Pool]) -> Iterator[str]:
    prefix = struct_prefix(module.name)
    yield from _run_begins()
    arguments = ["&its_inputs", "&its_outputs"]
    if external:
        yield _pools_struct(prefix, external)
        arguments.append("&pools")
    yield from print_structs(module)
    yield f"    return {struct_prefix(module.name)}_run({', '.join(arguments)});"
    yield "}"


def _run_in_pools(module: Module, external: list[Pool]) -> Iterator[str]:
    """Yield the function for a module whose inputs and outputs are in the pools: they are copied in and out."""
    prefix = struct_prefix(module.name)
    yield from _run_begins()
    yield _pools_struct(prefix, external)
    yield from print_mapped(module)
    yield f"    int32_t status = {prefix}_run(&pools);"
    yield from print_copied_outputs(module)
    yield "    return status;"
    yield "}"


def print_structs(module: Module) -> Iterator[str]:
    """Yield the structs ``its_inputs`` and ``its_outputs`` of the arrays of pointers ``inputs`` and ``outputs``."""
    for kind, tensors in (("inputs", module.inputs), ("outputs", module.outputs)):
        yield f"    struct {struct_prefix(module.name)}_{kind} its_{kind};"
        # The structs of TVM's interface contain one pointer per tensor and nothing else, so an array of pointers has
        # the same layout.
        yield f"    memcpy(&its_{kind}, {kind}, {len(tensors)} * sizeof(void *));"


def print_mapped(module: Module) -> Iterator[str]:
    """Yield the structs of the tensors in the pools ``pools``, and copies of the inputs to them.

    The lines use the variables ``pools`` and ``inputs``, and declare ``its_inputs`` and ``its_outputs``.
    """
    prefix = struct_prefix(module.name)
    for kind in ("inputs", "outputs"):
        yield f"    struct {prefix}_{kind} its_{kind} = {prefix}_map_{kind}(&pools);"
    yield from (_copied(f"its_inputs.{_member(each)}", f"inputs[{at}]", each) for at, each in enumerate(module.inputs))


def print_copied_outputs(module: Module) -> Iterator[str]:
    """Yield copies of the outputs in the pools to the caller's.

    They follow the call even if it failed: the caller reads the status first.
    """
    for at, each in enumerate(module.outputs):
        yield _copied(f"outputs[{at}]", f"its_outputs.{_member(each)}", each)


def _run_begins() -> Iterator[str]:
    yield "int32_t mlf_host_run(void **inputs, void **outputs);"
    yield "int32_t mlf_host_run(void **inputs, void **outputs)"
    yield "{"


def _pools_struct(prefix: str, external: list[Pool]) -> str:
    names = [sanitize_name(pool.name) for pool in external]
    members = ", ".join(f".{name} = pool_{name}" for name in names)
    return f"    struct {prefix}_workspace_pools pools = {{{members}}};"


def _copied(to: str, source: str, tensor: TensorInfo) -> str:
    return f"    memcpy({to}, {source}, {tensor.size});"


def _member(tensor: TensorInfo) -> str:
    return sanitize_name(tensor.name)


def _reset(module: Module) -> Iterator[str]:
    body = f"return {struct_prefix(module.name)}_reset();" if module.state_size else "return 0;"
    yield "int32_t mlf_host_reset(void);"
    yield "int32_t mlf_host_reset(void)"
    yield "{"
    yield f"    {body}"
    yield "}"
