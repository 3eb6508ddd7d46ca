"""Run test firmware and shipping images on the device of a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.verify.device.connection import Connection, connected
    from mlfbuild.verify.device.layout import Device, device_of, linker_script
    from mlfbuild.verify.device.machine import DeviceMachine, run_on_device
    from mlfbuild.verify.device.received_firmware import shipped_subject, verify_shipped
else:
    __getattr__ = lazy_attributes(__name__)
