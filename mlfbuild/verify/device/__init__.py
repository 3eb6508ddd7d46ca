"""Run test firmware and shipping images on the device of a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.verify.device.connection import Connection as Connection, connected as connected
    from mlfbuild.verify.device.layout import Device as Device, device_of as device_of
    from mlfbuild.verify.device.machine import DeviceMachine as DeviceMachine, run_on_device as run_on_device
    from mlfbuild.verify.device.received_firmware import (
        shipped_subject as shipped_subject,
        verify_shipped as verify_shipped,
    )
else:
    __getattr__ = lazy_attributes(__name__)
