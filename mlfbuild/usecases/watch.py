"""Wait until a file of a project changes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from mlfbuild.jobs import FirmwareJob, read_files, target_jobs
from mlfbuild.project import Project

# Between two looks, and so the time for which a file must stay as it is before a build begins.
_LOOK_SECONDS = 0.25

Stamps = Mapping[Path, "tuple[int, int] | None"]
"""Time and size of files; ``None`` for a missing file."""


def project_inputs(project: Project) -> list[Path]:
    """Return every file that the archives of ``project`` are made from, and the folders of patterns.

    Models may be missing.
    """
    targets = target_jobs(project)
    read = [path for target in targets for job in target.models for path in read_files(job)]
    parts = [path for target in targets for path in target.part_files]
    return list(dict.fromkeys([*read, *parts, *project.watched]))


def stamps(paths: Iterable[Path]) -> Stamps:
    """Return the present state of ``paths``.

    Files are not opened. A state differs from an earlier one if a file was written, created or removed since, whatever
    its content is.
    """
    return {path: _stamp(path) for path in paths}


def wait_for_change(before: Stamps) -> list[Path]:
    """Return the files that differ from ``before``, as soon as there are some and they have stopped changing.

    A large file is copied in many steps, and editors replace a file in several. A file that is deleted counts as
    changed. Waits for ever if nothing changes::

        before = stamps(project_inputs(project))
        build()
        changed = wait_for_change(before)       # also finds what changed during the build
    """
    seen = before
    while True:
        now = stamps(before)
        # Two looks with the same result.
        if now != before and now == seen:
            return [path for path in before if now[path] != before[path]]
        seen = now
        time.sleep(_LOOK_SECONDS)


def image_size(job: FirmwareJob) -> tuple[int, int]:
    """Return the bytes of flash and RAM that the job's image takes.

    The image must exist. These are the sums of all of its sections, of the firmware as well as of its models. Raises
    ``InputFileError``.
    """
    from mlfbuild.report import read_image  # reads ELF files: projects without firmware do not need it

    image = read_image(job.elf)
    return image.flash, image.ram


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    # Not the content, which is read in the build: models have many megabytes, and this runs four times per second.
    return state.st_mtime_ns, state.st_size
