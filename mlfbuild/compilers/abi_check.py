"""Check that the code in an archive of another compiler runs on the CPU that firmware is built for.

A linker accepts some wrong combinations silently, and its messages about others are hard to understand. Code that the
native compiler generates is portable and always fits.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

from mlfbuild.c_analysis import CPU_ARCH, CPU_ARCH_PROFILE, FP_ARCH, MVE_ARCH, ObjectFacts, object_facts
from mlfbuild.compilers.cmsis_nn_scratch import scratch_problems
from mlfbuild.core import Diagnostic, UsageError
from mlfbuild.library import Library, Module
from mlfbuild.targets import CPUS, Cpu

_ARCHITECTURES = {
    10: "Armv7", 11: "Armv6-M", 12: "Armv6S-M", 13: "Armv7E-M", 14: "Armv8-A", 16: "Armv8-M Baseline",
    17: "Armv8-M Mainline", 21: "Armv8.1-M Mainline",
}  # fmt: skip
"""Values of Tag_CPU_arch that occur in firmware."""
_BASELINE = frozenset({11, 12})
_RUNS = {
    "armv6s-m": _BASELINE,
    "armv7-m": _BASELINE | {10},
    "armv7e-m": _BASELINE | {10, 13},
    "armv8-m.base": _BASELINE | {16},
    "armv8-m.main": _BASELINE | {10, 13, 16, 17},
    "armv8.1-m.main": _BASELINE | {10, 13, 16, 17, 21},
    "armv7-a": frozenset(range(11)),
}
"""Values of Tag_CPU_arch whose code an architecture runs (Armv8-M Mainline's cores here have the DSP extension)."""
_HOST_MACHINES = {
    "x86_64": "EM_X86_64", "amd64": "EM_X86_64", "aarch64": "EM_AARCH64", "arm64": "EM_AARCH64", "armv7l": "EM_ARM",
}  # fmt: skip
_CPU_OR_ARCHITECTURE = re.compile(r"-m(?:cpu|arch)=(\S+)")
"""Targets of the native compiler name the CPU, or the architecture if it is not Arm."""
_MCPU = re.compile(r"-mcpu=([a-z0-9-]+)")
_INSTRUCTIONS = {"dsp": "DSP", "mve": "MVE (Helium)"}
"""Features that generated C uses through intrinsics."""


def check_fit(library: Library, cpu: Cpu, where: str) -> None:
    """Raise ``UsageError`` if code of ``library`` does not run on ``cpu``; ``where`` names the archive.

    Raises ``InputFileError`` for a compiled object that is damaged.
    """
    for module in library.modules:
        for mistake in _problems(module, cpu):
            raise UsageError(mistake.code, place=f"{where}: {mistake.place}", reason=mistake.reason, hint=mistake.hint)


def _problems(module: Module, cpu: Cpu) -> Iterator[Diagnostic]:
    hint = f"export it for {_called(cpu)}, or build for another cpu"
    for file in module.codegen:
        if file.path.suffix == ".o":
            place = f"codegen/{file.path}"
            reason = _why_object_does_not_fit(object_facts(file.data, place), cpu, _exported_for(module))
            if reason:
                yield Diagnostic("object-for-another-cpu", place, reason=reason, hint=hint)
    for target in module.targets if not module.model_id and cpu.name != "host" else ():
        reason = _why_target_does_not_fit(target.text, cpu)
        if reason:
            yield Diagnostic("module-for-another-cpu", f"module {module.name}", reason=reason, hint=hint)
    yield from scratch_problems(module, cpu)


def _called(cpu: Cpu) -> str:
    return "this machine" if cpu.name == "host" else cpu.name


def exported_cpu(library: Library) -> str:
    """Return the CPU that the targets of all modules of ``library`` name; empty if they name none, or several."""
    texts = [target.text for module in library.modules for target in module.targets]
    words = {match[1] if (match := _CPU_OR_ARCHITECTURE.search(text)) else "" for text in texts}
    found = [cpu.name for cpu in CPUS.values() if words == {cpu.name if cpu.is_arm else cpu.architecture}]
    return found[0] if found else ""


def _exported_for(module: Module) -> str:
    """Return the CPU that TVM's target strings name, as a part of a sentence; empty if they name none."""
    found = (_MCPU.search(target.text) for target in module.targets)
    name = next((match[1] for match in found if match), None)
    return f", exported for {name}" if name else ""


def _why_target_does_not_fit(target: str, cpu: Cpu) -> str | None:
    """Check TVM's target string, such as ``c -keys=arm_cpu,cpu -mcpu=cortex-m7``; ``None`` if it fits or is silent."""
    match = _MCPU.search(target)
    other = CPUS.get(match[1]) if match else None
    if other is None:
        return None
    for feature, words in _INSTRUCTIONS.items():
        if feature in other.features - cpu.features and f"+no{feature}" not in target:
            return f"was exported for {other.name}, with {words} instructions, which {cpu.name} does not have"
    return None


def _why_object_does_not_fit(facts: ObjectFacts, cpu: Cpu, exported: str) -> str | None:
    machine = _machine(cpu)
    if machine is None:
        return None
    if facts.machine != machine or (cpu.name != "host" and facts.bits != 32):
        other = facts.machine.removeprefix("EM_")
        return f"is an object for {other} ({facts.bits} bits{exported}), not for {_called(cpu)}"
    if cpu.name == "host":
        return None
    return _why_attributes_do_not_fit(facts, cpu) if facts.attributes else _why_floats_do_not_fit(facts, cpu)


def _machine(cpu: Cpu) -> str | None:
    if cpu.name == "host":
        return _HOST_MACHINES.get(platform.machine().lower())
    return "EM_ARM" if cpu.is_arm else "EM_RISCV"


def _why_attributes_do_not_fit(facts: ObjectFacts, cpu: Cpu) -> str | None:
    architecture = facts.attributes.get(CPU_ARCH, 0)
    profile = chr(facts.attributes.get(CPU_ARCH_PROFILE, 0))
    wrong_profile = profile in "AM" and profile != ("A" if cpu.architecture.endswith("-a") else "M")
    if architecture not in _RUNS[cpu.architecture] or wrong_profile:
        name = _ARCHITECTURES.get(architecture, f"architecture {architecture}")
        name += f"-{profile}" if name == "Armv7" and profile in "AMR" else ""
        return f"holds code for {name}, which {cpu.name} does not run"
    if facts.attributes.get(MVE_ARCH) and "mve" not in cpu.features:
        return f"uses MVE (Helium) instructions, which {cpu.name} does not have"
    return _why_floats_do_not_fit(facts, cpu) or (
        f"uses an FPU, which {cpu.name} does not have"
        if facts.attributes.get(FP_ARCH) and "fpu" not in cpu.features
        else None
    )


def _why_floats_do_not_fit(facts: ObjectFacts, cpu: Cpu) -> str | None:
    """Check the float ABI; the linker also refuses it, in terms of VFP register arguments."""
    if facts.hard_float is None or facts.hard_float == (cpu.float_abi == "hard"):
        return None
    theirs, ours = ("hard-float", "soft-float") if facts.hard_float else ("soft-float", "hard-float")
    return f"is {theirs}, and code for {cpu.name} is {ours}: their functions pass floats in different registers"
