"""How deep the stack of an image's models gets, and whether budgets of it hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mlfbuild.build import FirmwareJob
from mlfbuild.core import ProcessFailedError, ToolNotFoundError, holds, package_fingerprint, write_atomic
from mlfbuild.report.budgets.sizes import ImageSizes, image_sizes
from mlfbuild.report.stack.image import Stacks, stacks_of
from mlfbuild.report.stack.limits import exceeded, subjects_of
from mlfbuild.report.stack.worst import StackDepth


def stacks(found: ImageSizes) -> Stacks:
    """Return how deep the stack of each model with code in the image gets.

    Where no objdump can tell, that is the reason why nothing is known.
    """
    try:
        return _stacks(found)
    except (ToolNotFoundError, ProcessFailedError) as error:
        unknown = StackDepth(None, reason=error.message)
        return Stacks(dict.fromkeys(_models(found).values(), unknown), unknown)


def measured_stacks(found: ImageSizes) -> dict[str, int]:
    """Return the bytes of stack that runs of the image's models took, by model, where there were any."""
    taken: dict[str, int] = {}
    for run in found.runs:
        taken[run.model] = max(taken.get(run.model, 0), run.profile.stack)
    return taken


def exceeded_stacks(job: FirmwareJob) -> list[str]:
    """Return a line for each budget of stack that the job's image exceeds, or of which that cannot be told.

    The image is not read where there are none, or where nothing changed since they were found to hold. Raises
    ``ToolNotFoundError`` without objdump, ``ProcessFailedError`` where that fails, and as ``image_sizes``.
    """
    limits = job.stack_limits
    if job.target.toolchain is None or not limits:
        return []
    record, stamp = job.build / ".mlfbuild-stack.json", job.build / ".mlfbuild-stack"
    linked = job.elf.stat()
    state = json.dumps([linked.st_mtime_ns, linked.st_size, limits, package_fingerprint()], sort_keys=True).encode()
    if holds(stamp, state):
        return []
    stamp.unlink(missing_ok=True)
    found = _stacks(image_sizes(job))
    lines = list(exceeded(found, limits, _recorded(record)))
    if not lines:
        sizes = {name: depth.size for name, depth in subjects_of(found).items() if depth.size is not None}
        write_atomic(record, json.dumps(sizes, sort_keys=True).encode())
        write_atomic(stamp, state)
    return lines


def _stacks(found: ImageSizes) -> Stacks:
    return stacks_of(found.image, found.placed, _models(found))


def _models(found: ImageSizes) -> dict[str, str]:
    """Return the modules of models that have a part of the image, with what their model is called."""
    there = {owner.name for owner in found.sizes.models if owner.flash}
    return {module: model for module, model in found.modules.items() if model in there}


def _recorded(path: Path) -> Mapping[str, int]:
    """Return what the last build within its budgets took; nothing where nobody knows."""
    try:
        return {str(name): int(size) for name, size in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
