"""Refuse runs without a project file of modules that have code for other devices."""

from __future__ import annotations

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import Module, device_code


def refuse_device_code(module: Module) -> None:
    """Raise ``UnsupportedModelError`` if ``module`` has code for another device than the host, or uses its data.

    Without a project file, no compiler for the device is known.
    """
    for code in device_code(module):
        data = f"mlf_{module.name}_{code.symbol}_".encode()
        # Code of a device that no generated C refers to is not needed on the host.
        if not code.built and not any(data in file.data for file in module.codegen):
            continue
        raise UnsupportedModelError(
            "device-code-not-run",
            place=f"module {module.name}: codegen/{code.name}",
            reason=f"is for the device {code.name}, whose compiler only a project file names",
            hint="declare the device under devices of a target with a board, and run `mlfbuild verify`",
        )
