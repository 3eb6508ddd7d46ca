"""Records of links: which files and commands an image was linked from, as Ninja knows them.

CMake wires sources, headers, libraries and linker scripts that no project file lists, so the inputs of an image are
asked from Ninja after a link: its files (``-t inputs``), the headers that compilers reported (``-t deps``) and its
commands (``-t commands``). Ninja decides what to build from times and its own log; the record decides nothing. It lets
``mlfbuild why`` say by content what a link was caused by, and what the next one will be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mlfbuild.core import ProcessFailedError, find_tool, run, sha256
from mlfbuild.jobs.actions import LINKED, Action, ActionRecord, hash_of, record_action, recorded_action
from mlfbuild.jobs.model_job import FirmwareJob

COMMANDS = "commands of the build"
"""The input that stands for compilers and flags."""
_PROGRAM = re.compile(r"(?:^|&& )(/\S+)")
"""The program of a command that CMake wrote."""


def link_record(job: FirmwareJob) -> ActionRecord | None:
    """Return the record of the image's last link; ``None`` if mlfbuild did not link it."""
    return recorded_action(_record_file(job))


def record_link(job: FirmwareJob, seconds: float) -> None:
    """Record what the job's image, which has just been linked in ``seconds``, was made from.

    Without a record if Ninja is older than 1.11, which cannot list inputs. Raises ``StorageError``.
    """
    try:
        commands = ninja(job, "commands", _image(job))
        files = sorted({*_inputs(job), *_headers(job), *map(Path, _PROGRAM.findall(commands))})
    except ProcessFailedError:
        _record_file(job).unlink(missing_ok=True)  # the last one describes another link
        return
    commands = commands.replace(str(job.root.resolve()), "")  # checkouts and workers have the same ones
    action = Action(
        "link", {**{_name(job, path): hash_of(path) for path in files}, COMMANDS: sha256(commands.encode())}
    )
    record_action(_record_file(job), action, job.elf, LINKED, seconds)


def record_farm_link(job: FirmwareJob, inputs: Mapping[str, str], seconds: float, worker: str) -> ActionRecord:
    """Record that a ``worker`` linked the job's image from ``inputs``, which are as those of ``record_link``."""
    return record_action(_record_file(job), Action("link", inputs), job.elf, LINKED, seconds, worker)


def inputs_now(job: FirmwareJob, record: ActionRecord) -> dict[str, str]:
    """Return the present digests of the files in ``record``; those of missing files are empty.

    The commands count as unchanged: CMake writes them when the next build configures.
    """
    return {
        name: digest if name == COMMANDS else hash_of(job.root.resolve() / name)
        for name, digest in record.inputs.items()
    }


def has_record(job: FirmwareJob) -> bool:
    """Return whether a link of the image was recorded."""
    return _record_file(job).is_file()


def _record_file(job: FirmwareJob) -> Path:
    return job.build / ".mlfbuild-made.json"


def _image(job: FirmwareJob) -> str:
    return job.elf.relative_to(job.build).as_posix()


def ninja(job: FirmwareJob, tool: str, *words: str) -> str:
    """Return what a ``tool`` of Ninja prints about the job's build; raises ``ProcessFailedError``."""
    return run([find_tool("ninja"), "-C", job.build, "-t", tool, *words])


def _inputs(job: FirmwareJob) -> Iterator[Path]:
    """Yield the files that the image is made from, except those that its own build makes."""
    for line in ninja(job, "inputs", _image(job)).splitlines():
        path = job.build / line
        if not path.is_relative_to(job.build.resolve()) and not path.is_relative_to(job.build) and path.is_file():
            yield path


def _headers(job: FirmwareJob) -> Iterator[Path]:
    for line in ninja(job, "deps").splitlines():
        if line.startswith("    "):
            yield job.build / line.strip()


def _name(job: FirmwareJob, path: Path) -> str:
    """Return the path from the project's folder, so that checkouts have the same names; absolute outside of it."""
    root = job.root.resolve()
    real = path.resolve()
    return real.relative_to(root).as_posix() if real.is_relative_to(root) else real.as_posix()
