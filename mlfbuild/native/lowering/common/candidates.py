"""Choose the kernel of an operator: the first of its candidates that the CPU permits and that supports the node.

A family with several kernels lists them as ``Candidate``, the fastest first; the last one is portable C and supports
every node. ``choose`` lowers one after the other until one returns a call, and keeps what it learnt in the call: the
archive's ``plan.json`` is written from that (``native/network.py``), so it cannot differ from what was done.

The order replaces an estimate: special kernels come before general ones. For integer convolutions that is also the
order of the instructions counted on QEMU (``passes/costs``). If a kernel loses for some sizes, its file refuses the
nodes beyond a limit, and the limit is the reason that ``plan.json`` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from mlfbuild.native.graph import DType
from mlfbuild.native.lowering.call import Candidate, KernelCall, KernelChoice
from mlfbuild.native.lowering.common.layer import Weighted, WeightedOperator
from mlfbuild.native.settings import CodegenSettings

_Kind = TypeVar("_Kind", bound=WeightedOperator)
_Lowering = Callable[[Weighted[_Kind]], KernelCall | str]

_NEEDS = {
    "mve": "needs Helium (MVE)",
    "dsp": "needs the DSP extension",
    "fpu": "needs a floating-point unit",
    "thumb": "is for CPUs without SIMD",
}
"""Suffix of a kernel's file -> why a CPU without the feature excludes it."""


def choose(candidates: Sequence[Candidate]) -> KernelCall:
    """Return the call of the first of ``candidates`` that serves the node, with the choice; the last must serve it.

    Raises ``UnsupportedModelError`` if the node is beyond a limit of that kernel.
    """
    refused: list[str] = []
    for candidate in candidates:
        outcome = candidate.obstacle or candidate.lower()
        if isinstance(outcome, KernelCall):
            return replace(outcome, choice=KernelChoice(tuple(candidates), tuple(refused)))
        refused.append(outcome)
    raise AssertionError(refused)


def obstacle(settings: CodegenSettings, *features: str) -> str:
    """Return why the CPU excludes a kernel that needs ``features``, keys of ``_NEEDS``; empty if it has them.

    The reason is a clause for ``plan.json``, such as "needs Helium (MVE)"; the first missing feature counts.
    """
    has = {each: settings.is_plain_thumb if each == "thumb" else settings.has(each) for each in features}
    return next((_NEEDS[each] for each, there in has.items() if not there), "")


def choose_core(
    settings: CodegenSettings,
    stem: str,
    lower: Callable[[str], KernelCall],
    limits: Mapping[str, str],
) -> KernelCall:
    """Return the call of ``lower(way)`` for the first possible suffix of ``stem``: those of ``limits``, then none.

    ``limits`` is suffix -> why its kernel does not support the node; empty if it does. For example, ``stem`` is
    ``"pool2d"`` and the suffixes are ``"_mve"`` and ``"_dsp"``.
    """
    ways = [
        Candidate(f"{stem}{way}", partial(lower, way), obstacle(settings, way[1:]) or limit)
        for way, limit in limits.items()
    ]
    return choose((*ways, Candidate(stem, partial(lower, ""))))


@dataclass(frozen=True)
class Specialised(Generic[_Kind]):
    """The lowerings of an operator with weights that need a CPU feature, by data type and feature."""

    float_mve: _Lowering[_Kind]
    int8_mve: tuple[tuple[str, _Lowering[_Kind]], ...]
    """(word before ``mve`` in the name of the kernel, lowering), the fastest first."""
    int8_dsp: _Lowering[_Kind]
    int16_mve: _Lowering[_Kind]
    int16_dsp: _Lowering[_Kind]
    int8_thumb: _Lowering[_Kind]
    float_vfp: _Lowering[_Kind] | None = None

    def candidates(self, layer: Weighted[_Kind], settings: CodegenSettings) -> Iterator[Candidate]:
        """Yield the kernels for the type of ``layer``; portable C is not among them.

        They are in the order in which ``choose`` tries them, the fastest first. The caller appends the portable kernel,
        which serves every node.
        """
        dtype = layer.output.dtype

        def candidate(kernel: str, lower: _Lowering[_Kind], problem: str) -> Candidate:
            return Candidate(f"{layer.word}_{kernel}", partial(lower, layer), problem)

        if dtype is DType.FLOAT32:
            yield candidate("float_mve", self.float_mve, obstacle(settings, "mve", "fpu"))
            if self.float_vfp is not None:
                helium = "is for CPUs without Helium" if settings.has("mve") else ""
                yield candidate("float_vfp", self.float_vfp, obstacle(settings, "fpu") or helium)
        elif dtype is DType.INT8:
            for word, lower in self.int8_mve:
                yield candidate(f"{word}mve", lower, obstacle(settings, "mve"))
            # Cores with MVE have DSP instructions as well, and their kernels are the next best.
            yield candidate("dsp", self.int8_dsp, obstacle(settings, "dsp"))
            # Not for RISC-V and others: the kernels are assembly for Thumb.
            yield candidate("thumb", self.int8_thumb, obstacle(settings, "thumb"))
        elif dtype is DType.INT16:
            yield candidate("int16_mve", self.int16_mve, obstacle(settings, "mve"))
            yield candidate("int16_dsp", self.int16_dsp, obstacle(settings, "dsp"))
