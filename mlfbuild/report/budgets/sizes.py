"""Whose the bytes of a firmware image are, and whether budgets of them hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.build import FirmwareJob, modules_of
from mlfbuild.core import InputFileError, holds, write_atomic
from mlfbuild.project import Budget
from mlfbuild.report.budgets.growth import accepted_sizes, growth_of
from mlfbuild.report.budgets.limits import Taken, excesses, taken_by
from mlfbuild.report.image import Image, read_image
from mlfbuild.report.linker_map import InputSection, read_map
from mlfbuild.report.sizes import Sizes, models_in, sizes_of

if TYPE_CHECKING:
    from mlfbuild.report.instructions import ModelRun

_ADVICE = "let the linker write it: target_link_options({} PRIVATE LINKER:-Map=%.map)"


@dataclass(frozen=True)
class ImageSizes:
    """An image and whose its bytes are."""

    job: FirmwareJob | None
    """The project's firmware that it is; ``None`` where nothing but the file is known."""
    image: Image
    sizes: Sizes
    placed: Sequence[InputSection] = field(repr=False)
    """Its map."""
    modules: Mapping[str, str]
    """What a module's model is called, by the name of the module."""
    runs: tuple[ModelRun, ...] = field(default=(), kw_only=True)
    """One of each module of its models, where that was asked for."""


def image_sizes(job: FirmwareJob) -> ImageSizes:
    """Return whose the bytes of the job's image are; it is built. Models are its own, and others that it has part of.

    Raises ``InputFileError`` where the image or its map is missing, damaged or of another linker.
    """
    if not job.linker_map.is_file():
        raise InputFileError(f"{job.linker_map}: no such linker map; {_ADVICE.format(job.name)}")
    image = read_image(job.elf)
    owners = {module: model.model for model in job.target.models for module in modules_of(model)}
    placed = read_map(job.linker_map)
    found = sizes_of(image, placed, owners, job.linker_map)
    models = tuple(owner for owner in found.models if owner.pieces or owner.name in job.models)
    return ImageSizes(job, image, replace(found, models=models), placed, owners)


def any_image_sizes(elf: Path, linker_map: Path | None = None) -> ImageSizes:
    """Return whose the bytes of the image ``elf`` are, of whatever build; its models are the libraries of the map.

    ``linker_map`` is ``<elf>.map`` by default. Raises ``InputFileError`` where one of the two is missing or damaged, or
    they do not belong together.
    """
    path = linker_map or elf.with_name(f"{elf.name}.map")
    image = read_image(elf)
    if linker_map is None and not path.is_file():
        advice = f"name the one that the linker wrote, or let it write this one: -Wl,-Map={path.name}"
        raise InputFileError(f"{path}: no such linker map; {advice}")
    placed = read_map(path)
    modules = models_in(placed)
    return ImageSizes(None, image, sizes_of(image, placed, modules, path), placed, modules)


def exceeded_sizes(job: FirmwareJob) -> list[str]:
    """Return a line for each size of the job's image, or of a model in it, that its budget or baseline does not allow.

    A line has the numbers, the difference to the last build within its budgets or to the baseline, and what takes most.
    The image is not read where there are neither, or where nothing changed since they were found to hold. Raises
    as ``accepted_sizes`` where the baseline cannot be used.
    """
    limits = [limit for budget in _budgets(job).values() for limit in (budget.flash, budget.ram)]
    if job.target.toolchain is None or not any(limit is not None for limit in [*limits, job.budget_file]):
        return []
    record, stamp = job.build / ".mlfbuild-sizes.json", job.build / ".mlfbuild-budgets"
    accepted = accepted_sizes(job)
    state = _state(job, accepted)
    if holds(stamp, state):
        return []
    stamp.unlink(missing_ok=True)
    found = image_sizes(job)
    lines = list(excesses(found.sizes, dict(job.model_budgets), job.budget, _recorded(record)))
    lines += growth_of(job, found.sizes, accepted)
    if not lines:
        write_atomic(record, json.dumps(taken_by(found.sizes), sort_keys=True).encode())
        write_atomic(stamp, state)
    return lines


def _budgets(job: FirmwareJob) -> Mapping[str, Budget]:
    """Return the budgets of the job's models, by name, and, by the empty name, that of its image."""
    return {**dict(job.model_budgets), "": job.budget}


def _state(job: FirmwareJob, accepted: Taken) -> bytes:
    linked = job.elf.stat()
    budgets = {name: asdict(budget) for name, budget in _budgets(job).items()}
    growth = str(job.budget_file.growth) if job.budget_file else None
    return json.dumps([linked.st_mtime_ns, linked.st_size, budgets, accepted, growth], sort_keys=True).encode()


def _recorded(path: Path) -> Taken:
    """Return what the last build within its budgets took; nothing where nobody knows."""
    try:
        found = json.loads(path.read_bytes())
        return {str(name): {str(key): int(size) for key, size in taken.items()} for name, taken in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
