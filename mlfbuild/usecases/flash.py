"""Write an image of the project to the device of its target."""

from __future__ import annotations

import time

from mlfbuild import verify
from mlfbuild.jobs import Progress, Task, watched
from mlfbuild.usecases.run_firmware import ChosenImage


def flash_firmware(image: ChosenImage, progress: Progress | None = None) -> str:
    """Write ``image`` to its device, compare what the device holds then, let it run, and return the device's name.

    Raises as ``verify.flash_image``.
    """
    watch = progress or Progress()
    watch.expect(1)
    task = Task("flash", image.elf.name, image.target.name)
    size = 0

    def on_progress(doing: str, done: int, of: int) -> None:
        nonlocal size
        size = of
        watch.step(task, doing, done, of)

    started = time.monotonic()
    with watched(watch, task):
        device = verify.flash_image(image.elf, image.target, on_progress)
    # A write may take less time than the clock can show.
    rate = size / max(time.monotonic() - started, 1e-3) / 1000
    watch.finish(task, f"{size:,} bytes written to {device}, {rate:,.0f} kB/s")
    return device
