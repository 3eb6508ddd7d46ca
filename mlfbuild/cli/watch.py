"""``mlfbuild watch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import note_all, report_error, show
from mlfbuild.cli.output.progress import building
from mlfbuild.core import MlfError, OverBudgetError, counted, listed

if TYPE_CHECKING:
    from mlfbuild.usecases import Stamps

Sizes = dict[str, tuple[int, int]]
"""Flash and RAM of images by their titles."""


@verb("file", "target", "model", "jobs", "no_wait")
def watch(options: SharedOptions) -> None:
    """Build again whenever the project file or a model changes.

    After each build, the flash and RAM of each firmware image are printed, with the difference from the build before.
    Mistakes are reported, and the command waits for the next change. Sources of firmware are not watched. Ctrl-C ends
    the command.
    """
    from mlfbuild.usecases import wait_for_change

    options.file = options.file  # the one that is found now, even if it is missing for a moment
    sizes: Sizes = {}
    # After a mistake in the project file, the files of the last good one are still watched.
    before: Stamps = {}
    while True:
        before = _build(options, before, sizes)
        note_all(options, [f"watching {counted(len(before), 'file')}, Ctrl-C to end"])
        note_all(options, [f"changed: {listed([str(path) for path in wait_for_change(before)])}"])


def _build(options: SharedOptions, before: Stamps, sizes: Sizes) -> Stamps:
    """Build and report; return the state, before the build, of the files to watch."""
    from mlfbuild.jobs import firmware_jobs, load, target_jobs
    from mlfbuild.project import load_project
    from mlfbuild.usecases import build_project, image_size, project_inputs, stamps

    files = stamps([options.file, *before])  # of the last good project file, if this one has mistakes
    try:
        # The time of the project file is the one from before it was read: a change meanwhile starts another build.
        files = {options.file: files[options.file], **stamps(project_inputs(load_project(options.file)))}
        project = load(options.file)
        targets = target_jobs(project, options.target, options.model)
        firmware = firmware_jobs(project, targets)
        with building(options, project) as progress:
            try:
                build_project(targets, firmware, lenders=target_jobs(project), jobs=options.jobs, progress=progress)
            except OverBudgetError as error:  # the image exists
                progress.another(error)
        for job in (image for image in firmware if image.target.toolchain is not None):
            now = image_size(job)
            show(_size_text(job.title, now, sizes.get(job.title)))
            sizes[job.title] = now
    except MlfError as error:
        # Not raised: the next change may correct it.
        report_error(error, options.format)
    return files


def _size_text(title: str, now: tuple[int, int], before: tuple[int, int] | None) -> str:
    changes = ["" if before is None else f" ({new - old:+,})" for new, old in zip(now, before or now, strict=True)]
    return f"{title}: {now[0]:,} bytes of flash{changes[0]}, {now[1]:,} bytes of RAM{changes[1]}"
