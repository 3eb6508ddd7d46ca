"""Reports of firmware images: sizes by owner, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mlfbuild.build import FirmwareJob
from mlfbuild.core import CheckFailedError
from mlfbuild.project import Budget, Project
from mlfbuild.report import (
    FORMAT,
    ImageSizes,
    ModelRun,
    NetworkSizes,
    Owner,
    all_operators,
    all_runs,
    any_image_sizes,
    image_sizes,
    kinds_of,
    network_json,
    networks_of,
    sizes_text,
)
from mlfbuild.report.budgets import baseline_of, difference_lines, update_baseline
from mlfbuild.report.stack import StackDepth, measured_stacks, stack_json, stack_lines, stacks
from mlfbuild.usecases.report_files import Presented

_OF_A_PIECE = ("name", "kind", "size", "flash", "ram")


def report_images(jobs: Sequence[FirmwareJob]) -> list[ImageSizes]:
    """Return whose the bytes of each job's image are; they are built. Images for this machine are left out.

    Raises as ``image_sizes``, and ``CheckFailedError`` where there is nothing to report of.
    """
    found = [image_sizes(job) for job in jobs if job.target.toolchain is not None and job.elf.is_file()]
    if not found:
        raise CheckFailedError(
            "nothing to report of: the project has no firmware for a target with a toolchain; "
            "add one, or name an image with --elf"
        )
    return found


def accept(project: Project, found: Sequence[ImageSizes]) -> tuple[Path, bool]:
    """Make the reported sizes the project's baseline; returns its path and whether its content changed.

    Raises as ``update_baseline``.
    """
    return update_baseline(project, [(sizes.job, sizes.sizes) for sizes in found if sizes.job is not None])


def report_text(found: Sequence[ImageSizes], *, verbose: bool = False, operators: bool = False) -> str:
    """Return the reports for people: with ``verbose`` all pieces of models, with ``operators`` these, too."""
    return "\n\n".join(_text(sizes, verbose=verbose, operators=operators) for sizes in found)


def _text(found: ImageSizes, *, verbose: bool, operators: bool) -> str:
    job, image = found.job, found.image
    title = job.title if job else image.path.name
    head = f"{title}: {image.flash:,} bytes of flash, {image.ram:,} of RAM ({image.path})"
    if job is None and not found.sizes.models:
        head += "\nno models: the map has no library libmlf_<model>.a"
    parts = [head, sizes_text(found.sizes, _model_budgets(found), _budget(found), verbose=verbose)]
    limits = job.stack_limits if job else {}
    parts.append("\n".join(stack_lines(stacks(found), limits, measured_stacks(found), verbose=verbose)))
    if job is not None and job.budget_file is not None:
        parts.append("\n".join(difference_lines(job, found.sizes)))
    parts += all_operators(found.sizes.models, networks_of(found)) if operators else ()
    parts += all_runs(found.runs, job.limits if job else {}, verbose=verbose)
    return "\n\n".join(parts)


def _budget(found: ImageSizes) -> Budget:
    return found.job.budget if found.job else Budget()


def _model_budgets(found: ImageSizes) -> dict[str, Budget]:
    return dict(found.job.model_budgets) if found.job else {}


def report_json(found: Sequence[ImageSizes]) -> dict[str, Any]:
    """Return the reports as plain JSON values."""
    return {"mlfbuild_report": FORMAT, "images": [_json(sizes) for sizes in found]}


def _json(found: ImageSizes) -> dict[str, Any]:
    job, image, networks, depths = found.job, found.image, networks_of(found), stacks(found)
    return {
        "firmware": job.name if job else image.path.name,
        **({"target": job.target.name, "cpu": job.target.cpu.name} if job else {}),
        "sha256": image.sha256,
        "flash": image.flash,
        "ram": image.ram,
        "size": asdict(image.berkeley),
        "budget": asdict(_budget(found)),
        **({"baseline": baseline} if (baseline := job and baseline_of(job)) else {}),
        "stack": stack_json(depths.main),
        "models": [
            _model(found, owner, networks[owner.name], depths.models.get(owner.name)) for owner in found.sizes.models
        ],
        "others": [_owner(owner) for owner in found.sizes.others],
    }


def _model(
    found: ImageSizes, owner: Owner, networks: Sequence[NetworkSizes], depth: StackDepth | None
) -> dict[str, Any]:
    budget = _model_budgets(found).get(owner.name)
    measured = measured_stacks(found).get(owner.name)
    return {
        **_owner(owner),
        **({"budget": asdict(budget)} if budget else {}),
        **({"networks": [network_json(each, _run_of(found, each)) for each in networks]} if found.job else {}),
        **({"stack": stack_json(depth, measured)} if depth else {}),
    }


def _run_of(found: ImageSizes, network: NetworkSizes) -> ModelRun | None:
    return next((run for run in found.runs if run.profile.module == network.module), None)


def _owner(owner: Owner) -> dict[str, Any]:
    pieces = [{key: getattr(piece, key) for key in _OF_A_PIECE} for piece in owner.pieces]
    return {"name": owner.name, "flash": owner.flash, "ram": owner.ram, "kinds": kinds_of(owner), "pieces": pieces}


def presented(found: Sequence[ImageSizes], *, operators: bool = False) -> Presented:
    """Return the reports, to be shown or written in any form; the text has a table of operators if ``operators``."""
    return Presented(
        lambda: report_json(found), lambda verbose: report_text(found, verbose=verbose, operators=operators)
    )


def write_report(path: Path, elf: Path, job: FirmwareJob | None, *, profile: bool = False) -> None:
    """Write the report of the image ``elf`` to ``path``, in the form that its suffix tells.

    ``job`` is what it was built for; ``None`` is any image, whose models are the libraries of its map. The text names
    ``elf`` as it is given, so that a relative one makes the same text in every checkout. The report depends on
    the project's baseline, too, where there is one. With ``profile`` it has runs of the job's models. Raises as
    ``image_sizes``, ``baseline_of`` and ``profiled``.
    """
    found = [any_image_sizes(elf) if job is None else image_sizes(replace(job, build=elf.parent))]
    if profile:
        from mlfbuild.report import profiled  # with what runs images

        found = profiled(found)
    presented(found).write(path)
