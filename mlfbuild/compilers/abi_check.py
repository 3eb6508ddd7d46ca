"""Check that the code in an archive of another compiler runs on the CPU that firmware is built for.

A linker accepts some wrong combinations silently, and its messages about others are hard to understand. Code that the
native compiler generates is portable and always fits. ``check_fit`` makes three checks:

1. a compiled object must be for the machine, an architecture and the float ABI that the CPU runs (``.ARM.attributes``,
see ``c_analysis.attributes``) 2. the CPU that TVM's target string names must not have instructions (DSP, MVE) that the
CPU of the build lacks 3. TVM's code must pass enough scratch memory to the CMSIS-NN functions that it calls

The third needs an explanation. TVM chooses the size for the ``-mcpu`` of its target ``cmsis-nn``, which archives do not
record. Without it, TVM passes ``NULL`` for buffers that a core with the DSP extension or MVE writes to. The sizes here
are those for which CMSIS-NN v4.0.0 and v4.1.0 agree (``*_get_buffer_size*``). Code in another form than TVM writes is
not checked.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from mlfbuild.c_analysis import (
    CPU_ARCH,
    CPU_ARCH_PROFILE,
    FP_ARCH,
    MAX_TEXT,
    MVE_ARCH,
    SOURCE_SUFFIXES,
    ObjectFacts,
    object_facts,
)
from mlfbuild.core import Diagnostic, UsageError
from mlfbuild.library import CMSIS_NN, Library, Module, requirements_of
from mlfbuild.targets import CPUS, Cpu

# Other releases have other sizes; a finding for one of them could be wrong in either direction.
_VERSIONS = frozenset({"v4.0.0", "v4.1.0"})
# The three forms that TVM's `relay/backend/contrib/cmsisnn/tir_to_runtime.cc` prints, one statement each. Digits and
# lengths are bounded: the text comes from an archive and is untrusted.
_CONTEXT = re.compile(r"\bcmsis_nn_context (\w+)\s*=\s*\{\s*\w+\s*,\s*(\d{1,9})\s*\};", re.ASCII)
_STRUCT = re.compile(r"\bcmsis_nn_(?:dims|tile|\w*params) (\w+)\s*=\s*\{([^{};]{0,200})\};", re.ASCII)
_CALL = re.compile(r"\b(arm_\w+)\(&(\w+),([^;{}]{0,1000})\);", re.ASCII)
# From `arm_nnsupportfunctions.h` of CMSIS-NN.
_CHANNELS_MVE = 124
"""``CH_IN_BLOCK_MVE``: channels that a depthwise convolution with MVE processes at a time."""
_SIZES = ("input_dims", "filter_dims")
# 512 products of int16 and int8 (2^15 * 2^7) no longer fit the 32 bits of the fast path's accumulator.
_SHORT = 512
"""Filters with fewer values use the fast path of int16 convolutions."""


class _Dims(NamedTuple):
    """``cmsis_nn_dims``."""

    n: int
    h: int
    w: int
    c: int


class _Call(NamedTuple):
    """The parts of a call that determine the size of its scratch memory."""

    source: _Dims
    filter: _Dims
    padding: tuple[int, int]
    dilation: tuple[int, int]
    multiplier: int
    """Output channels for each input channel of a depthwise convolution; 0 for other functions."""

    @property
    def area(self) -> int:
        """Values of one filter, over all channels of the input."""
        return self.filter.h * self.filter.w * self.source.c


def scratch_problems(module: Module, cpu: Cpu) -> Iterator[Diagnostic]:
    """Yield a finding for each function of ``module`` whose scratch memory is too small for CMSIS-NN on ``cpu``.

    Its place is the C file in the archive; sizes are in bytes. Modules that do not require CMSIS-NN v4.0.0 or v4.1.0
    have no findings, because other releases may need other sizes.
    """
    if not any(
        requirement.name == CMSIS_NN.name and requirement.version in _VERSIONS
        for requirement in requirements_of(module)
    ):
        return
    for file in module.codegen:
        if file.path.suffix in SOURCE_SUFFIXES and len(file.content) <= MAX_TEXT:
            data = bytes(file.content)
            text = data.decode(errors="replace") if b"cmsis_nn_context" in data else ""
            for function, given, needed in _too_small(text, cpu):
                core = cpu.name.partition("+")[0]
                yield Diagnostic(
                    "scratch-memory-too-small",
                    f"codegen/{file.path}",
                    reason=f"{function} needs {needed:,} bytes of scratch memory on {core} and gets {given:,}",
                    hint=f"export the model again with --target-cmsis-nn-mcpu={core}, or build for another cpu",
                )


def _too_small(text: str, cpu: Cpu) -> Iterator[tuple[str, int, int]]:
    """Yield (function, bytes given, bytes needed) of each call in ``text`` whose scratch memory is too small."""
    contexts = list(_CONTEXT.finditer(text))
    ends = [*(each.start() for each in contexts[1:]), len(text)]
    for context, end in zip(contexts, ends, strict=False):
        # The call follows its context, and nothing between the two belongs to another call: TVM prints a block for
        # each.
        call = _CALL.search(text, context.end(), end)
        if call is None or call[2] != context[1] or call[1] not in _NEEDED:
            continue
        structs = dict(_STRUCT.findall(text[context.end() : call.start()]))
        arguments = [word.strip().removeprefix("&") for word in call[3].split(",")]
        try:
            needed = _NEEDED[call[1]](_read(arguments, structs), cpu)
        except (KeyError, IndexError, TypeError, ValueError):  # not in the form that TVM writes
            continue
        if int(context[2]) < needed:
            yield call[1], int(context[2]), needed


def _read(arguments: list[str], structs: Mapping[str, str]) -> _Call:
    """Return the call with these ``arguments`` after the context; ``_too_small`` catches what it raises."""
    values = [word.strip() for word in structs[arguments[0]].split(",")]
    # The dimensions are found by their names, because their positions differ between the functions.
    source, filter_ = (_Dims(*_integers(structs[name])) for name in arguments if name in _SIZES)
    one = (1, 1)
    if len(values) == 3:  # cmsis_nn_pool_params: stride, padding, activation
        return _Call(source, filter_, _tile(structs[values[1]]), one, 0)
    *offsets, _stride, padding, dilation, _activation = values
    multiplier = int(offsets[2]) if len(offsets) == 3 else 0  # the third member of cmsis_nn_dw_conv_params
    return _Call(source, filter_, _tile(structs[padding]), _tile(structs[dilation]), multiplier)


def _tile(text: str) -> tuple[int, int]:
    width, height = _integers(text)
    return width, height


def _integers(text: str) -> Iterator[int]:
    return (int(word) for word in text.split(","))


def _convolution_s8(call: _Call, cpu: Cpu) -> int:
    is_1x1 = call.filter[1:3] == (1, 1) and call.padding == (0, 0) and call.dilation == (1, 1)
    is_row = call.source.h == 1 and call.filter.h == 1
    if is_1x1 or is_row:  # other functions, which differ between the releases
        return 0
    # MVE: four columns of int8, each a multiple of the eight int16 lanes of a vector. Others: two columns of int16.
    return 4 * -(-call.area // 8) * 8 if "mve" in cpu.features else 2 * call.area * 2


def _convolution_s16(call: _Call, cpu: Cpu) -> int:
    is_fast = call.area < _SHORT and call.dilation == (1, 1)
    # Two columns of int16.
    return 2 * call.area * 2 if is_fast and _has_dsp_without_mve(cpu) else 0


def _depthwise_s8(call: _Call, cpu: Cpu) -> int:
    if call.multiplier != 1 or call.source.n != 1 or call.dilation != (1, 1):
        return 0
    if "mve" in cpu.features:
        return 4 * _CHANNELS_MVE * call.filter.h * call.filter.w
    is_3x3 = call.filter[1:3] == (3, 3) and max(call.padding) <= 1
    return call.area * 2 if _has_dsp_without_mve(cpu) and not is_3x3 else 0


def _depthwise_s16(call: _Call, cpu: Cpu) -> int:
    if call.multiplier != 1 or call.dilation != (1, 1) or call.area >= _SHORT:
        return 0
    if "mve" in cpu.features:
        return 4 * call.area * 2 + 8
    return call.area * 2 if _has_dsp_without_mve(cpu) else 0


def _average_s8(call: _Call, cpu: Cpu) -> int:
    # A sum of 32 bits for each channel.
    return call.source.c * 4 if _has_dsp_without_mve(cpu) else 0


def _has_dsp_without_mve(cpu: Cpu) -> bool:
    """Return whether ``ARM_MATH_DSP`` is set for ``cpu``, and ``ARM_MATH_MVEI`` is not."""
    return "dsp" in cpu.features and "mve" not in cpu.features


_NEEDED: Mapping[str, Callable[[_Call, Cpu], int]] = {
    "arm_convolve_wrapper_s8": _convolution_s8,
    "arm_convolve_wrapper_s16": _convolution_s16,
    "arm_depthwise_conv_wrapper_s8": _depthwise_s8,
    "arm_depthwise_conv_wrapper_s16": _depthwise_s16,
    "arm_avgpool_s8": _average_s8,
}
"""Function -> bytes of scratch memory for a call of it."""


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

    For example, a linker takes Armv7E-M objects into an image for a Cortex-M0+ without a message, and the first DSP
    instruction then ends in a fault.
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
    # A host build compiles the C for itself, whatever CPU the target names; only objects cannot follow.
    # Native modules are portable C; objects that were made of it have been checked above.
    for target in module.targets if not module.model_id and cpu.name != "host" else ():
        reason = _why_target_does_not_fit(target.text, cpu)
        if reason:
            yield Diagnostic("module-for-another-cpu", f"module {module.name}", reason=reason, hint=hint)
    yield from scratch_problems(module, cpu)


def _called(cpu: Cpu) -> str:
    return "this machine" if cpu.name == "host" else cpu.name


def exported_cpu(library: Library) -> str:
    """Return the CPU that the targets of all modules of ``library`` name; empty if they name none, or several.

    For RISC-V they name the architecture only: the result is then the first CPU of the table that has it.
    """
    # All modules must agree: an archive with code for several CPUs has no single answer.
    texts = [target.text for module in library.modules for target in module.targets]
    words = {match[1] if (match := _CPU_OR_ARCHITECTURE.search(text)) else "" for text in texts}
    found = [cpu.name for cpu in CPUS.values() if words == {cpu.name if cpu.is_arm else cpu.architecture}]
    return found[0] if found else ""


def _exported_for(module: Module) -> str:
    """Return the CPU that TVM's target strings name, as a part of a sentence; empty if they name none."""
    # Several targets may name a CPU; the first one is enough for a message.
    found = (_MCPU.search(target.text) for target in module.targets)
    name = next((match[1] for match in found if match), None)
    return f", exported for {name}" if name else ""


def _why_target_does_not_fit(target: str, cpu: Cpu) -> str | None:
    """Check TVM's target string, such as ``c -keys=arm_cpu,cpu -mcpu=cortex-m7``; ``None`` if it fits or is silent."""
    match = _MCPU.search(target)
    other = CPUS.get(match[1]) if match else None
    if other is None:
        return None
    # An FPU in the target is not an obstacle: the C has no intrinsics for it, and GCC emulates floats without one.
    for feature, words in _INSTRUCTIONS.items():
        if feature in other.features - cpu.features and f"+no{feature}" not in target:
            return f"was exported for {other.name}, with {words} instructions, which {cpu.name} does not have"
    return None


def _why_object_does_not_fit(facts: ObjectFacts, cpu: Cpu, exported: str) -> str | None:
    # A host with an unknown name of its machine is not checked: the compiler of the build then decides.
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
    # Tag_CPU_arch 10 is Armv7 of any profile. Armv7-A code may use Arm state, which M-profile cores do not have.
    wrong_profile = profile in "AM" and profile != ("A" if cpu.architecture.endswith("-a") else "M")
    if architecture not in _RUNS[cpu.architecture] or wrong_profile:
        name = _ARCHITECTURES.get(architecture, f"architecture {architecture}")
        name += f"-{profile}" if name == "Armv7" and profile in "AMR" else ""
        return f"holds code for {name}, which {cpu.name} does not run"
    # Before the floats: code for MVE often uses an FPU as well, and the message should name the real cause.
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
