"""Describe the code of other devices for builds: what is compiled with the compiler of a device, and the data.

The sources and objects of a device become a static library of their own, ``libmlf_<module>.<device>.a``. Data, such as
command streams, becomes symbols of the host's image (``blobs``), and so do objects that the host does not link.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from mlfbuild.core import InputFileError, UsageError, shown, suggestion
from mlfbuild.jobs.tree.build_text import check_path
from mlfbuild.library import CodegenFile, DeviceCode, Module, data_symbol, device_code, sanitize_name

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_GRAPH_HEADER = "blobs"
"""The last part of ``mlf_<module>_blobs.h``, the header of a graph."""
# So that --gc-sections drops what the image of the device does not use.
_CODE_OPTIONS = ("-ffunction-sections", "-fdata-sections")


@dataclass(frozen=True)
class DeviceTools:
    """The build of a device's code; without a compiler, the build must name one (``MLF_DEVICE_<NAME>_COMPILER``)."""

    compiler: str = ""
    """A program, or a path."""
    flags: tuple[str, ...] = ()
    linked: bool = False
    """Whether images for the host link the device's library."""
    section: str | None = None
    """Linker section of the device's data; ``None`` for one section per file."""
    variable: str = ""
    """Environment variable with the path of the compiler; empty if there is none."""


class Devices(Protocol):
    """The devices of a target."""

    @property
    def target(self) -> str:
        """The target's name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the declared devices."""

    def tools(self, name: str) -> DeviceTools | None:
        """Return how code of the device ``name`` is built; ``None`` if it is not declared."""


@dataclass(frozen=True)
class DevicePart:
    """The code of a module for one device; paths are relative to the tree."""

    module: str
    name: str
    sources: tuple[str, ...]
    objects: tuple[str, ...]
    include_dirs: tuple[str, ...]
    """Include folders for its own sources only."""
    tools: DeviceTools
    level: str = ""
    """The compiler's option for the optimisation level; empty for none."""

    @property
    def target(self) -> str:
        """The name of its library: ``net.accel``."""
        return f"{self.module}.{self.name}"

    @property
    def variable(self) -> str:
        """The first part of the names of its variables in builds: ``MLF_DEVICE_ACCEL``."""
        return f"MLF_DEVICE_{sanitize_name(self.name).upper()}"

    @property
    def flags(self) -> tuple[str, ...]:
        """Options for each source."""
        return (*_CODE_OPTIONS, *filter(None, [self.level]), *self.tools.flags)


@dataclass(frozen=True)
class DeviceData:
    """A file of a device that becomes a symbol of the host's image."""

    symbol: str
    """``mlf_net_accel_commands_bin`` for ``codegen/accel/lib/net_commands.bin`` of the module ``net``."""
    file: CodegenFile
    section: str


def device_parts(module: Module, devices: Devices | None) -> tuple[DevicePart, ...]:
    """Return the libraries of ``module`` for the declared ``devices``; ``None`` leaves their compilers to the build.

    Raises ``UsageError`` if a device with code is not declared, or has no compiler, and ``InputFileError`` for a file
    name that build files cannot contain.

    Devices whose folder has neither sources nor objects have no library.
    """
    return tuple(_part(module, code, _tools(module, code, devices)) for code in _codes(module) if code.built)


def device_data(module: Module, devices: Devices | None) -> Mapping[str, tuple[DeviceData, ...]]:
    """Return the data of each device of ``module``, by the device's name.

    Raises as ``device_parts``, and ``UsageError`` if two files have the same name in C.
    """
    found = {code.name: _data(module, code, _tools(module, code, devices)) for code in _codes(module)}
    return {name: data for name, data in found.items() if data}


def _codes(module: Module) -> tuple[DeviceCode, ...]:
    """Return the code of each device; raises ``InputFileError`` for names that build files and C cannot contain."""
    codes = device_code(module)
    first: dict[str, str] = {_GRAPH_HEADER: "graph and parameters"}
    for code in codes:
        # In lower case: on disks that ignore case, two headers whose names differ only in that are one file.
        other = first.setdefault(code.symbol.lower(), code.name)
        reason = ""
        if not _NAME.fullmatch(code.name):
            reason = "the name of this device cannot be part of a build target"
        elif other != code.name:
            reason = f"the generated header would have the name of that for {other}"
        if reason:
            place = f"module {module.name}: codegen/{shown(code.name)}"
            raise InputFileError("device-name-not-buildable", place=place, reason=reason, hint="rename the folder")
    return codes


def _part(module: Module, code: DeviceCode, tools: DeviceTools) -> DevicePart:
    # Each folder called `include` below the device's own; the first part of the path is the device.
    folders = {_include_dir(file.path) for file in code.files if "include" in file.path.parts[1:-1]}
    part = DevicePart(
        module=module.name,
        name=code.name,
        sources=tuple(f"codegen/{file.path}" for file in code.sources),
        objects=tuple(f"codegen/{file.path}" for file in code.objects),
        include_dirs=tuple(sorted(folders)),
        tools=tools,
    )
    for path in (*part.sources, *part.objects, *part.include_dirs):
        check_path(path)
    return part


def _include_dir(path: PurePosixPath) -> str:
    return f"codegen/{PurePosixPath(*path.parts[: path.parts.index('include', 1) + 1])}"


def _tools(module: Module, code: DeviceCode, devices: Devices | None) -> DeviceTools:
    if devices is None:
        return DeviceTools()
    # Data needs no compiler, so a device that has only data need not be declared.
    tools = devices.tools(code.name)
    if code.built and (tools is None or not tools.compiler):
        key = f"targets.{devices.target}.devices.{code.name}"
        near = suggestion(code.name, [name for name in devices.names if name != code.name])
        known = "has no compiler for it" if tools is not None else f"does not declare it{near}"
        raise UsageError(
            "device-not-declared",
            place=f"module {module.name}: codegen/{code.name}",
            reason=f"is code for the device {code.name}, and the target {devices.target} {known}",
            hint=f"add {key} to the project file, with cpu, toolchain or c-compiler",
        )
    return tools or DeviceTools()


def _data(module: Module, code: DeviceCode, tools: DeviceTools) -> tuple[DeviceData, ...]:
    # Objects that the host does not link are data for it: firmware may load them into the device.
    files = code.blobs if tools.linked else tuple(sorted((*code.blobs, *code.objects), key=lambda file: str(file.path)))
    found: dict[str, DeviceData] = {}
    for file in files:
        check_path(f"codegen/{file.path}")
        name = sanitize_name(file.path.name.removeprefix(f"{module.name}_"))
        symbol = data_symbol(module.name, code.name, file.path.name)
        other = found.get(symbol)
        if other is not None:
            reason = f"codegen/{other.file.path} and codegen/{file.path} would both get the symbol {symbol}"
            hint = "rename one of them in the archive"
            raise UsageError("device-files-equal-in-c", place=f"module {module.name}", reason=reason, hint=hint)
        section = tools.section or f".rodata.mlf.{code.symbol}.{module.name}.{name}"
        found[symbol] = DeviceData(symbol, file, section)
    return tuple(found.values())
