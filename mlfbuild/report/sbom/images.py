"""Images and board support in a bill of materials: which code is in which image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild import __version__
from mlfbuild.build import TargetJob, firmware_jobs, image_title
from mlfbuild.build.tree import is_file, reachable, read_record
from mlfbuild.core import read_bytes, sha256
from mlfbuild.library import identities
from mlfbuild.project import Project
from mlfbuild.report.sbom.bill import Bill
from mlfbuild.report.sbom.code import BUILD, Code
from mlfbuild.report.sbom.components import board_component, c_compiler
from mlfbuild.report.sbom.image import compilers_of
from mlfbuild.report.sbom.types import Component, How, Kind

_BOARD = "board/"


@dataclass(frozen=True)
class ImageFile:
    """An image that is there, or should be."""

    name: str
    target: TargetJob
    path: Path
    models: tuple[str, ...] | None
    """Those that the project file links; ``None`` where only the image tells."""


def images_of(project: Project, target: TargetJob, elfs: Sequence[Path], build: Path | None) -> list[ImageFile]:
    """Return the images of ``target``: those of the project file, each where ``elfs`` has it or its build, and others.

    One of ``elfs`` with the name of a firmware is that firmware, built by somebody else.
    """
    others = {path.stem: path for path in elfs}
    declared = [
        ImageFile(job.name, target, others.pop(job.name, job.elf), job.models)
        for job in firmware_jobs(project, [target], build)
    ]
    return [*declared, *(ImageFile(name, target, path, None) for name, path in others.items())]


def add_images(bill: Bill, images: Iterable[ImageFile], codes: Sequence[Code]) -> None:
    """Add ``images``, whether or not they are there, with those of ``codes`` that are in each.

    An image has ids of the models in it, and so tells where it was linked with others than there are now.
    """
    for image in images:
        _add_image(bill, image, codes)


def _add_image(bill: Bill, image: ImageFile, codes: Sequence[Code]) -> None:
    ref = f"firmware/{image.target.name}/{image.name}"
    title = image_title(image.name, image.target.name)
    data = None
    if image.path.is_file() or image.models is None:
        data = read_bytes(image.path, "image")
    else:
        bill.note(f"{title}: is not built, so the bill has no hash of it; {BUILD}")
    bill.add(_component(bill.project, image, ref, data))
    for name, release in compilers_of(data or b""):
        bill.relate(ref, How.MADE_BY, bill.add(c_compiler(name, release)))
    linked = _linked(bill, title, data or b"", codes)
    if image.models is None and not linked:
        bill.note(
            f"{image.path}: has no id of a model in the bill; name the image that the linker wrote, or its target"
        )
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
    """Return those of ``codes`` that the image ``data`` has an id of, and note what is of another model file."""
    linked = []
    for identity in identities(data):
        for code in codes:
            made_from = code.made_from(identity.model)
            if made_from:
                linked.append(code)
            if made_from not in {"", identity.sha256}:
                bill.note(f"{title}: has the model {identity.model} of another file than there is now; build it again")
    return linked


def add_board(bill: Bill, target: TargetJob) -> None:
    """Add the board support in the folder of ``target``, where there is some."""
    record = read_record(target.tree)
    if target.board is None or record is None:
        return
    paths = [path for path in record.files if path.startswith(_BOARD) and path.endswith((".c", ".h", ".ld"))]
    there = [path for path in paths if reachable(target.tree, path) and is_file(target.tree / path)]
    files = {path.removeprefix(_BOARD): read_bytes(target.tree / path, "file of the board support") for path in there}
    bill.add(board_component(target.board.name, files, __version__))
