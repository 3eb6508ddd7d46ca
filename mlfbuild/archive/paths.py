"""Paths inside an archive that others than the layout know."""

from __future__ import annotations

from mlfbuild.library.metadata import CURRENT, FORMATS

METADATA = "metadata.json"


def graph_path(module: str) -> str:
    """Return where the graph of ``module`` lies in version 7."""
    return FORMATS[CURRENT].graph_path(module)


def params_path(module: str) -> str:
    """Return where the parameters of ``module`` lie, in every version."""
    return f"parameters/{module}.params"


def tir_path(device: int) -> str:
    """Return where the text of an operator's TIR for a device type lies, in every version that has operators."""
    return f"src/tir-{device}.txt"
