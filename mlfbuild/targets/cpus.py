"""CPU table. The flags are those of the toolchain files in ``cmake/toolchains``; a test holds the two together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlfbuild.targets.types import Cpu

_HARD_FLOAT = "-mfloat-abi=hard"


def _cortex_m(model: str, architecture: str, features: set[str], *flags: str) -> Cpu:
    name = f"cortex-{model}"
    return Cpu(name, architecture, frozenset(features), (f"-mcpu={name}", "-mthumb", *flags), f"{name}.cmake")


CPUS: Mapping[str, Cpu] = MappingProxyType(
    {
        cpu.name: cpu
        for cpu in (
            _cortex_m("m0plus", "armv6s-m", set()),
            _cortex_m("m3", "armv7-m", set()),
            _cortex_m("m4", "armv7e-m", {"dsp", "fpu"}, _HARD_FLOAT, "-mfpu=fpv4-sp-d16"),
            _cortex_m("m7", "armv7e-m", {"dsp", "fpu"}, _HARD_FLOAT, "-mfpu=fpv5-d16"),
            _cortex_m("m33", "armv8-m.main", {"dsp", "fpu"}, _HARD_FLOAT, "-mfpu=fpv5-sp-d16"),
            _cortex_m("m55", "armv8.1-m.main", {"dsp", "fpu", "mve"}, _HARD_FLOAT),
            Cpu("host", "host", frozenset(), (), None),
        )
    }
)
"""Every CPU by its name in the project file."""
