"""The networks of the models in an image, with what each operator takes of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mlfbuild.archive import open_archive
from mlfbuild.build import CompileJob
from mlfbuild.core import ProcessFailedError, ToolNotFoundError
from mlfbuild.executor import module_network
from mlfbuild.report.operators.calls import calls_of
from mlfbuild.report.operators.network import NetworkSizes, network_sizes
from mlfbuild.report.sizes.images import ImageSizes
from mlfbuild.report.sizes.owners import Owner
from mlfbuild.report.stack.objdump import read_program

Calls = Mapping[int, Collection[int]]


def networks_of(found: ImageSizes) -> dict[str, tuple[NetworkSizes, ...]]:
    """Return what the operators take of each model that has a part of the image, by the model's name.

    A model has none where nobody knows its operators: where it is not built by a project, and where TVM compiled it for
    its AOT executor. Raises ``InputFileError`` where an archive cannot be read.
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
    """Return what the functions of ``owners`` call; nothing where no objdump can tell."""
    try:
        program = read_program(found.image.path)
    except (ToolNotFoundError, ProcessFailedError):
        program = None
    addresses = (piece.address for owner in owners for piece in owner.pieces if piece.address is not None)
    return {} if program is None else calls_of(program, addresses)
