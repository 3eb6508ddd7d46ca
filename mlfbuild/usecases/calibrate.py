"""Find the wait states of a target's microcontroller with measurements on its device."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from mlfbuild import verify
from mlfbuild.core import UsageError
from mlfbuild.jobs import BUILD_FOLDER, Progress, Task, target_jobs, watched
from mlfbuild.project import CYCLE_COUNTERS, Project
from mlfbuild.targets import emulated_board


@dataclass(frozen=True)
class CalibratedTarget:
    """The memories of a target that explain the measurement on its device."""

    target: str
    mcu: str
    device: str
    counter: str
    found: verify.Calibration
    settings: str = ""
    """The settings of the flash that the device's registers have; empty if they are unknown."""

    def snippet(self) -> str:
        """Return the keys for the project file as lines of YAML, with their origin and what they do not contain."""
        about = f"Measured on {self.device} ({CYCLE_COUNTERS[self.counter]}) at the clock that test firmware sets up."
        lines = [f"# {about}", f"# Each kernel is within {self.found.residual:.1f} % of the model."]
        lines += [f"# Registers of the device: {self.settings}."] if self.settings else []
        lines += [f"# Not identifiable, as in the table: {name}." for name in self.found.unknown]
        lines += ["targets:", f"  {self.target}:", "    timing:", "      memories:"]
        for memory, keys in self.found.changed().items():
            words = ", ".join(f"{key}: {_yaml(value)}" for key, value in keys.items())
            lines.append(f"        {memory}: {{{words}}}")
        return "\n".join(lines)


def _yaml(value: bool | int | str) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def calibrate_target(project: Project, targets: Sequence[str], progress: Progress | None = None) -> CalibratedTarget:
    """Measure small kernels on the device of the only selected target, and fit its microcontroller to them.

    Raises ``UsageError`` if the target has no runner or no microcontroller, or if several are selected; and as
    ``verify.measured_kernels`` and ``verify.solve``.
    """
    chosen = target_jobs(project, targets)
    if len(chosen) != 1:
        raise UsageError(
            "several-targets",
            place="--target",
            reason="calibration measures one device",
            hint="choose a target with --target",
        )
    (target,) = chosen
    place = f"{project.path}: targets.{target.name}"
    board = emulated_board(target.cpu)
    if target.runner is None or target.mcu is None or board is None:
        missing = "runner" if target.runner is None else "mcu"
        raise UsageError(
            "target-not-calibrated",
            place=place,
            reason=f"calibration needs a device and the description of a microcontroller, but it has no {missing}",
            hint=f"add {missing} to the target" if missing == "runner" else "add mcu, or timing with memories",
        )
    device = verify.device_of(target, f"{place}.runner")
    counter = verify.chosen_counter(target.cpu, device.keys.counter, device.place)
    folder = project.root / BUILD_FOLDER / "calibrate" / target.name
    watch, task = progress or Progress(), Task("calibrate", target.name, target.name)
    watch.expect(1)
    with watched(watch, task):
        on_progress = functools.partial(watch.step, task)
        with verify.connected(device) as connection:
            measured = verify.measured_kernels(connection, target.toolchain, folder / "device", counter, on_progress)
            name = connection.name
            registers = verify.control_registers(connection.runner, target.mcu)
        # After the device is released: the emulator needs nothing of it.
        modelled = verify.modelled_kernels(board, target.toolchain, folder / "model", on_progress)
        as_set = target.mcu.as_set(registers.__getitem__) if registers else target.mcu
        found = verify.solve(measured, modelled, as_set)
    watch.finish(task, "calibrated")
    return CalibratedTarget(target.name, target.mcu.name, name, counter, found, as_set.settings() if registers else "")
