"""The estimate of Vela for the part of a network that an NPU computes, as a table in 80 columns."""

from __future__ import annotations

from mlfbuild.core.keys import duration_text, frequency_text
from mlfbuild.library import NpuFacts
from mlfbuild.report.text.columns import fitted_table, shortened

_WIDTH = 78


def npu_text(title: str, facts: NpuFacts) -> str:
    """Return the estimate of ``facts`` for the model called ``title``: a line for each operator, and the core's.

    The estimate is always named as Vela's: no NPU has measured it.
    """
    estimate = facts.estimate
    time = duration_text(round(estimate.cycles * 10**9 / estimate.clock)) if estimate.clock else ""
    at = f"{time} at {frequency_text(estimate.clock)}"
    head = (
        f"{title} on {facts.accelerator}: {estimate.cycles:,} cycles of the NPU, {at}, estimated by {facts.compiler}\n"
        f"({facts.system_config}, {facts.memory_mode}; no NPU has measured it)"
    )
    whole = sum(layer.cycles for layer in estimate.layers)
    rows = [
        (f"{each.cycles:,}", f"{100 * each.cycles / whole:.1f}%", f"{each.macs:,}", f"{each.operator} {each.name}")
        for each in estimate.layers
        if each.cycles
    ]
    table = fitted_table(rows, header=("cycles", "share", "MACs", "operator"), align="rrr") if rows else ""
    core = [shortened(f"  {line}", _WIDTH) for line in facts.on_core]
    title = "on the core, which is not estimated:" if core else ""
    return "\n".join(filter(None, [head, table, title, *core]))
