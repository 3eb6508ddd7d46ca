"""Check the link of a project's firmware once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, LinkFaultsError, package_fingerprint
from mlfbuild.jobs import FirmwareJob
from mlfbuild.report.budgets.limits import image_record

if TYPE_CHECKING:
    from mlfbuild.report.sizes.images import ImageSizes


def check_link(job: FirmwareJob, read: Callable[[], ImageSizes]) -> str:
    """Raise ``LinkFaultsError`` if the link of the job's image, which ``read`` reads, has faults.

    The image is not read again if nothing changed since it was last checked. The result is empty, or a line about each
    model without code in the image, or about an image that cannot be read, such as one without a map.
    """
    if job.target.toolchain is None:
        return ""
    record = image_record(job, "link", package_fingerprint(), [asdict(memory) for memory in job.target.memories])
    if record.current:
        return ""
    from mlfbuild.report.link.checks import link_faults, models_without_code  # reads maps and ELF files

    unchecked = ""
    try:
        faults = link_faults(read(), quick=True).faults
        unchecked = "\n".join(f"mlfbuild: {job.elf.name}: {note}" for note in models_without_code(read()))
    # The build itself has succeeded: an image without a map, or of another linker, is reported and not refused.
    except InputFileError as error:
        faults, unchecked = (), f"mlfbuild: {job.elf.name}: not checked: faults of the link: {error}"
    if faults:
        raise LinkFaultsError(faults)
    record.write({})
    return unchecked
