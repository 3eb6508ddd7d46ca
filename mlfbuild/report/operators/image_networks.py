"""The networks of the models in an image, with the flash of each operator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mlfbuild.archive import open_archive
from mlfbuild.core import ProcessFailedError, ToolNotFoundError
from mlfbuild.executor import module_network
from mlfbuild.jobs import CompileJob
from mlfbuild.report.operators.calls import calls_of
from mlfbuild.report.operators.network_sizes import NetworkSizes, network_sizes
from mlfbuild.report.sizes.images import ImageSizes
from mlfbuild.report.sizes.owners import Owner
from mlfbuild.report.stack.objdump import read_program

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


def _networks(job: CompileJob, owner: Owner, calls: Calls) -> Iterator[NetworkSizes]:
    for module in open_archive(job.archive).modules if job.archive.is_file() else ():
        network = module_network(module)
        if network is not None:
            yield network_sizes(module.name, module.executor, network, owner, calls)


def _calls(found: ImageSizes, owners: Collection[Owner]) -> Calls:
    """Return the calls of the functions of ``owners``; empty without a working objdump."""
    try:
        program = read_program(found.image.path)
    except (ToolNotFoundError, ProcessFailedError):
        program = None
    addresses = (piece.address for owner in owners for piece in owner.pieces if piece.address is not None)
    return {} if program is None else calls_of(program, addresses)
