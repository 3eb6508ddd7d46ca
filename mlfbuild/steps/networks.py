"""The networks of the models in an image, with what each operator takes of it."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.archive import open_archive
from mlfbuild.executor.network import module_network
from mlfbuild.report.network import NetworkSizes, network_sizes
from mlfbuild.report.sizes import Owner
from mlfbuild.steps.jobs import CompileJob
from mlfbuild.steps.sizes import ImageSizes


def networks_of(found: ImageSizes) -> dict[str, tuple[NetworkSizes, ...]]:
    """Return what the operators take of each model that has a part of the image, by the model's name.

    A model has none where nobody knows its operators: where it is not built by a project, and where TVM compiled it for
    its AOT executor. Raises ``InputFileError`` where an archive cannot be read.
    """
    jobs = {job.model: job for job in found.job.target.models} if found.job else {}
    return {
        owner.name: tuple(_networks(jobs[owner.name], owner)) if owner.pieces and owner.name in jobs else ()
        for owner in found.sizes.models
    }


def _networks(job: CompileJob, owner: Owner) -> Iterator[NetworkSizes]:
    for module in open_archive(job.archive).modules if job.archive.is_file() else ():
        network = module_network(module)
        if network is not None:
            yield network_sizes(module.name, module.executor, network, owner)
