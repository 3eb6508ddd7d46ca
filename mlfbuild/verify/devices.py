"""Refuse runs without a project file of modules that have code for other devices."""

from __future__ import annotations

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import Module, device_code


def refuse_device_code(module: Module) -> None:
    """Raise ``UnsupportedModelError`` if ``module`` has code or data for another device than the host."""
    for code in device_code(module):
        raise UnsupportedModelError(
            "device-code-not-run",
            place=f"module {module.name}: codegen/{code.name}",
            reason=f"is for the device {code.name}, whose compiler only a project file names",
            hint="declare the device under devices of a target with a board, and run `mlfbuild verify`",
        )
