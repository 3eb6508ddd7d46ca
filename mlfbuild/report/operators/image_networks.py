"""The networks of the models in an image, with the flash of each operator."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlfbuild.archive import open_archive
from mlfbuild.core import ProcessFailedError, ToolNotFoundError
from mlfbuild.executor import module_network
from mlfbuild.jobs import CompileJob, FirmwareJob, Progress
from mlfbuild.report.operators.network_sizes import NetworkSizes, network_json, network_sizes
from mlfbuild.report.operators.operator_runs import ModelRun
from mlfbuild.report.operators.runs import nothing_to_profile, watched_runs
from mlfbuild.report.sizes.images import ImageSizes
from mlfbuild.report.sizes.owners import Owner
from mlfbuild.report.stack.pointers import ImageCode, loaded_by, read_program

Calls = Mapping[int, Collection[int]]


def networks_of(found: ImageSizes) -> dict[str, tuple[NetworkSizes, ...]]:
    """Return the networks of each model in the image, with the flash of their operators, by the model's name.

    The tuple is empty if the operators are unknown: without a project, or if TVM compiled the model for its AOT
    executor. Raises ``InputFileError`` if an archive cannot be read.
    """
    jobs = {job.model: job for job in found.job.target.models} if found.job else {}
    known = [owner for owner in found.sizes.models if owner.pieces and owner.name in jobs]
    calls = _calls(found, known) if known else {}
    networks = {owner.name: tuple(_networks(jobs[owner.name], owner, calls)) for owner in known}
    return {owner.name: networks.get(owner.name, ()) for owner in found.sizes.models}


def planned_models(found: ImageSizes) -> list[dict[str, Any]]:
    """Return the models of the image if one is planned over several memories, with the JSON of their networks.

    Raises as ``networks_of``.
    """
    # The archives are read only if there is something to show.
    if found.job is None or all(len(job.request.memories) < 2 for job in found.job.target.models):
        return []
    return [{"name": name, "networks": list(map(network_json, each))} for name, each in networks_of(found).items()]


def _networks(job: CompileJob, owner: Owner, calls: Calls) -> Iterator[NetworkSizes]:
    for module in open_archive(job.archive).modules if job.archive.is_file() else ():
        network = module_network(module)
        if network is not None:
            yield network_sizes(module.name, module.executor, network, owner, calls)


def _calls(found: ImageSizes, owners: Collection[Owner]) -> Calls:
    """Return the calls of the functions of ``owners``; empty without a working objdump."""
    try:
        program = read_program(found.image.path)
    # Without objdump, what operators share is counted as the rest; the totals are the same.
    except (ToolNotFoundError, ProcessFailedError):
        program = None
    addresses = (piece.address for owner in owners for piece in owner.pieces if piece.address is not None)
    return {} if program is None else calls_of(program, addresses)


_TARGET = re.compile(r"\b([0-9a-f]+) <")
"""The target of a call or jump in objdump's output; a jump may be a tail call."""


def calls_of(program: ImageCode, addresses: Iterable[int]) -> dict[int, frozenset[int]]:
    """Return the addresses that each function at ``addresses`` calls or passes on as a pointer."""
    return {address: frozenset(_targets(program, address)) for address in addresses}


def _targets(program: ImageCode, address: int) -> Iterator[int]:
    listing = program.listing
    for function in listing.within(address, address + 1):
        targets = (int(found, 16) for found in _TARGET.findall(function.text))
        yield from (target for target in targets if target != address and listing.begins(target))
        yield from loaded_by(program, function)


def check_boards(jobs: Sequence[FirmwareJob]) -> None:
    """Raise ``CheckFailedError`` if no model of ``jobs`` has a board to run on; called before anything is built."""
    if not any(job.runs for job in jobs):
        raise nothing_to_profile([job.target.name for job in jobs])


def profiled(found: Sequence[ImageSizes], progress: Progress | None = None) -> list[ImageSizes]:
    """Return the images with one run of each model that is linked into them, on the board of their target.

    Images of targets without a board are returned unchanged. Raises as ``model_runs``.
    """
    return [replace(image, runs=tuple(_runs(image, progress or Progress()))) for image in found]


def _runs(image: ImageSizes, watch: Progress) -> Iterator[ModelRun]:
    there = {owner.name for owner in image.sizes.models if owner.pieces}
    for job in image.job.runs if image.job else ():
        if job.model.model in there:
            yield from watched_runs(job, watch)
