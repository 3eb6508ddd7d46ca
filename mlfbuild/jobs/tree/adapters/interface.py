"""Find out how the modules of an unpacked tree are called, for bindings of other languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mlfbuild import archive, executor
from mlfbuild.core import UnsupportedModelError, read_bytes
from mlfbuild.jobs.tree.record import read_record
from mlfbuild.library import Module, TensorInfo, element_size, struct_prefix, symbol_prefix


@dataclass(frozen=True)
class ModulePort:
    """An input or an output: a member of a struct of the C interface."""

    name: str
    """Of the member."""
    tensor: TensorInfo

    @property
    def element_size(self) -> int:
        """Bytes of an element; 1 for types that are not stored in whole bytes."""
        return element_size(self.tensor.dtype) or 1

    @property
    def elements(self) -> int:
        """Number of elements of ``element_size`` bytes."""
        return self.tensor.size // self.element_size


@dataclass(frozen=True)
class ModuleInterface:
    """The C interface of a module."""

    module: str
    function: str
    """``tvmgen_kws_run``, or ``mlf_kws_run`` if ``reentrant``."""
    inputs: tuple[ModulePort, ...]
    outputs: tuple[ModulePort, ...]
    reentrant: bool = False
    """Whether the caller passes the workspace, and the state of a streaming network."""
    reset: str = ""
    """Function that resets a state; empty if there is none."""
    workspace: tuple[int, int] = (0, 1)
    """Size and alignment of the workspace."""
    state: tuple[int, int] = (0, 1)
    """Size and alignment of the state."""


def interfaces(directory: Path, model: str) -> tuple[ModuleInterface, ...]:
    """Return the interfaces of the modules in the tree of ``model`` in ``directory``.

    Raises ``UnsupportedModelError`` if a caller must provide more than inputs, outputs, workspace and state.
    """
    tree = directory / model
    record = read_record(tree)
    assert record is not None  # model_files has read it
    content = {path: read_bytes(tree / path, "file of the tree") for path in record.files}
    # A tree has the files of its archive, so it can be read as one after the archive is gone.
    library = archive.read_files(content, str(tree))
    return tuple(_interface(executor.with_c_interface(module), model) for module in library.modules)


def _interface(module: Module, model: str) -> ModuleInterface:
    from mlfbuild.archive.interface import header_file, read_header

    header, file = read_header(module), header_file(module)
    if header is None or file is None or header.pools or module.devices or module.workspace_io:
        raise _unknown(module, model)
    inputs, outputs = header.structs.get("inputs", ()), header.structs.get("outputs", ())
    if not inputs or not outputs or (len(inputs), len(outputs)) != (len(module.inputs), len(module.outputs)):
        raise _unknown(module, model)
    text = bytes(file.data).decode(errors="replace")
    name = struct_prefix(module.name).removeprefix("tvmgen_")
    # By the text of the header: trees of older versions of mlfbuild, and of other compilers, say it nowhere else.
    reentrant = f" mlf_{name}_run(" in text
    if module.network is not None and module.network.arenas:
        # Bindings allocate one workspace; those in several memories are static.
        if module.state_size:
            raise _unknown(module, model)
        reentrant = False
    reset = f"mlf_{name}_reset" if reentrant and f" mlf_{name}_reset(" in text else ""

    def memory(kind: str, size: str) -> tuple[int, int]:
        # The numbers are read from the header that C code uses, so that bindings and C cannot disagree.
        found = [_number(text, macro) for macro in (size, f"MLF_{name.upper()}_{kind}_ALIGNMENT")]
        if found[0] is None or found[1] is None:
            raise _unknown(module, model)
        return found[0], found[1]

    return ModuleInterface(
        module=name,
        function=f"mlf_{name}_run" if reentrant else f"{_prefix(module, text)}_run",
        inputs=_ports(inputs, module.inputs),
        outputs=_ports(outputs, module.outputs),
        reentrant=reentrant,
        reset=reset,
        workspace=memory("WORKSPACE", f"TVMGEN_{name.upper()}_WORKSPACE_SIZE") if reentrant else (0, 1),
        state=memory("STATE", f"MLF_{name.upper()}_STATE_SIZE") if reset else (0, 1),
    )


def _unknown(module: Module, model: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        "interface-not-plain",
        place=f"model {model!r}: module {module.name}",
        reason="its C interface is not known, or takes more than inputs and outputs from the caller",
        hint="remove --for rust, and call the C interface by hand",
    )


def _prefix(module: Module, text: str) -> str:
    """Return the prefix of the module's functions: TVM's headers have it in lower case, its code may not."""
    name = symbol_prefix(module.name)
    return name if f" {name}_run(" in text else struct_prefix(module.name)


def _ports(names: tuple[str, ...], tensors: tuple[TensorInfo, ...]) -> tuple[ModulePort, ...]:
    return tuple(ModulePort(name, tensor) for name, tensor in zip(names, tensors, strict=True))


def _number(text: str, macro: str) -> int | None:
    found = re.search(rf"^#define {macro} ([0-9]+)$", text, re.MULTILINE)
    return int(found[1]) if found else None
