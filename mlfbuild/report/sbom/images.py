"""Images and board support in a bill of materials, and the code in each image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild import __version__
from mlfbuild.core import read_bytes, sha256
from mlfbuild.jobs import TargetJob, firmware_jobs, image_title
from mlfbuild.jobs.tree import is_file, reachable, read_record
from mlfbuild.library import identities
from mlfbuild.project import Project
from mlfbuild.report.sbom.bom import Component, How, Kind
from mlfbuild.report.sbom.code import BUILD, Code
from mlfbuild.report.sbom.components import board_component, c_compiler
from mlfbuild.report.sbom.image import compilers_of
from mlfbuild.report.sbom.sbom_document import Bill

_BOARD = "board/"


@dataclass(frozen=True)
class ImageFile:
    """An image, whether or not it has been built."""

    name: str
    target: TargetJob
    path: Path
    models: tuple[str, ...] | None
    """The models in the project file; ``None`` if only the image has this information."""


def images_of(project: Project, target: TargetJob, elfs: Sequence[Path], build: Path | None) -> list[ImageFile]:
    """Return the images of ``target``: those of the project file, and the others in ``elfs``.

    A file in ``elfs`` with the name of a firmware replaces the image of its build.
    """
    others = {path.stem: path for path in elfs}
    declared = [
        ImageFile(job.name, target, others.pop(job.name, job.elf), job.models)
        for job in firmware_jobs(project, [target], build)
    ]
    return [*declared, *(ImageFile(name, target, path, None) for name, path in others.items())]


def add_images(bill: Bill, images: Iterable[ImageFile], codes: Sequence[Code]) -> None:
    """Add ``images``, whether or not they exist, with the ``codes`` in each.

    The model ids in an image reveal if it was linked with other model files than the present ones.
    """
    for image in images:
        _add_image(bill, image, codes)


def _add_image(bill: Bill, image: ImageFile, codes: Sequence[Code]) -> None:
    ref = f"firmware/{image.target.name}/{image.name}"
    title = image_title(image.name, image.target.name)
    data = None
    if image.path.is_file() or image.models is None:
        # An image that the user has named must exist; one of the project file may not be built yet.
        data = read_bytes(image.path, "image")
    else:
        bill.note(f"{title}: the image is not built, so the bill has no hash of it; {BUILD}")
    bill.add(_component(bill.project, image, ref, data))
    for name, release in compilers_of(data or b""):
        bill.relate(ref, How.MADE_BY, bill.add(c_compiler(name, release)))
    linked = _linked(bill, title, data or b"", codes)
    if image.models is None and not linked:
        bill.note(f"{image.path}: the image has no id of a model in the bill; name the linked ELF file, or its target")
    for code in codes:
        if code in linked or code.job.model in (image.models or ()):
            bill.relate(ref, How.CONTAINS, code.ref)
    for model in image.models or ():
        if model not in {code.job.model for code in codes}:
            bill.relate(ref, How.DEPENDS_ON, f"model/{model}")
    if image.target.board is not None and (board := f"{_BOARD}{image.target.board.name}") in bill:
        bill.relate(ref, How.DEPENDS_ON, board)


def _component(product: Component, image: ImageFile, ref: str, data: bytes | None) -> Component:
    properties = {"target": image.target.name, "cpu": image.target.cpu.name}
    if image.target.board is not None:
        properties["board"] = image.target.board.name
    file, digest = ("", "") if data is None else (image.path.name, sha256(data))
    return Component(
        ref, Kind.FIRMWARE, image.name, product.version, supplier=product.supplier, file=file, sha256=digest,
        properties=properties,
    )  # fmt: skip


def _linked(bill: Bill, title: str, data: bytes, codes: Sequence[Code]) -> list[Code]:
    """Return the ``codes`` whose id is in the image ``data``; add a note if one is of another model file."""
    linked = []
    for identity in identities(data):
        for code in codes:
            made_from = code.made_from(identity.model)
            if made_from:
                linked.append(code)
            if made_from not in {"", identity.sha256}:
                bill.note(f"{title}: the image has the model {identity.model} of another model file; build it again")
    return linked


def add_board(bill: Bill, target: TargetJob) -> None:
    """Add the board support in the folder of ``target``, if there is any."""
    record = read_record(target.tree)
    if target.board is None or record is None:
        return
    paths = [path for path in record.files if path.startswith(_BOARD) and path.endswith((".c", ".h", ".ld"))]
    there = [path for path in paths if reachable(target.tree, path) and is_file(target.tree / path)]
    files = {path.removeprefix(_BOARD): read_bytes(target.tree / path, "file of the board support") for path in there}
    bill.add(board_component(target.board.name, files, __version__))
