"""Code for devices other than the host, such as accelerators and DSP cores: the files of ``codegen/<device>/``.

TVM's exporter only wrote ``codegen/host``; the format's authors meant the other folders for code of other targets. The
host's compiler never compiles such files: they are in ``Module.device_files``, apart from ``Module.codegen``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from mlfbuild.c_analysis import HEADER_SUFFIXES, OBJECT_SUFFIXES, SOURCE_SUFFIXES
from mlfbuild.library.keys.npu import NPU_DEVICE
from mlfbuild.library.names import sanitize_name
from mlfbuild.library.value import CodegenFile, Module

DEVICE_NAMES: Mapping[int, str] = {
    1: "CPU", 2: "CUDA", 3: "CUDA host", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "ROCm host",
    12: "extension device", 13: "CUDA managed", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon", 32: "AOCL", 33: "SDAccel",
    34: "OpenGL", 35: "MicroDev",
}  # fmt: skip
"""``DLDeviceType``, and the values from 32 on, which TVM added."""


def device_name(device_type: int) -> str:
    """Return the name of a device type for messages; ``device 99`` for a number that is not assigned."""
    return DEVICE_NAMES.get(device_type, f"device {device_type}")


HOST_FOLDER = "host"
_SOURCES = SOURCE_SUFFIXES | {".S", ".s"}
DEVICE_CODE_SUFFIXES = _SOURCES | OBJECT_SUFFIXES
_CODE = DEVICE_CODE_SUFFIXES | HEADER_SUFFIXES


def data_symbol(module: str, device: str, file: str) -> str:
    """Return the C symbol of a device's data in the host's image, from the name of its ``file`` without folders.

    ``mlf_net_accel_commands_bin`` for ``net_commands.bin`` or ``commands.bin`` of the module ``net``.
    """
    # TVM's names begin with the module's, which the symbol already has.
    return f"mlf_{module}_{sanitize_name(device)}_{sanitize_name(file.removeprefix(f'{module}_'))}"


def npu_symbol(module: str, file: str) -> str:
    """Return the C symbol of ``file``, which ``module`` has for an Ethos-U."""
    return data_symbol(module, NPU_DEVICE, file)


@dataclass(frozen=True)
class DeviceCode:
    """The files of one device; their paths begin with its name."""

    name: str
    """The name of the folder in ``codegen/``."""
    files: tuple[CodegenFile, ...]

    @property
    def sources(self) -> tuple[CodegenFile, ...]:
        """C, C++ and assembler sources."""
        return self._of(_SOURCES)

    @property
    def objects(self) -> tuple[CodegenFile, ...]:
        """Compiled objects."""
        return self._of(OBJECT_SUFFIXES)

    @property
    def blobs(self) -> tuple[CodegenFile, ...]:
        """Files that no compiler reads, such as command streams."""
        return tuple(file for file in self.files if file.path.suffix not in _CODE)

    @property
    def built(self) -> bool:
        """Whether it has a library, made of sources or objects."""
        return bool(self.sources or self.objects)

    @property
    def symbol(self) -> str:
        """The name as a part of C names."""
        return sanitize_name(self.name)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(len(file.content) for file in self.files)

    def _of(self, suffixes: frozenset[str]) -> tuple[CodegenFile, ...]:
        return tuple(file for file in self.files if file.path.suffix in suffixes)


def device_of(path: PurePosixPath) -> str | None:
    """Return the device of a file, whose path is relative to ``codegen/``; ``None`` for the host's.

    ``host/src/kws_lib0.c`` is the host's, ``accel/src/kws_lib0.c`` that of ``accel``. A file without a folder is the
    host's as well.
    """
    return path.parts[0] if len(path.parts) > 1 and path.parts[0] != HOST_FOLDER else None


def device_code(module: Module) -> tuple[DeviceCode, ...]:
    """Return the code of ``module`` for other devices than the host, in alphabetical order.

    Only folders beside ``codegen/host`` count. A device without sources and objects has data only (``built`` is false).
    """
    by_name: defaultdict[str, list[CodegenFile]] = defaultdict(list)
    for file in module.device_files:
        by_name[file.path.parts[0]].append(file)
    return tuple(DeviceCode(name, tuple(by_name[name])) for name in sorted(by_name))


def all_files(module: Module) -> tuple[CodegenFile, ...]:
    """Return the generated files of ``module`` for all devices, the host's first.

    For what concerns every file, such as sizes and renaming. The host's compiler compiles ``module.codegen`` only.
    """
    return (*module.codegen, *module.device_files)


def with_files(module: Module, files: Iterable[CodegenFile]) -> Module:
    """Return ``module`` with the generated ``files``, each with the device that its path names.

    ``files`` replace all that it had, for the host and for other devices.
    """
    found: Sequence[CodegenFile] = tuple(files)
    # Only the host's compiler gets these; an accelerator's file with the suffix .c may not be C for it.
    host = tuple(file for file in found if device_of(file.path) is None)
    return replace(module, codegen=host, device_files=tuple(file for file in found if device_of(file.path) is not None))
