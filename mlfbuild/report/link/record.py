"""Check the link of a project's firmware once."""

from __future__ import annotations

from mlfbuild import report
from mlfbuild.build import FirmwareJob
from mlfbuild.core import InputFileError, LinkFaultsError, package_fingerprint
from mlfbuild.report.budgets.record import read_record, state_of
from mlfbuild.report.link.checks import link_faults


def check_link(job: FirmwareJob) -> None:
    """Raise ``LinkFaultsError`` if the link of the job's image has faults.

    The image is not read again if nothing changed since it was found good. Images that ``image_sizes`` cannot read are
    not checked, such as those without a map or with link-time optimisation.
    """
    if job.target.toolchain is None or not job.linker_map.is_file():
        return
    record, linked = read_record(job.build / ".mlfbuild-link.json"), job.elf.stat()
    state = state_of(linked.st_mtime_ns, linked.st_size, package_fingerprint())
    if record.state == state:
        return
    try:
        found = report.image_sizes(job)
    except InputFileError:
        return
    faults = link_faults(found, quick=True).faults
    if faults:
        raise LinkFaultsError(faults)
    record.write(state, {})
