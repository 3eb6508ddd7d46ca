"""Generate test firmware for one module from ``runtime/verify/verify.c`` and a generated header.

``verify_module.h`` describes the module (``verify_header``). It also contains the ``Subject`` as JSON, which becomes
the constant ``mlf_verify_subject`` of the image. So the image and vectors are enough to verify it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlfbuild.core import UnsupportedModelError, read_bytes
from mlfbuild.executor import with_c_interface
from mlfbuild.jobs.tree.build_text import rendered
from mlfbuild.library import (
    CodegenFile,
    Fields,
    Module,
    NetworkMemory,
    Pool,
    TensorInfo,
    macro_prefix,
    parse_json,
    sanitize_name,
    struct_prefix,
)
from mlfbuild.library.cgen import LICENCE
from mlfbuild.targets import BOARDS, RUNTIME


def print_header(module: Module, *, reentrant: bool, twice: bool, subject: str) -> str:
    """Return the text for ``module``, which has the C interface; the image contains the text ``subject``.

    If it is ``reentrant``, the second of two runs of each case uses the run function whose caller provides the
    workspace. Without ``twice``, each case runs once, as in a product.
    """
    header = _callable_header(module)
    prefix, external, alone = struct_prefix(module.name), external_pools(module), reentrant and twice
    own = f"{prefix.upper()}_WORKSPACE_SIZE" if alone and not external else "0"
    arenas = module.network.arenas if module.network and alone else ()
    workspaces = [str(pool.size) for pool in external if pool.kind == "workspace"]
    workspaces = workspaces or [str(arena.size) for arena in arenas] or [own]
    state = module.state_size if alone else 0
    tensors = () if module.workspace_io else (*module.inputs, *module.outputs)
    pools, constants = _pools_of(module.name, external)
    return rendered(
        "verify_module.h",
        licence=LICENCE,
        name=module.name,
        input_sizes=[tensor.size for tensor in module.inputs],
        output_sizes=[tensor.size for tensor in module.outputs],
        workspace_io=module.workspace_io,
        header=header.path.name,
        prefix=prefix,
        reentrant=_reentrant_name(module) if alone else "",
        tensors=[] if module.workspace_io else ["inputs", "outputs"],
        workspaces=workspaces,
        passed=_passed(external, arenas),
        state=state,
        memory=" + ".join(f"size({size})" for size in (*(tensor.size for tensor in tensors), *workspaces, state)),
        runs=2 if twice else 1,
        pools=pools,
        constants=constants,
        subject=_c_string(subject),
    )


def _passed(external: Sequence[Pool], arenas: Sequence[NetworkMemory]) -> list[str]:
    """Return the workspaces that the reentrant run function takes, as C expressions in ``verify.c``.

    The macro has one of them as a parameter; others are in the array that ``verify.c`` takes it from.
    """
    if not arenas:
        return ["workspace"]
    # Pools are sorted by name, the function's parameters are in the order of the arenas.
    order = [pool.name for pool in external] or [arena.name for arena in arenas]
    return [f"workspaces[{order.index(arena.name)}].bytes" for arena in arenas]


def print_timing(module: Module) -> str:
    """Return the macros with which runs of ``module`` are timed; see ``runtime/profile/mlf_profile.h``."""
    if not module.hook:
        return "#define MODULE_OPERATORS 0\n"
    prefix = struct_prefix(module.name)
    name = prefix.removeprefix("tvmgen_")
    pointers = "pools" if module.workspace_io else "inputs, outputs"
    return (
        f"#define MODULE_OPERATORS MLF_{name.upper()}_OPERATORS\n"
        f"#define MODULE_RUN_HOOKED(inputs, outputs, pools, hook) {prefix}_run_hooked({pointers}, hook, 0)\n"
    )


def interface_header(module: Module) -> CodegenFile | None:
    """Return the header of the module's C interface, ``None`` if it has none."""
    return next((file for file in module.codegen if file.path.match("include/tvmgen_*.h")), None)


def is_reentrant(module: Module) -> bool:
    """Return whether the module has a run function whose caller provides the workspace."""
    header = interface_header(module)
    return header is not None and f" {_reentrant_name(module)}_run(".encode() in bytes(header.data)


def external_pools(module: Module) -> list[Pool]:
    """Return the memory pools that the module's caller provides."""
    return [pool for pool in module.pools if pool.external]


def _reentrant_name(module: Module) -> str:
    return f"mlf_{struct_prefix(module.name).removeprefix('tvmgen_')}"


def _pools_of(module: str, external: Sequence[Pool]) -> tuple[list[str], dict[str, str]]:
    """Return the initialisers of the struct of pools, and the macros of those with constants by name."""
    members, constants, workspaces = [], {}, 0
    for pool in external:
        name = sanitize_name(pool.name)
        if pool.kind == "workspace":
            members.append(f".{name} = (workspaces)[{workspaces}].bytes")
            workspaces += 1
        else:
            members.append(f".{name} = (void *)(uintptr_t)constants_{name}")
            constants[name] = f"{macro_prefix(module)}_{name.upper()}_CONSTANT_POOL"
    return members, constants


def _c_string(text: str) -> str:
    """Return printable ASCII as a C string; ``?`` is escaped because of trigraphs."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"'


SYMBOL = "mlf_verify_subject"
"""The constant in the image with the subject."""
HOST = "host"
"""The board of an image that runs on this machine."""

_SOURCES = ("verify.c", "verify_files.h", "verify_memory.h")
"""Files of ``runtime/verify``."""
_FORMAT_KEY = "mlfbuild_verify"
_FORMAT = 1


@dataclass(frozen=True)
class Subject:
    """The module that a test firmware checks, and the board that it runs on."""

    name: str
    """The module's name."""
    board: str
    """QEMU's machine name, or ``host``."""
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    """In call order."""
    workspace_size: int
    """Bytes of the module's workspace, as recorded in the library."""
    state_size: int
    """Bytes that the module keeps between runs."""
    takes_workspace: bool
    """Whether a caller can provide the workspace: to ``mlf_<module>_run``, or as memory pools."""
    pools: tuple[tuple[str, int], ...] = ()
    """(name, bytes) of the memory pools that the caller must provide for workspaces."""
    layers: int = 0
    """The number of layers that add to the tolerance of float outputs; 0 if unknown."""
    bounds: tuple[int, ...] = ()
    """The greatest magnitude of each output, 0 if unknown; empty if all are."""

    def to_json(self) -> str:
        """Return the subject as one line of ASCII."""
        fields = {
            _FORMAT_KEY: _FORMAT,
            "module": self.name,
            "board": self.board,
            "inputs": [_tensor_fields(tensor) for tensor in self.inputs],
            "outputs": [_tensor_fields(tensor) for tensor in self.outputs],
            "workspace_size": self.workspace_size,
            "state_size": self.state_size,
            "takes_workspace": self.takes_workspace,
        }
        if self.pools:
            fields["pools"] = [{"name": name, "size": size} for name, size in self.pools]
        if self.layers:
            fields["layers"] = self.layers
        if self.bounds:
            fields["bounds"] = list(self.bounds)
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Subject:
        """Return the subject that ``to_json`` wrote as ``data``; raises ``InputFileError`` if it is invalid."""
        fields = Fields(parse_json(data, where), where)
        version = fields.integer(_FORMAT_KEY)
        if version != _FORMAT:
            raise fields.error(
                _FORMAT_KEY, f"is {version}, but this mlfbuild knows {_FORMAT}", hint="use the mlfbuild that built it"
            )
        return cls(
            name=fields.text("module"),
            board=fields.text("board"),
            inputs=tuple(_tensor(entry) for entry in fields.objects("inputs")),
            outputs=tuple(_tensor(entry) for entry in fields.objects("outputs")),
            workspace_size=fields.integer("workspace_size"),
            state_size=fields.integer("state_size") if "state_size" in fields else 0,
            takes_workspace=fields.flag("takes_workspace"),
            # to_json() leaves out what is empty.
            pools=_pools(fields.objects("pools")) if "pools" in fields else (),
            layers=fields.integer("layers") if "layers" in fields else 0,
            bounds=fields.integers("bounds"),
        )

    def bound(self, output: int) -> int:
        """Return the greatest magnitude of the output with this index; 0 if it is unknown."""
        return self.bounds[output] if output < len(self.bounds) else 0


def _tensor_fields(tensor: TensorInfo) -> dict[str, object]:
    shape = None if tensor.shape is None else list(tensor.shape)
    source = {"source_name": tensor.source_name} if tensor.source_name else {}
    return {"name": tensor.name, "dtype": tensor.dtype, "size": tensor.size, "shape": shape, **source}


def _tensor(entry: Fields) -> TensorInfo:
    shape = None if entry.is_null("shape") else entry.integers("shape")
    name, source = entry.text("name"), entry.text("source_name", default="")
    return TensorInfo(name, entry.text("dtype"), entry.integer("size"), shape, source_name=source)


def _pools(entries: Iterable[Fields]) -> tuple[tuple[str, int], ...]:
    return tuple((entry.text("name"), entry.integer("size")) for entry in entries)


def subject_of(module: Module, board: str, ram: int | None = None) -> Subject:
    """Return the subject of test firmware for ``module`` on ``board``, or on a device with ``ram`` bytes for data.

    ``board`` is a name in ``BOARDS``, ``host``, or the way in which a device is reached. If the RAM cannot hold a
    second workspace, ``takes_workspace`` is false, and both runs of a case use the module's own.

    Raises ``UnsupportedModelError`` if the module has no C interface that firmware can call, or requires anything other
    than memory of its caller.
    """
    return _subject(with_c_interface(module), board, ram)


def _subject(module: Module, board: str, ram: int | None = None) -> Subject:
    _callable_header(module)
    external = external_pools(module)
    pools = tuple((pool.name, pool.size or 0) for pool in external if pool.kind == "workspace")
    workspace_size = sum(size for _, size in pools) if external else _workspace_size(module)
    return Subject(
        name=module.name,
        board=board,
        inputs=module.inputs,
        outputs=module.outputs,
        workspace_size=workspace_size,
        state_size=module.state_size,
        takes_workspace=bool(pools) or (is_reentrant(module) and _has_room(module, board, 2 * workspace_size, ram)),
        pools=pools,
        layers=module.network.layers if module.network and _has_floats(module) else 0,
        bounds=_float_bounds(module),
    )


def _float_bounds(module: Module) -> tuple[int, ...]:
    if not _has_floats(module):
        return ()
    bounds = tuple(map(module.bound, range(len(module.outputs))))
    return bounds if any(bounds) else ()


def _has_floats(module: Module) -> bool:
    return any(tensor.dtype.startswith("float") for tensor in module.outputs)


def _has_room(module: Module, board: str, size: int, ram: int | None) -> bool:
    """Return whether ``board`` has ``size`` bytes of RAM for the module's workspace and one of the caller together.

    A module with state always needs both, because runs with each are separate streams.
    """
    if ram is None and board in BOARDS:
        ram = BOARDS[board].ram.size
    return ram is None or bool(module.state_size) or size <= ram


def _workspace_size(module: Module) -> int:
    return module.main[0].workspace_size if module.main else 0


def _callable_header(module: Module) -> CodegenFile:
    """Return the header of the interface; raise ``UnsupportedModelError`` if the module cannot be called."""
    header = interface_header(module)
    if header is None or not module.inputs or not module.outputs:
        raise UnsupportedModelError(
            "module-without-interface",
            place=module.name,
            reason=f"cannot be run: the library has neither a C interface (a header tvmgen_{module.name}.h) with known "
            "inputs and outputs, nor C sources to generate one for",
            hint="export the model for the target c",
        )
    if module.devices:
        raise UnsupportedModelError(
            "module-needs-driver",
            place=module.name,
            reason=f"cannot be run: it needs a driver of {', '.join(module.devices)}, which mlfbuild does not have",
            hint="export the model for the CPU only",
        )
    unknown = [pool.name for pool in external_pools(module) if pool.size is None]
    if unknown:
        raise UnsupportedModelError(
            "pool-size-unknown",
            place=module.name,
            reason=f"cannot be run: its header does not define the size of pool {unknown[0]}",
            hint="export the model again",
        )
    return header


def module_header(
    module: Module, board: str, *, twice: bool = True, ram: int | None = None, timed: bool = False
) -> str:
    """Return the text of ``verify_module.h`` for ``module`` on ``board``; ``ram`` and errors as for ``subject_of``.

    Without ``twice``, the image runs each case once, as a product does, and provides no workspace except pools. If runs
    are ``timed``, it takes the time of each of them, and before each operator if the module calls a hook.
    """
    module = with_c_interface(module)
    subject = _subject(module, board, ram)
    reentrant = subject.takes_workspace and is_reentrant(module)
    text = print_header(module, reentrant=reentrant, twice=twice, subject=subject.to_json())
    return text + (print_timing(module) if timed else "")


# In a tree -----------------------------------------------------------------------------------------------------------


def verification_files(modules: Iterable[Module], board: str) -> dict[str, bytes]:
    """Return the sources of test firmware for each of ``modules`` on ``board``: path in the tree -> content."""
    headers = {f"{_folder(module.name)}/verify_module.h": module_header(module, board).encode() for module in modules}
    sources = {
        f"verify/{name}": read_bytes(RUNTIME / "verify" / name, "file of the test firmware") for name in _SOURCES
    }
    return {**sources, **headers}


def _folder(module: str) -> str:
    return f"verify/{module}"
