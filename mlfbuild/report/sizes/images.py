"""Sizes of an image by owner: of a project's firmware, or of any ELF file with its linker map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError
from mlfbuild.jobs import FirmwareJob, modules_of
from mlfbuild.project import Budget, TargetMemory
from mlfbuild.report.sizes.image import Image, read_image
from mlfbuild.report.sizes.linker_map import InputSection, LinkerMap, read_map
from mlfbuild.report.sizes.memories import MemoryUse, memory_uses
from mlfbuild.report.sizes.owners import Sizes, models_in, sizes_of

if TYPE_CHECKING:
    from mlfbuild.report.operators.operator_runs import ModelRun


@dataclass(frozen=True, eq=False)
class ImageSizes:
    """An image and its sizes by owner."""

    job: FirmwareJob | None
    """The project's firmware; ``None`` for an image without a project."""
    image: Image
    sizes: Sizes
    linker_map: LinkerMap = field(repr=False)
    modules: Mapping[str, str]
    """The name of the model by the name of each of its modules."""
    runs: tuple[ModelRun, ...] = field(default=(), kw_only=True)
    """A run of each module, if runs were requested."""
    budgets: Mapping[str, Budget] = field(default_factory=dict, kw_only=True)
    """By model; the empty name has the budget of the whole image."""
    memories: tuple[TargetMemory, ...] = field(default=(), kw_only=True)
    """The memories that the target names."""

    @cached_property
    def memory_uses(self) -> tuple[MemoryUse, ...]:
        """The use of ``memories`` by the image."""
        return memory_uses(self.memories, self.image, self.linker_map, self.modules)

    @property
    def placed(self) -> Sequence[InputSection]:
        """The input sections of the image."""
        return self.linker_map.sections


def image_sizes(job: FirmwareJob) -> ImageSizes:
    """Return the sizes of the job's image, which has been built.

    ``sizes.models`` has the models of the job and those other models of the target that are linked into the image.
    Raises ``InputFileError`` if the image or its map is missing, damaged or of another linker.
    """
    if not job.linker_map.is_file():
        raise _missing_map(job.linker_map, f"add target_link_options({job.name} PRIVATE LINKER:-Map=%.map)")
    image = read_image(job.elf)
    owners = {module: model.model for model in job.target.models for module in modules_of(model)}
    linked = read_map(job.linker_map)
    found = sizes_of(image, linked, owners)
    # Models of the target that another firmware has are not listed here.
    models = tuple(owner for owner in found.models if owner.pieces or owner.name in job.models)
    budgets = {**dict(job.model_budgets), "": job.budget}
    found = replace(found, models=models)
    return ImageSizes(job, image, found, linked, owners, budgets=budgets, memories=job.target.memories)


def any_image_sizes(
    elf: Path,
    linker_map: Path | None = None,
    *,
    names: Mapping[str, str] | None = None,
    budgets: Mapping[str, Budget] | None = None,
    memories: tuple[TargetMemory, ...] = (),
) -> ImageSizes:
    """Return the sizes of the image ``elf`` of any build, whose models are those of ``models_in``.

    ``linker_map`` is ``<elf>.map`` by default. ``names`` has the name of the model of each module that is called
    otherwise; ``memories`` are those of its target. Raises ``InputFileError`` if one of the two files is missing or
    damaged, or if the map is that of another image.
    """
    path = linker_map or elf.with_name(f"{elf.name}.map")
    image = read_image(elf)
    if linker_map is None and not path.is_file():
        raise _missing_map(path, f"name the map with --map, or link with -Wl,-Map={path.name}")
    linked = read_map(path)
    modules = {module: (names or {}).get(module, module) for module in models_in(image, linked)}
    found = sizes_of(image, linked, modules)
    return ImageSizes(None, image, found, linked, modules, budgets=budgets or {}, memories=memories)


def _missing_map(path: Path, hint: str) -> InputFileError:
    return InputFileError("linker-map-missing", place=path, reason="no such linker map", hint=hint)
