"""Devices beside a target's host, such as accelerators and DSP cores, whose code archives contain: keys and checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mlfbuild.core import Mistake, in_quotes
from mlfbuild.core.keys import EXACT, NOT_EMPTY, Keys, ProjectPath
from mlfbuild.library.keys import SECTION, npu_problems
from mlfbuild.project import rules
from mlfbuild.project.problems import KeyPath
from mlfbuild.targets import CPUS

if TYPE_CHECKING:
    from mlfbuild.project.document import Document

DEVICES = "devices"
_NEEDED = ("cpu", "toolchain", "c-compiler", "section")


@dataclass(frozen=True)
class DeviceKeys(Keys):
    """Another device, such as an accelerator or a DSP core, whose code archives have in the folder of its name."""

    TITLE = "device"
    SCHEMA: ClassVar[Mapping[str, Any]] = {
        "anyOf": [{"required": [key]} for key in _NEEDED],
        "not": {"required": ["toolchain", "c-compiler"]},
    }

    cpu: Annotated[str, rules.CPU] | None = None
    """Core of the device: its compiler is used, with the flags for the core."""
    toolchain: ProjectPath | None = None
    """CMake toolchain file whose C compiler and flags are used instead of those of `cpu`."""
    c_compiler: Annotated[str, rules.COMPILER_WORD] | None = None
    """C compiler: a program in PATH, or a path. It must accept GCC's options. Default: that of `cpu`."""
    flags: Annotated[tuple[Annotated[str, rules.COMPILE_OPTION], ...], NOT_EMPTY] = ()
    """Further compiler options: -DACCEL=1"""
    link: Annotated[bool, EXACT] | None = None
    """Whether images of the target link the device's library. Default: if `cpu` has the target's machine and ABI."""
    section: Annotated[str, SECTION] | None = None
    """Section of the device's data, such as command streams. Default: one section for each file."""

    @property
    def names_compiler(self) -> bool:
        """Whether code of the device can be compiled."""
        return any(value is not None for value in (self.cpu, self.toolchain, self.c_compiler))


def check_devices(document: Document, target: str, keys: Mapping[str, object]) -> None:
    """Add every mistake between the keys of the devices of ``target`` to the problems of ``document``.

    ``keys`` are those of the target as plain values, which may be of any type. Mistakes in single values are those of
    ``DeviceKeys``.
    """
    # Two names that differ in case or punctuation would define the same symbols, which only the linker would notice.
    first: dict[str, str] = {}
    devices = keys.get(DEVICES)
    for name, device in devices.items() if isinstance(devices, dict) else ():
        path = ("targets", target, DEVICES, name)
        stem = re.sub("[^0-9a-z]", "_", name.lower())
        if first.setdefault(stem, name) != name:
            reason = f"is the same as {in_quotes(first[stem])} in the names of C symbols"
            document.add(path, Mistake("names-equal-in-c", reason=reason, hint="choose another name"), at_key=True)
        if isinstance(device, dict):
            _check_device(document, path, device, keys)


def check_npu(document: Document, target: str, keys: Mapping[str, object]) -> None:
    """Add the mistakes between the keys of the NPU of ``target``, and its CPU, to the problems of ``document``."""
    values, path = keys.get("npu"), ("targets", target, "npu")
    if not isinstance(values, dict):
        return
    cpu = str(keys.get("cpu", ""))
    if cpu in CPUS and not CPUS[cpu].is_arm:
        document.report(path, "npu-without-arm", f"no {cpu} has an Ethos-U", "remove it", at_key=True)
    for key, mistake in npu_problems(values):
        document.add((*path, key), mistake)


def _check_device(
    document: Document, path: KeyPath, device: Mapping[str, object], target: Mapping[str, object]
) -> None:
    if not {*_NEEDED} & {*device}:
        hint = "add cpu, toolchain or c-compiler, or section if it only has data"
        document.add(path, Mistake("missing-key", reason="names no compiler", hint=hint), at_key=True)
    # The schema has the same rule as `not required`; this one has a message.
    if "toolchain" in device and "c-compiler" in device:
        reason = "is not accepted together with toolchain, which names a compiler itself"
        document.report((*path, "c-compiler"), "misplaced-key", reason, "remove one of them", at_key=True)
    own, host = str(device.get("cpu")), str(target.get("cpu"))
    if device.get("link") is True and own in CPUS and host in CPUS and CPUS[own].machine != CPUS[host].machine:
        reason = f"an image for {host} cannot contain code for {own}"
        document.report((*path, "link"), "device-cannot-be-linked", reason, "remove it, and link the library yourself")
