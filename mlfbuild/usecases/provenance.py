"""Say where an image is from: the statement of provenance of an image that the project has built."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild import __version__
from mlfbuild.archive import EPOCH, open_archive_with_id, source_date
from mlfbuild.c_analysis import check_elf_image
from mlfbuild.core import (
    CheckFailedError,
    InputFileError,
    Signer,
    Trust,
    UsageError,
    check_signature,
    listed,
    package_fingerprint,
    read_bytes,
    sha256,
    sign_bytes,
    signature_path,
    write_atomic,
)
from mlfbuild.jobs import (
    CompileJob,
    FirmwareJob,
    TargetJob,
    check_replaced,
    firmware_jobs,
    hash_of,
    inputs_now,
    is_current,
    link_record,
    locked_toolchain,
    pinned,
    target_dependencies,
    target_jobs,
)
from mlfbuild.library import Library, blob_file, blob_path, identities
from mlfbuild.project import Project
from mlfbuild.report import Artifact, ClaimedProvenance, Provenance, is_statement, read_provenance
from mlfbuild.requirements import LockedProvider, lock_path
from mlfbuild.usecases.lock.locking import dependency_facts, model_facts
from mlfbuild.usecases.sign import check_signature_output
from mlfbuild.verify import DeviceBundle

BUILDER = f"pkg:pypi/mlfbuild@{__version__}"
"""The builder of a statement that names none: mlfbuild, on a machine that is not identified."""
_BUILD = "run `mlfbuild build` first"


@dataclass(frozen=True)
class _LinkedModel:
    job: CompileJob
    sha256: str
    """Of the archive."""
    blobs: tuple[Artifact, ...]
    """Its replaceable parameters, as they are in the image."""


def image_provenance(
    project: Project,
    elf: Path,
    targets: Sequence[str] = (),
    build: Path | None = None,
    *,
    builder: str = "",
) -> Provenance:
    """Return where the image ``elf`` is from: a firmware of ``project``, or an image that links its models.

    ``build`` is the build folder, as for ``target_jobs``. One of ``targets`` is chosen if the image is not that of a
    firmware. Nothing is built: raises ``CheckFailedError`` if the image is not made from the present inputs, because
    the statement would be false. Raises ``UsageError`` if the target or the folder is not known, ``ToolNotFoundError``
    without the target's toolchain, and ``InputFileError`` for files that cannot be read or are not images.
    """
    if build is not None and not build.is_dir():
        hint = "name the folder in which the project was built"
        raise UsageError("no-build-folder", place=f"--build-dir {build}", reason="no such folder", hint=hint)
    project = pinned(project)
    data = read_bytes(elf, "image")
    jobs = target_jobs(project, targets, build=build)
    firmware = next((job for job in firmware_jobs(project, jobs, build) if _is_same(job.elf, elf)), None)
    target = firmware.target if firmware is not None else _only(jobs, elf)
    linked = _linked_models(elf, data, target)
    if firmware is not None:
        _check_link(firmware, sha256(data))
    subjects = [Artifact(elf.name, sha256(data)), *(Artifact(each.job.archive.name, each.sha256) for each in linked)]
    subjects += (blob for each in linked for blob in each.blobs)
    if firmware is not None and firmware.params_section is not None and firmware.params_binary.is_file():
        subjects.append(Artifact(firmware.params_binary.name, hash_of(firmware.params_binary)))
    parameters = {
        "project": project.path.name,
        "target": target.name,
        **({"firmware": firmware.name} if firmware is not None else {}),
        "models": [each.job.model for each in linked],
    }
    found = _dependencies(project, target, firmware, [each.job for each in linked])
    dependencies = sorted(found, key=lambda artifact: (artifact.name, artifact.uri, artifact.sha256))
    date = source_date() if os.environ.get(EPOCH) else None
    return Provenance(tuple(subjects), parameters, tuple(dependencies), builder or BUILDER, __version__, date)


def write_provenance(statement: Provenance, output: Path, key: Path | None = None) -> list[Path]:
    """Write ``statement`` to ``output`` and, with ``key``, its signature beside it; return the files.

    Nothing is written before it is signed. Raises as ``check_replaced`` and ``check_signature_output`` if a file of
    another kind is there, as ``sign_bytes``, and ``StorageError``.
    """
    check_replaced(output, (), "statement", "statement of in-toto", lambda path: is_statement(path.read_bytes()))
    data = statement.to_text().encode()
    made = {output: data}
    if key is not None:
        check_signature_output(signature_path(output))
        made[signature_path(output)] = sign_bytes(data, key)
    for path, content in made.items():
        write_atomic(path, content)
    return [*made]


def _is_same(built: Path, elf: Path) -> bool:
    return built.is_file() and built.samefile(elf)


def _only(targets: Sequence[TargetJob], elf: Path) -> TargetJob:
    if len(targets) != 1:
        names = listed([target.name for target in targets])
        reason = f"is no firmware of the project, which has several targets: {names}"
        raise UsageError("target-not-chosen", place=elf, reason=reason, hint="add --target")
    return targets[0]


# The image -----------------------------------------------------------------------------------------------------------


def _linked_models(elf: Path, data: bytes, target: TargetJob) -> list[_LinkedModel]:
    """Return the models of ``target`` in the image ``data``; raises ``CheckFailedError`` if it has others, or none."""
    ids: dict[str, set[str]] = {}
    for identity in identities(data):
        ids.setdefault(identity.model, set()).add(identity.sha256)
    found = []
    for job in target.models:
        if not job.archive.is_file():
            continue
        library, digest = open_archive_with_id(job.archive)
        wanted = {module.name: _made_from(library, module.name, digest) for module in library.modules}
        for module in wanted.keys() & ids.keys():
            if ids[module] != {wanted[module]}:
                reason = f"has the model {module} of another file than {job.archive.name}"
                raise CheckFailedError("image-out-of-date", place=elf, reason=reason, hint=_BUILD)
        if wanted.keys() & ids.keys():
            if not is_current(job):
                reason = f"the archive of {job.title} is not made from the present inputs"
                raise CheckFailedError("image-out-of-date", place=elf, reason=reason, hint=_BUILD)
            found.append(_LinkedModel(job, digest, tuple(_blobs(library))))
    if not found:
        if not ids:
            check_elf_image(data, elf)
        reason = f"has no ID of a model that is built for target {target.name}"
        hint = "build the project, and name an image that links its models"
        raise CheckFailedError("provenance-without-models", place=elf, reason=reason, hint=hint)
    return found


def _blobs(library: Library) -> Iterator[Artifact]:
    for module in library.modules:
        blob = blob_file(module, "bin")
        if blob is not None:
            yield Artifact(blob_path(module.name, "bin").name, sha256(blob))


def _made_from(library: Library, name: str, digest: str) -> str:
    (module,) = (module for module in library.modules if module.name == name)
    return module.model_id or module.source_sha256 or digest


def _check_link(firmware: FirmwareJob, digest: str) -> None:
    """Raise ``CheckFailedError`` if the image is not the one that was linked, or its files have changed since."""
    record = link_record(firmware)
    if record is None:  # Ninja before 1.11 does not list inputs
        return
    now = inputs_now(firmware, record)
    changed = [name for name, value in record.inputs.items() if now[name] != value]
    if record.sha256 != digest or changed:
        reason = f"{changed[0]} has changed since it was linked" if changed else "is not the image that was linked"
        raise CheckFailedError("image-out-of-date", place=firmware.elf, reason=reason, hint=_BUILD)


# What it was made from -----------------------------------------------------------------------------------------------


def _dependencies(
    project: Project, target: TargetJob, firmware: FirmwareJob | None, models: Sequence[CompileJob]
) -> Iterator[Artifact]:
    for path in filter(Path.is_file, (project.path, lock_path(project.path))):
        yield Artifact(path.name, hash_of(path))
    facts = model_facts(project, [target])
    for job in models:
        model = facts[job.model]
        more = {"inputs-sha256": model.inputs} if model.inputs else {}
        yield Artifact(model.source, model.sha256, annotations={"compiler": model.compiler, **more})
        folder = model.source.rpartition("/")[0]
        for name, digest in model.weights.items():
            yield Artifact(f"{folder}/{name}" if folder else name, digest)
    yield from _sources(project, firmware)
    required = {library.name for library in target_dependencies(target)}
    yield from (_library(name, entry) for name, entry in dependency_facts(project).items() if name in required)
    for program, version in locked_toolchain(target, project.root).programs.items():
        yield Artifact(program, uri=f"pkg:generic/{program}", annotations={"version": version})
    yield from (Artifact(path.name, hash_of(path)) for path in target.toolchain_files)
    fingerprint = {"files-sha256": package_fingerprint()}
    yield Artifact("mlfbuild", uri=f"pkg:pypi/mlfbuild@{__version__}", annotations=fingerprint)


def _sources(project: Project, firmware: FirmwareJob | None) -> Iterator[Artifact]:
    """Yield the firmware's own files: those of the project that its link reads, except those that the build made."""
    record = None if firmware is None else link_record(firmware)
    if firmware is None or record is None:
        return
    root, built = project.root.resolve(), firmware.build.parents[1].resolve()
    for name, digest in record.inputs.items():
        # Files of the system have absolute names, which differ between machines.
        if not Path(name).is_absolute() and (root / name).is_file() and not (root / name).is_relative_to(built):
            yield Artifact(name, digest)


def _library(name: str, entry: LockedProvider) -> Artifact:
    more = {"version": entry.version, "content-sha256": entry.content, "settings": entry.settings}
    known = {key: value for key, value in more.items() if value}
    # The folder of a library is one of this machine, and no place where others find it.
    uri = {"git": f"git+{entry.place}", "url": entry.place}.get(entry.kind, "")
    return Artifact(name, entry.sha256, uri, entry.commit, known)


# In bundles -----------------------------------------------------------------------------------------------------------


def with_provenance(bundle: DeviceBundle, path: Path) -> DeviceBundle:
    """Return ``bundle`` with the statement in ``path``, and the signature beside it if there is one.

    Raises ``InputFileError`` if the statement is not about the archives of the bundle and, if the bundle is for one
    image, about that.
    """
    signature = signature_path(path)
    found = replace(
        bundle,
        provenance=read_bytes(path, "statement"),
        signature=read_bytes(signature, "signature") if signature.exists() else b"",
    )
    _claimed(found, str(path), bundle.image_sha256)
    return found


def _claimed(bundle: DeviceBundle, where: str, image: str) -> ClaimedProvenance:
    """Return what the statement of ``bundle`` in the file ``where`` says about the image with the SHA-256 ``image``.

    Raises ``InputFileError`` if it is not about the archives of the bundle and, unless ``image`` is empty, this image.
    """
    claimed = read_provenance(bundle.provenance, where)
    wanted = {model.archive_sha256: f"the archive {model.archive}" for model in bundle.models}
    wanted |= {image: "the image"} if image else {}
    for digest, what in wanted.items():
        if digest not in claimed.subjects:
            raise InputFileError(
                "provenance-of-another-image",
                place=where,
                reason=f"the statement is not about {what} with the SHA-256 {digest}",
                hint="use the image, the archives and the statement of the same build",
            )
    return claimed


def bundled_provenance(bundle: DeviceBundle, path: Path, image: str, trust: Trust | None) -> tuple[str, Signer | None]:
    """Return who built the image with the SHA-256 ``image``, and who signed that.

    The former is empty for a bundle, read from ``path``, without a statement, the latter ``None`` without ``trust``.
    Raises ``CheckFailedError`` if there is ``trust`` and no signed statement, as ``check_signature``, and
    ``InputFileError`` if the statement is not about the image and the archives of the bundle.
    """
    where = f"{path}: provenance.json"
    if trust is not None and not (bundle.provenance and bundle.signature):
        missing = "a signature" if bundle.provenance else "a statement"
        raise CheckFailedError(
            "provenance-not-signed",
            place=path,
            reason=f"the bundle has no signed provenance: it lacks {missing}",
            hint="make it with `mlfbuild provenance --sign` and `mlfbuild bundle --provenance`",
        )
    # Before the statement is parsed.
    signer = None if trust is None else check_signature(where, bundle.provenance, bundle.signature, trust)
    return (_claimed(bundle, where, image).builder if bundle.provenance else ""), signer
