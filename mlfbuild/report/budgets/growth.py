"""The project's baseline, ``budget-file``: accepted sizes of images, and growth since then.

The file is committed to git. It has one line for each image, so that branches that change different images merge, and
a review shows the old numbers above the new ones.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import (
    Diagnostic,
    InputFileError,
    UsageError,
    change_text,
    listed,
    read_bytes,
    shown,
    write_if_changed,
)
from mlfbuild.core.keys import size_text
from mlfbuild.jobs import FirmwareJob, image_title
from mlfbuild.library import Fields, parse_json
from mlfbuild.project import Project
from mlfbuild.report.budgets.limits import MEMORIES, BudgetSubject, Taken, subjects_of, taken_by

if TYPE_CHECKING:
    from mlfbuild.report.sizes.owners import Sizes

FORMAT = 1
_VERSION = "mlfbuild_sizes"
UPDATE = "`mlfbuild report --update-baseline`"
"""The command that writes the file."""
_RESTORE = f"restore the file from git and run {UPDATE}, or set budget-file to another file"

Baseline = Mapping[str, Taken]
"""Sizes by the title of an image, such as ``app for m4``."""


def read_baseline(path: Path) -> Baseline:
    """Return the baseline in the file ``path``.

    Raises ``InputFileError`` if the file is missing, damaged, not a baseline or of another format version.
    """
    return baseline_in(read_bytes(path, "baseline"), path)


def baseline_in(data: bytes, path: Path) -> Baseline:
    """Return the baseline in ``data``, the content of a file ``path``, which need not exist; as ``read_baseline``."""
    top = Fields(parse_json(data, str(path), _RESTORE), str(path), advice=_RESTORE)
    if _VERSION not in top:
        raise InputFileError("not-a-baseline", place=path, reason="the file is not a baseline of sizes", hint=_RESTORE)
    version = top.integer(_VERSION)
    if version != FORMAT:
        reason = f"the baseline has format {version}, and this version of mlfbuild reads format {FORMAT}"
        hint = f"use the version of mlfbuild that wrote it, or delete it and run {UPDATE}"
        raise InputFileError("baseline-version", place=path, reason=reason, hint=hint)
    images = top.member("images")
    return {title: _taken(images.member(title), title) for title in images.names()}


def _taken(image: Fields, title: str) -> Taken:
    subjects = {name: image.member(name) for name in image.names()}
    if "" not in subjects:
        raise InputFileError(
            "baseline-incomplete",
            place=f"{image.where}: {shown(title)}",
            reason="the sizes of the whole image are missing",
            hint=_RESTORE,
        )
    return {name: {memory: sizes.integer(memory) for memory in MEMORIES} for name, sizes in subjects.items()}


def baseline_text(images: Baseline) -> str:
    """Return the content of the file: keys sorted, one line for each image."""
    # One line for each image: two branches that change different images merge without a conflict.
    lines = [f"    {json.dumps(title)}: {json.dumps(taken, sort_keys=True)}" for title, taken in sorted(images.items())]
    entries = ",\n".join(lines)
    return f'{{\n  "{_VERSION}": {FORMAT},\n  "images": {{\n{entries}\n  }}\n}}\n'


def check_known(path: Path, images: Baseline, known: Mapping[str, Collection[str]]) -> None:
    """Raise ``InputFileError`` if the baseline read from ``path`` has images or models that are not ``known``.

    ``known`` has the names of models by the title of an image.
    """
    unknown = [f"image {shown(title)}" for title in images if title not in known]
    unknown += [
        f"model {shown(name)} of {title}"
        for title, taken in images.items()
        for name in taken
        if name and title in known and name not in known[title]
    ]
    if unknown:
        raise InputFileError(
            "baseline-outdated",
            place=path,
            reason=f"the project no longer has {listed(unknown)}",
            hint=f"run {UPDATE} to remove the entries",
        )


def growths(sizes: Sizes, before: Taken, growth: Decimal, where: Path) -> Iterator[Diagnostic]:
    """Yield each model, and the image, that takes more than ``growth`` per cent more than ``before``.

    ``before`` has accepted bytes by model and memory, and was read from ``where``; models that are not in it are
    skipped, because a new model has nothing that it could have grown from. Flash and RAM are compared apart.
    """
    models = [BudgetSubject(owner.name, [owner]) for owner in sizes.models]
    for subject in subjects_of(sizes):
        for memory, old in before.get(subject.name, {}).items():
            more = subject.bytes_of(memory) - old
            # In integers and decimals: 5 % of 96 KiB must not depend on the rounding of floats.
            if more * 100 > growth * old:
                parts = "" if subject.name else _parts(models, memory, more, before)
                yield _growth(subject, memory, old, growth, where, parts)


def _parts(models: Sequence[BudgetSubject], memory: str, more: int, before: Taken) -> str:
    """Return how many of the ``more`` bytes of the image each model accounts for, the largest change first."""
    changes = {model.name: model.bytes_of(memory) - before.get(model.name, {}).get(memory, 0) for model in models}
    changes["all else"] = more - sum(changes.values())
    ordered = sorted(changes.items(), key=lambda item: -abs(item[1]))
    return f": {listed([f'{name} {change:+,}' for name, change in ordered if change])}"


def _growth(subject: BudgetSubject, memory: str, old: int, growth: Decimal, where: Path, parts: str) -> Diagnostic:
    new = subject.bytes_of(memory)
    return Diagnostic(
        "size-grew",
        place=subject.title,
        reason=f"takes {size_text(new)} of {MEMORIES[memory]}, {size_text(new - old)} more than the {old:,} in "
        f"{where.name}{_percent(new - old, old, growth)}, which allows {growth:f} %{parts}",
        hint=f"reduce its largest parts ({subject.largest(memory)}), or accept the growth with {UPDATE}",
    )


def _percent(more: int, old: int, growth: Decimal) -> str:
    """Return `` (+8.2 %)`` with enough digits to differ from ``growth``; empty if ``old`` is 0."""
    if not old:
        return ""
    percent = Decimal(100 * more) / old
    # "+5.0 %, which allows 5 %" would look like a defect.
    texts = (f"{percent:.{digits}f}" for digits in range(1, 28))
    return f" (+{next((text for text in texts if Decimal(text) > growth), percent)} %)"


def differences(sizes: Sizes, before: Taken | None, models: Collection[str], where: Path) -> Iterator[str]:
    """Yield lines with the differences of the ``models`` and the image from ``before``, read from ``where``."""
    if before is None:
        yield f"not in {where.name} yet"
        return
    yield f"since {where.name}"
    for subject in subjects_of(sizes):
        if subject.name in before:
            old = before[subject.name]
            changes = [
                change_text(was, subject.bytes_of(memory), f" bytes of {MEMORIES[memory]}")
                for memory, was in old.items()
                if subject.bytes_of(memory) != was
            ]
            yield f"  {subject.title}: {', '.join(changes) or 'the same'}"
        elif subject.name in models:
            yield f"  {subject.title}: not in it yet"


def accepted_sizes(job: FirmwareJob) -> Taken:
    """Return the accepted sizes of the job's image; empty if there is no baseline, or none for this image.

    Raises ``UsageError`` if the file is missing, and ``InputFileError`` if it is damaged, of another version, or has a
    model that the image no longer has.
    """
    if job.budget_file is None:
        return {}
    images = _read(job.budget_file.path)
    own = {title: taken for title, taken in images.items() if title == job.title}
    check_known(job.budget_file.path, own, {job.title: job.models})
    return own.get(job.title, {})


def check_baseline(project: Project, *, update: bool) -> None:
    """Raise an error if the project's baseline cannot be used or updated; called before anything is built.

    Raises ``UsageError`` if the file is missing and not to be updated, or if it is to be updated and the project names
    none. Raises ``InputFileError`` if the file is damaged or of another version, or if it is not to be updated and has
    images or models that the project no longer has.
    """
    if update:
        _read_if_there(_path_to_update(project))
    elif project.baseline is not None:
        path = project.baseline.path
        check_known(path, _read(path), _images_of(project))


def _path_to_update(project: Project) -> Path:
    if project.baseline is None:
        reason = "the project has no budget-file to update"
        hint = "add one, such as `budget-file: sizes.json`"
        raise UsageError("no-baseline-to-update", place=project.path, reason=reason, hint=hint)
    return project.baseline.path


def unchecked(jobs: Sequence[FirmwareJob]) -> list[FirmwareJob]:
    """Return the jobs without their baseline, so that growth is accepted."""
    return [replace(job, budget_file=None) for job in jobs]


def update_baseline(project: Project, images: Sequence[tuple[FirmwareJob, Sizes]]) -> tuple[Path, bool]:
    """Write the sizes of ``images`` to the project's baseline; return its path and whether its content changed.

    Entries of other images of the project are kept. Raises as ``check_baseline``, and ``StorageError``.
    """
    path, known = _path_to_update(project), _images_of(project)
    # An update of one firmware must not accept the growth of another that was not built.
    old = _read_if_there(path) or {}
    kept = {title: _only(taken, known[title]) for title, taken in old.items() if title in known}
    new = {job.title: _only(taken_by(sizes), job.models) for job, sizes in images}
    return path, write_if_changed(path, baseline_text({**kept, **new}).encode())


def baseline_of(job: FirmwareJob) -> Taken | None:
    """Return the accepted sizes of the job's image, ``None`` if there are none; raises ``InputFileError``.

    Sizes are bytes by model and memory, and the empty name is the whole image. A missing file is not an error here.
    """
    return None if job.budget_file is None else (_read_if_there(job.budget_file.path) or {}).get(job.title)


def difference_lines(job: FirmwareJob, sizes: Sizes) -> Iterator[str]:
    """Yield lines that compare an image with the project's baseline, if it has one; raises ``InputFileError``.

    The first line names the file, the others a model or the image each, with the changes of flash and RAM. For the
    text of a report.
    """
    if job.budget_file is not None:
        yield from differences(sizes, baseline_of(job), job.models, job.budget_file.path)


def _images_of(project: Project) -> dict[str, list[str]]:
    """Return the names of the models of each image of the project, by the title of the image."""
    return {
        image_title(spec.name, target): [model.name for model in project.models_on(target, spec.name)]
        for spec in project.firmware.values()
        for target in spec.targets
    }


def _only(taken: Taken, models: Collection[str]) -> Taken:
    return {name: sizes for name, sizes in taken.items() if not name or name in models}


def _read(path: Path) -> Baseline:
    found = _read_if_there(path)
    if found is None:
        reason = "no such file, which budget-file names"
        raise UsageError("baseline-missing", place=path, reason=reason, hint=f"create it with {UPDATE} and commit it")
    return found


def _read_if_there(path: Path) -> Baseline | None:
    with contextlib.suppress(OSError):  # without permission for the folder; reading the file gives the better message
        if not path.exists():
            return None
    return read_baseline(path)
