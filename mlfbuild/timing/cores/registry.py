"""The table of cores."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlfbuild.core import UsageError, listed
from mlfbuild.targets import CPUS, Mcu
from mlfbuild.timing.cores.m0plus import CORTEX_M0PLUS
from mlfbuild.timing.cores.m7 import CORTEX_M7
from mlfbuild.timing.cores.m33 import CORTEX_M33
from mlfbuild.timing.cores.m55 import CORTEX_M55
from mlfbuild.timing.cores.m85 import CORTEX_M85
from mlfbuild.timing.cores.three_stages import CORTEX_M3, CORTEX_M4
from mlfbuild.timing.costs import CoreTiming

CORE_TIMINGS: Mapping[str, CoreTiming] = MappingProxyType(
    {
        timing.core: timing
        for timing in (CORTEX_M0PLUS, CORTEX_M3, CORTEX_M4, CORTEX_M7, CORTEX_M33, CORTEX_M55, CORTEX_M85)
    }
)
"""Every modelled core by its name in the table of CPUs, without features."""


def core_timing(core: str) -> CoreTiming:
    """Return the timing of ``core``; raises ``UsageError`` if it is not modelled.

    ``core`` is a name of the table of CPUs without features, such as ``cortex-m4``.
    """
    if core not in CORE_TIMINGS:
        raise UsageError(
            "core-not-modelled",
            place=core,
            reason="mlfbuild has no cycle model of this core",
            hint=f"choose a part with one of {listed(list(CORE_TIMINGS))}",
        )
    return CORE_TIMINGS[core]


def modelled_error(mcu: Mcu) -> int:
    """Return the stated error of cycles on ``mcu`` in per cent: that of the core and what its memories add.

    The two are added, because errors of the pipeline and of the memories may have the same sign. Raises ``UsageError``
    as ``core_timing``.
    """
    return core_timing(CPUS[mcu.cpu].core).error + mcu.error
