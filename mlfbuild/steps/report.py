"""Reports of firmware images: sizes by owner, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mlfbuild.errors import CheckFailedError
from mlfbuild.report.sizes import Owner
from mlfbuild.report.text import kinds_of, sizes_text
from mlfbuild.steps.jobs import FirmwareJob
from mlfbuild.steps.sizes import ImageSizes, image_sizes

FORMAT = 1
"""Version of the JSON form."""


def report(jobs: Sequence[FirmwareJob]) -> list[ImageSizes]:
    """Return whose the bytes of each job's image are; they are built. Images for this machine are left out.

    Raises as ``image_sizes``, and ``CheckFailedError`` where there is nothing to report of.
    """
    found = [image_sizes(job) for job in jobs if job.target.toolchain is not None and job.elf.is_file()]
    if not found:
        raise CheckFailedError("nothing to report of: the project has no firmware for a target with a toolchain")
    return found


def report_text(found: Sequence[ImageSizes], *, verbose: bool = False) -> str:
    """Return the reports for people."""
    return "\n\n".join(_text(sizes, verbose=verbose) for sizes in found)


def _text(found: ImageSizes, *, verbose: bool) -> str:
    job, image = found.job, found.image
    head = f"{job.name} for {job.target.name}: {image.flash:,} bytes of flash, {image.ram:,} of RAM ({job.elf})"
    return f"{head}\n\n{sizes_text(found.sizes, dict(job.model_budgets), job.budget, verbose=verbose)}"


def report_json(found: Sequence[ImageSizes]) -> dict[str, Any]:
    """Return the reports as plain JSON values."""
    return {"mlfbuild_report": FORMAT, "images": [_json(sizes) for sizes in found]}


def _json(found: ImageSizes) -> dict[str, Any]:
    job, image = found.job, found.image
    return {
        "firmware": job.name,
        "target": job.target.name,
        "cpu": job.target.cpu.name,
        "sha256": image.sha256,
        "flash": image.flash,
        "ram": image.ram,
        "size": asdict(image.berkeley),
        "budget": asdict(job.budget),
        "models": [
            {**_owner(owner), "budget": asdict(dict(job.model_budgets)[owner.name])}
            if owner.name in dict(job.model_budgets)
            else _owner(owner)
            for owner in found.sizes.models
        ],
        "others": [_owner(owner) for owner in found.sizes.others],
    }


def _owner(owner: Owner) -> dict[str, Any]:
    pieces = [asdict(piece) for piece in owner.pieces]
    return {"name": owner.name, "flash": owner.flash, "ram": owner.ram, "kinds": kinds_of(owner), "pieces": pieces}
