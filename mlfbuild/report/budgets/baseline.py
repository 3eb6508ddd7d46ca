"""Baselines: what images took when somebody accepted it, and whether they have grown since.

The file is committed to git. It has one line an image, so that two branches that change different images merge, and
whoever reviews a change sees the old numbers above the new ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from mlfbuild.core import InputFileError, listed, read_bytes, shown
from mlfbuild.library import Fields, parse_json
from mlfbuild.project import size_text
from mlfbuild.report.budgets.limits import MEMORIES, Subject, Taken, subjects_of
from mlfbuild.report.sizes import Sizes

FORMAT = 1
_VERSION = "mlfbuild_sizes"
UPDATE = "`mlfbuild report --update-baseline`"
"""What writes the file."""
_MAKE_AGAIN = f"restore it from git and run {UPDATE}, or let budget-file name another file"

Baseline = Mapping[str, Taken]
"""What images took, by their titles: ``app for m4``."""


def read_baseline(path: Path) -> Baseline:
    """Return what the baseline ``path`` has.

    Raises ``InputFileError`` where it is missing, damaged, something else or of another format version.
    """
    data = read_bytes(path, "baseline")
    top = Fields(parse_json(data, str(path), _MAKE_AGAIN), str(path), advice=_MAKE_AGAIN)
    if _VERSION not in top:
        raise InputFileError(f"{path}: is no baseline of sizes, which {UPDATE} writes; {_MAKE_AGAIN}")
    version = top.integer(_VERSION)
    if version != FORMAT:
        raise InputFileError(
            f"{path}: is a baseline of format {version}, this mlfbuild reads format {FORMAT}; use the mlfbuild that "
            f"wrote it, or remove it and run {UPDATE}"
        )
    images = top.member("images")
    return {title: _taken(images.member(title), title) for title in images.names()}


def _taken(image: Fields, title: str) -> Taken:
    subjects = {name: image.member(name) for name in image.names()}
    if "" not in subjects:
        raise InputFileError(f"{image.where}: {shown(title)}: the sizes of the whole image are missing; {_MAKE_AGAIN}")
    return {name: {memory: sizes.integer(memory) for memory in MEMORIES} for name, sizes in subjects.items()}


def baseline_text(images: Baseline) -> str:
    """Return the content of the file: keys sorted, one line an image."""
    lines = [f"    {json.dumps(title)}: {json.dumps(taken, sort_keys=True)}" for title, taken in sorted(images.items())]
    entries = ",\n".join(lines)
    return f'{{\n  "{_VERSION}": {FORMAT},\n  "images": {{\n{entries}\n  }}\n}}\n'


def unknown_in(images: Baseline, known: Mapping[str, Collection[str]]) -> list[str]:
    """Return which images and models of a baseline are not among the ``known``: models by the titles of images."""
    unknown = [f"image {shown(title)}" for title in images if title not in known]
    return unknown + [
        f"model {shown(name)} of {title}"
        for title, taken in images.items()
        for name in taken
        if name and title in known and name not in known[title]
    ]


def check_known(path: Path, images: Baseline, known: Mapping[str, Collection[str]]) -> None:
    """Raise ``InputFileError`` where the baseline read from ``path`` has images or models that are not ``known``."""
    unknown = unknown_in(images, known)
    if unknown:
        raise InputFileError(
            f"{path}: has {listed(unknown)}, which the project no longer has; {UPDATE} leaves that out"
        )


def growths(sizes: Sizes, before: Taken, growth: Decimal, where: Path) -> Iterator[str]:
    """Yield a line for each model, and for the image, that takes over ``growth`` per cent more than ``before``.

    ``before`` was read from ``where``; what is not in it has nothing to grow from.
    """
    models = [Subject(owner.name, [owner]) for owner in sizes.models]
    for subject in subjects_of(sizes):
        for memory, old in before.get(subject.name, {}).items():
            more = subject.bytes_of(memory) - old
            if more * 100 > growth * old:
                parts = "" if subject.name else _parts(models, memory, more, before)
                yield _line(subject, memory, old, growth, where, parts)


def _parts(models: Sequence[Subject], memory: str, more: int, before: Taken) -> str:
    """Return which models the ``more`` bytes of the image are of, those that changed most first."""
    changes = {model.name: model.bytes_of(memory) - before.get(model.name, {}).get(memory, 0) for model in models}
    changes["all else"] = more - sum(changes.values())
    ordered = sorted(changes.items(), key=lambda item: -abs(item[1]))
    return f": {listed([f'{name} {change:+,}' for name, change in ordered if change])}"


def _line(subject: Subject, memory: str, old: int, growth: Decimal, where: Path, parts: str) -> str:
    new = subject.bytes_of(memory)
    return (
        f"{subject.title} takes {size_text(new)} of {MEMORIES[memory]}, {size_text(new - old)} more than the {old:,} "
        f"in {where.name}{_percent(new - old, old, growth)}{parts}; {growth:f} % more is allowed; most of it: "
        f"{subject.largest(memory)}; accept it with {UPDATE}"
    )


def _percent(more: int, old: int, growth: Decimal) -> str:
    """Return `` (+8.2 %)``, with as many digits as tell it from ``growth``; nothing where nothing was there before."""
    if not old:
        return ""
    percent = Decimal(100 * more) / old
    texts = (f"{percent:.{digits}f}" for digits in range(1, 28))
    return f" (+{next((text for text in texts if Decimal(text) > growth), percent)} %)"


def differences(sizes: Sizes, before: Taken | None, models: Collection[str], where: Path) -> Iterator[str]:
    """Yield lines that tell how the ``models`` and the image differ from ``before``, read from ``where``."""
    if before is None:
        yield f"not in {where.name} yet"
        return
    yield f"since {where.name}"
    for subject in subjects_of(sizes):
        if subject.name in before:
            old = before[subject.name]
            changes = [
                _change(subject, memory, old[memory]) for memory in old if subject.bytes_of(memory) != old[memory]
            ]
            yield f"  {subject.title}: {', '.join(changes) or 'the same'}"
        elif subject.name in models:
            yield f"  {subject.title}: not there yet"


def _change(subject: Subject, memory: str, old: int) -> str:
    more = subject.bytes_of(memory) - old
    share = f" ({100 * more / old:+.1f} %)" if old else ""
    return f"{more:+,} bytes of {MEMORIES[memory]}{share}"
