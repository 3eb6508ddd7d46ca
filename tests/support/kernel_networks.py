"""Networks that run the kernels of a core: a layer of every kind, with the outputs that are right."""

import re
from collections.abc import Callable, Mapping
from functools import cache

from mlfbuild.native.kernels import kernel_headers
from support import dsp_networks, int16_networks, lstm_networks, mve_float_networks, mve_networks
from support.board_cases import Array, Job
from support.drawing import Case
from support.native import compile_bytes
from support.oracle import tflite_micro_run

CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55")
"""The cores of the emulated boards, and the M0+, whose code the board of the M3 runs."""


_Family = Mapping[str, Callable[..., Case]]
_SEEDS: dict[bool, list[tuple[_Family, dict[str, tuple[int, ...]]]]] = {
    False: [
        (dsp_networks.KINDS, {
            "CONV_2D": (5,), "CONV_2D below the peak": (6,), "CONV_2D 1x1": (8,), "FULLY_CONNECTED": (2, 5),
            "DEPTHWISE_CONV_2D": (1,), "DEPTHWISE_CONV_2D in place": (11,), "DEPTHWISE_CONV_2D by rows": (6,),
            "POOL_2D": (3,),
        }),
        (int16_networks.KINDS, {
            "CONV_2D": (3,), "CONV_2D 1x1": (7,), "FULLY_CONNECTED": (6,), "DEPTHWISE_CONV_2D": (8, 1),
        }),
        (mve_float_networks.KINDS, {"CONV_2D": (8,), "FULLY_CONNECTED": (6,)}),
        (lstm_networks.KINDS, {"UNIDIRECTIONAL_SEQUENCE_LSTM": (1,)}),
    ],
    True: [
        (mve_networks.KINDS, {
            "CONV_2D": (0, 15, 20, 23, 33, 34, 55), "CONV_2D 1x1": (3, 25),
            "FULLY_CONNECTED": (6, 22, 24, 30, 34, 35, 38, 40, 44, 53),
            "DEPTHWISE_CONV_2D": (2, 3, 22, 26, 34, 38, 41, 47, 48, 49, 65, 90), "ADD": (38, 58), "POOL_2D": (56,),
        }),
        (mve_float_networks.KINDS, {"CONV_2D": (8,), "DEPTHWISE_CONV_2D": (11,), "FULLY_CONNECTED": (6,)}),
        (int16_networks.KINDS, {
            "CONV_2D": (3,), "CONV_2D 1x1": (7,), "FULLY_CONNECTED": (6,), "DEPTHWISE_CONV_2D": (8, 1, 2),
        }),
    ],
}  # fmt: skip
"""Seeds whose networks call every kernel in assembly, without Helium and with it; `assembly_kernels` checks that."""


@cache
def kernel_jobs(cpu: str, *, few: bool = False) -> list[Job]:
    """Return networks that call all kernels in assembly that ``cpu`` has; if ``few``, one of each kind of layer."""
    return [(compile_bytes(case.model, f"net{at}", cpu), case.inputs, expected)
            for at, (case, expected) in enumerate(_judged(cpu == "cortex-m55", few))]  # fmt: skip


@cache
def _judged(helium: bool, few: bool) -> list[tuple[Case, list[Array]]]:
    cases = [
        family[kind](seed)
        for family, kinds in _SEEDS[helium]
        for kind, seeds in kinds.items()
        for seed in (seeds[:1] if few else seeds)
    ]
    return [(case, tflite_micro_run(case.model, case.inputs)) for case in cases]


def assembly_kernels() -> set[str]:
    """Return the names of all functions that are assembly as a whole."""
    macros, names = set(), set()
    for data in kernel_headers().values():
        text = data.decode()
        names |= set(re.findall(r"^MLF_NAKED [^(]*?(\w+)\(", text, re.MULTILINE))
        macros |= set(re.findall(r"#define (\w+)\(name\b[^)]*\)[ \\]*\n *MLF_NAKED", text))
    for data in kernel_headers().values():
        for macro in macros:
            names |= set(re.findall(rf"^{macro}\((mlf_\w+)", data.decode(), re.MULTILINE))
    return names
