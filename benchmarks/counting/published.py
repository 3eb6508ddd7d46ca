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


_ST12, _ST13, _BOSCH, _PLUMERAI = "ST v1.2", "ST v1.3", "Bosch v1.2", "Plumerai v1.1"

PUBLISHED: Mapping[str, Mapping[str, Published]] = {
    "stm32l4r5": _of(
        120, kws=(43.19, _ST12), ic=(165.13, _ST12), vww=(88.93, _ST12), ad=(4.05, _PLUMERAI)
    ),
    "stm32u575": _of(
        160, kws=(28.99, _ST13), ic=(104.29, _PLUMERAI), vww=(59.27, _ST13), ad=(3.09, _BOSCH)
    ),
    "stm32h7a3": _of(
        280, kws=(11.32, _ST12), ic=(40.84, _ST12), vww=(23.80, _ST12), ad=(1.08, _BOSCH),
        ic_f32=(124.22, _BOSCH), vww_f32=(81.42, _BOSCH), ad_f32=(5.23, _BOSCH),
    ),
    "stm32g0b1": _of(
        64, kws=(474.61, _BOSCH), ic=(1522.07, _BOSCH), vww=(1414.43, _BOSCH), ad=(40.89, _BOSCH)
    ),
}  # fmt: skip
"""By part and network."""
