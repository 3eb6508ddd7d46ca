"""The fastest published MLPerf Tiny latencies of Cortex-M boards, closed division.

Source: the public results repositories mlcommons/tiny_results_v0.5 to v1.3, median throughput, inverted. Submitters
measured these latencies on silicon, with their own code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A latency that a submitter measured."""

    milliseconds: float
    clock: int
    """Clock of the core in MHz."""
    submitter: str

    @property
    def cycles(self) -> float:
        """Million cycles."""
        return self.milliseconds * self.clock / 1000


def _of(clock: int, **networks: tuple[float, str]) -> Mapping[str, Published]:
    return {network: Published(latency, clock, who) for network, (latency, who) in networks.items()}


_NUVOTON, _RENESAS = "Nuvoton v1.1", "Renesas v1.2"
_ST12, _ST13, _BOSCH, _PLUMERAI = "ST v1.2", "ST v1.3", "Bosch v1.2", "Plumerai v1.1"

PUBLISHED: Mapping[str, Mapping[str, Published]] = {
    "stm32l4r5": _of(
        120, kws=(47.78, _PLUMERAI), ic=(167.76, _PLUMERAI), vww=(98.76, _PLUMERAI), ad=(4.05, _PLUMERAI)
    ),
    "stm32l4r5-single-bank": _of(
        120, kws=(43.19, _ST12), ic=(165.13, _ST12), vww=(88.93, _ST12), ad=(4.05, _PLUMERAI)
    ),
    "psoc62": _of(
        150, kws=(54.06, _PLUMERAI), ic=(162.2, _BOSCH), vww=(108.30, _PLUMERAI), ad=(4.46, _PLUMERAI)
    ),
    "numaker-m467": _of(
        200, kws=(46.19, _NUVOTON), ic=(171.44, _NUVOTON), vww=(98.73, _NUVOTON), ad=(4.89, _NUVOTON)
    ),
    "stm32u575": _of(
        160, kws=(28.99, _ST13), ic=(104.29, _PLUMERAI), vww=(59.27, _ST13), ad=(3.09, _BOSCH)
    ),
    "stm32u385": _of(
        96, kws=(48.30, _ST13), ic=(182.45, _ST13), vww=(98.74, _ST13), ad=(5.410, _ST13)
    ),
    "stm32h7a3": _of(
        280, kws=(11.32, _ST12), ic=(40.84, _ST12), vww=(23.80, _ST12), ad=(1.08, _BOSCH),
        ic_f32=(124.22, _BOSCH), vww_f32=(81.42, _BOSCH), ad_f32=(5.23, _BOSCH),
    ),
    "stm32f746": _of(
        216, kws=(17.75, _PLUMERAI), ic=(61.57, "Bosch v1.1"), vww=(34.08, _PLUMERAI), ad=(1.425, _BOSCH)
    ),
    "ra8d1": _of(
        480, kws=(3.465, _RENESAS), ic=(8.478, _RENESAS), vww=(13.393, _RENESAS), ad=(0.5307, _RENESAS)
    ),
    "stm32g0b1": _of(
        64, kws=(474.61, _BOSCH), ic=(1522.07, _BOSCH), vww=(1414.43, _BOSCH), ad=(40.89, _BOSCH)
    ),
}  # fmt: skip
"""By part and network.

Bank mode of the STM32L4R5, from `closed/*/systems/*.json`: ST v1.1 to v1.3 one bank; Krai v1.1 and ST v1.0 two. Bosch's
images fit two (`benchmarks/silicon.py`). Plumerai does not state it, so its latencies are in both rows.
"""
