"""Paths of members that several modules use."""

from __future__ import annotations

from mlfbuild.library.metadata import CURRENT, FORMATS

METADATA = "metadata.json"
PARAMETERS = "parameters/"


def graph_path(module: str) -> str:
    """Return the path of the graph of ``module`` in version 7.

    For example, ``executor-config/graph/kws.graph``.
    """
    return FORMATS[CURRENT].graph_path(module)


def params_path(module: str, form: str = "params") -> str:
    """Return the path of the parameters of ``module``, which is the same in all versions.

    ``form`` is ``params``, TVM's bytes, or a form of the first RFC: ``json`` or ``bson``.
    """
    return f"{PARAMETERS}{module}.{form}"


def tir_path(device: int) -> str:
    """Return the path of an operator's TIR text for a device type, which is the same in all versions.

    For example, ``src/tir-1.txt`` for a CPU, whose device type is 1.
    """
    return f"src/tir-{device}.txt"
