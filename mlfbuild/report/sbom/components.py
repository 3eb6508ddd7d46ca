"""Create the components of a bill of materials: images and board support, the code in each image, and its compilers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlfbuild import __version__
from mlfbuild.core import printable, read_bytes, sha256
from mlfbuild.jobs import TargetJob, firmware_jobs, image_title
from mlfbuild.jobs.tree import is_file, reachable, read_record
from mlfbuild.library import ParameterBlob, Requirement, ResolvedLibrary, identities, known_library
from mlfbuild.native import kernel_headers, model_facts
from mlfbuild.project import ModelSpec, Project, Provider
from mlfbuild.report.sbom import origins
from mlfbuild.report.sbom.bom import BomFile, Component, How, Kind
from mlfbuild.report.sbom.licenses import OWN, of_generated_code
from mlfbuild.report.sbom.sbom_document import BUILD, Bill, Code, bom_file

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


# Entries that are read: an image has one per compiler, and an untrusted one may have millions.
_COMMENTS = 20
_COMPILER = re.compile(r"(GCC): \([^()]*\) (\d+(?:\.\d+)*)|\b(clang|LLD) (?:version )?(\d+(?:\.\d+)*)", re.IGNORECASE)


def compilers_of(data: bytes) -> list[tuple[str, str]]:
    """Return (name, version) of the compilers and linkers in section ``.comment`` of the ELF image ``data``, sorted.

    Empty for a damaged file, or without the section. GCC: ``GCC: (15:12.2.rel1-1) 12.2.1 20221205``; clang: ``Debian
    clang version 16.0.6``; its linker: ``Linker: Debian LLD 16.0.6``.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        section = ELFFile(io.BytesIO(data)).get_section_by_name(".comment")
        comment = section.data() if section is not None else b""
    except (ELFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, AssertionError):
        return []
    found = (_COMPILER.search(text.decode(errors="replace")) for text in comment.split(b"\0")[:_COMMENTS])
    return sorted({((match[1] or match[3]).lower(), match[2] or match[4]) for match in found if match})


_RELEASE = re.compile(r"\d+(\.\d+)+(\.post\d+|rc\d+)?")
_TVM = "Apache-2.0"
"""The licence of TVM and of its runtime."""


def mlfbuild_tool(version: str) -> Component:
    """Return mlfbuild, the tool that generated the code."""
    return Component("tool/mlfbuild", Kind.TOOL, "mlfbuild", version, origins.pypi("mlfbuild", version), OWN)


def tvm_tool(version: str) -> Component:
    """Return the TVM that exported an archive; the version of its runtime identifies it."""
    # A package URL of a development version would lead nowhere.
    purl = origins.pypi("apache-tvm", version) if _RELEASE.fullmatch(version) else ""
    return Component(f"tool/tvm-{version}", Kind.TOOL, "TVM", version, purl, _TVM)


def vela_tool(compiler: str) -> Component:
    """Return the Vela that compiled the part of an NPU; ``compiler`` is its name and version: ``vela 5.2.0``."""
    version = compiler.rpartition(" ")[2]
    return Component(f"tool/vela-{version}", Kind.TOOL, "vela", version, origins.pypi("ethos-u-vela", version))


def c_compiler(name: str, version: str) -> Component:
    """Return a C compiler or linker that is recorded in an image."""
    return Component(f"tool/{name}-{version}", Kind.TOOL, name, version, origins.generic(name, version))


def model_component(spec: ModelSpec, content: bytes, weights: Mapping[str, str] | None = None) -> Component:
    """Return the model file of ``spec``; the project file takes precedence over metadata in the model file.

    ``weights`` are the SHA-256 of further files by name.
    """
    facts = model_facts(content, spec.source)
    digest = sha256(content)
    return Component(
        ref=f"model/{spec.name}",
        kind=Kind.MODEL,
        name=spec.name,
        version=facts.version,
        purl=origins.generic(spec.name, facts.version, checksum=f"sha256:{digest}"),
        license=spec.license or facts.license,
        description=facts.description,
        author=facts.author,
        file=spec.source.name,
        sha256=digest,
        properties={f"sha256 of {name}": value for name, value in (weights or {}).items()},
    )


def archive_component(target: str, model: str, path: Path, digest: str) -> Component:
    """Return the Model Library Format archive of a model for a target."""
    return Component(f"archive/{target}/{model}", Kind.ARCHIVE, path.name, file=path.name, sha256=digest,
                     properties={"target": target})  # fmt: skip


def parameters_component(target: str, model: Component, blob: ParameterBlob) -> Component:
    """Return the trained values of ``model`` as the image of ``target`` has them, with the licence of the model."""
    properties = {"target": target, "structure": blob.structure, "version": str(blob.version)}
    return Component(f"parameters/{target}/{model.name}", Kind.PARAMETERS, f"{model.name}.bin", license=model.license,
                     sha256=sha256(blob.data()), properties=properties)  # fmt: skip


def code_component(
    target: str, cpu: str, model: Component, compiler: str, files: Mapping[str, bytes], *, native: bool
) -> Component:
    """Return the code generated from ``model`` for ``target``: its C sources and headers without libraries.

    The licence of ``native`` code is known: the model's and mlfbuild's, whose text it contains. The licence of code
    from other compilers is unknown.
    """
    return Component(
        ref=f"code/{target}/{model.name}",
        kind=Kind.CODE,
        name=f"{model.name} code for {target}",
        license=of_generated_code(model.license) if native else "",
        license_concluded=native,
        description=f"Code generated from the model {model.name} for {cpu}",
        properties={"target": target, "cpu": cpu, "compiler": compiler},
        files=_files(files, f"{target}/{model.name}"),
    )


def kernels_component(folder: str, files: Mapping[str, bytes], version: str) -> Component:
    """Return the kernel headers ``files`` of mlfbuild, in the archives' folder ``folder``.

    If they are not those of this version of mlfbuild, version and licence are unknown.
    """
    own = kernel_headers()
    # By content and not by the name of the folder, which an archive of anyone can have.
    ours = all(own.get(name) == data for name, data in files.items())
    if not ours:
        folder = f"{folder}-{_digest(files)}"
    about = "Kernels of neural networks that generated code includes"
    found = _own(f"kernels/{folder}", "kernels", version, "native/kernels", _files(files, folder), about)
    return found if ours else replace(found, version="", purl="", license="")


def runtime_component(files: Mapping[str, bytes], version: str) -> Component:
    """Return mlfbuild's runtime headers for code of TVM."""
    headers = _files({path.removeprefix("executor/"): data for path, data in files.items()}, "")
    about = "Runtime headers of mlfbuild for code of TVM"
    return _own(f"runtime/{_digest(files)}", "runtime", version, "runtime/tvm", headers, about)


def board_component(board: str, files: Mapping[str, bytes], version: str) -> Component:
    """Return mlfbuild's start-up code and linker scripts for a board."""
    return _own(f"board/{board}", f"board support for {board}", version, "runtime/board", _files(files, ""))


def _own(
    ref: str, name: str, version: str, folder: str, files: tuple[BomFile, ...], description: str = ""
) -> Component:
    """Return a library that is a ``folder`` of mlfbuild's package."""
    purl = origins.pypi("mlfbuild", version, f"mlfbuild/{folder}")
    return Component(ref, Kind.LIBRARY, f"mlfbuild {name}", version, purl, OWN, description=description, files=files)


def tvm_runtime_component(files: Mapping[str, bytes], version: str) -> Component:
    """Return TVM's runtime, which an archive of TVM ``version`` includes."""
    known = bool(_RELEASE.fullmatch(version))
    url = "https://github.com/apache/tvm"
    purl = origins.of_repository("tvm", url, f"v{version}") if known else ""
    return Component(
        f"tvm-runtime/{_digest(files)}", Kind.LIBRARY, "TVM standalone CRT", version, purl, _TVM, url=url,
        files=_files(files, ""),
    )  # fmt: skip


def dependency_component(
    provider: Provider, commit: str = "", tree: str = "", files: Mapping[str, bytes] | None = None
) -> Component:
    """Return a required library as the project provides it, with its compiled files.

    ``commit`` and ``tree`` are Git's, of the version that was fetched.
    """
    public = origins.public_address(provider.place) if provider.kind in {"git", "url"} else ""
    properties = {"provided-by": provider.kind}
    if provider.kind == "package":
        properties["package"] = provider.place
    if tree:
        properties["tree-sha256"] = tree
    purl = ""
    if provider.kind == "git" and public:
        purl = origins.of_repository(provider.name, provider.place, provider.version, commit)
    elif provider.kind == "url":
        checksum = f"sha256:{provider.sha256}"
        purl = origins.generic(provider.name, provider.version, download_url=public, checksum=checksum)
    origin = {"url": public, "sha256": provider.sha256, "commit": commit}
    return _required(provider.name, provider.version, purl, provider.license, files, properties=properties, **origin)


def bundled_component(library: ResolvedLibrary, files: Mapping[str, bytes] | None = None) -> Component:
    """Return a required library that an archive includes, with its compiled files."""
    public, purl = origins.public_address(library.url), ""
    if public and library.commit:
        purl = origins.of_repository(library.name, library.url, library.version, library.commit)
    elif known_library(library.name) is None:
        purl = origins.generic(library.name, library.version, download_url=public)
    origin = {"url": public, "commit": library.commit, "properties": {"provided-by": "archive"}}
    return replace(_required(library.name, library.version, purl, "", files, **origin), license=library.license)


def required_component(requirement: Requirement) -> Component:
    """Return a required library that the project does not provide."""
    return _required(printable(requirement.name), printable(requirement.version))


def _required(
    name: str, version: str, purl: str = "", said: str = "", files: Mapping[str, bytes] | None = None, **more: Any
) -> Component:
    """Return a required library with the licence ``said``; a known one has its title, package URL and licence."""
    known = known_library(name)
    usual = origins.with_version(known.purl, version) if known else origins.generic(name, version)
    title, stated = (known.title, known.license) if known else (name, "")
    names = (f"dependency/{name}", Kind.LIBRARY, title, version, purl or usual, said or stated)
    return Component(*names, files=_files(files or {}, name), **more)


def _files(files: Mapping[str, bytes], folder: str) -> tuple[BomFile, ...]:
    before = f"{folder}/" if folder else ""
    return tuple(bom_file(before + path, files[path]) for path in sorted(files))


def _digest(files: Mapping[str, bytes]) -> str:
    """Return 12 hexadecimal digits of a hash of names and contents."""
    return sha256("".join(f"{path} {sha256(files[path])}\n" for path in sorted(files)).encode())[:12]
