"""Check the addresses of placed sections in a linked image, and write their constants to a binary file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlfbuild.core import CheckFailedError, UsageError, unknown, write_if_changed
from mlfbuild.jobs.model_job import FirmwareJob
from mlfbuild.jobs.tree.params_binary import PARAMS_SECTION, has_symbol, linked_section, section_names
from mlfbuild.jobs.tree.placement import LINKER_SCRIPT
from mlfbuild.library.keys import CODE, CONSTANT_CLASSES, MEMORY_CLASSES, PARAMS, Placement

__all__ = ["PARAMS_SECTION", "ParamsBinary", "check_placed", "placement_of", "write_params_binary"]

_CLASSES = (PARAMS, *CONSTANT_CLASSES, *MEMORY_CLASSES, CODE)


@dataclass(frozen=True)
class ParamsBinary:
    """A file with the bytes of one section."""

    section: str
    address: int
    """The address for which they are linked."""
    size: int


def write_params_binary(image: Path, section: str, output: Path) -> ParamsBinary:
    """Write the constants in ``section`` of the linked ``image`` to ``output``, only if its content changes.

    Raises ``InputFileError`` if the image has no bytes in that section, and ``StorageError``.
    """
    found = linked_section(image, section)
    write_if_changed(output, found.data)
    return ParamsBinary(section, found.address, len(found.data))


def placement_of(words: Sequence[str]) -> Placement:
    """Parse ``CLASS=SECTION`` words of a command line to a placement; raises ``UsageError``."""
    named: dict[str, Any] = {}
    for word in words:
        name, equals, section = word.partition("=")
        if not equals or not section:
            raise UsageError(
                "placement-without-section",
                place=f"--place {word}",
                reason="has no section",
                hint="write CLASS=SECTION, such as params=.mlf_params",
            )
        if name not in _CLASSES:
            mistake = unknown("placement class", name, _CLASSES)
            raise UsageError(mistake.code, place=f"--place {word}", reason=mistake.reason, hint=mistake.hint)
        if named.setdefault(name, section) != section:
            raise UsageError(
                "placement-given-twice",
                place=f"--place {word}",
                reason=f"{name} is already in {named[name]}",
                hint="give it once",
            )
    placement = Placement(**named)
    for name, mistake in placement.problems():
        place = f"--place {name}={named[name]}"
        raise UsageError(mistake.code, place=place, reason=mistake.reason, hint=mistake.hint)
    return placement


def check_placed(job: FirmwareJob) -> None:
    """Raise ``CheckFailedError`` if a section of the image is not in the memory region that the target assigns to it.

    The linker places sections that no script mentions without a warning. The script of the tree defines symbols for
    those that it places. An image without symbols is not checked.
    """
    if not job.target.placed:
        return
    names = section_names(job.elf)
    for section in job.target.placed:
        if section.name in names and has_symbol(job.elf, section.start) is False:
            raise CheckFailedError(
                "section-not-placed",
                place=f"{job.elf.name}: {section.name}",
                reason=f"is not in memory region {section.region}, because the link does not use {LINKER_SCRIPT}",
                hint=f"link mlf::placement to {job.name}",
            )
