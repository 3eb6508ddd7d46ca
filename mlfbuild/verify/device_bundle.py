"""A bundle: what verifying the models in a firmware image takes besides the image, in one small file.

The machine that compiles the models writes it, and the machine that the device is connected to reads it, without the
project or an archive. It is a plain tar, whose bytes follow from its content::

    bundle.json          version of the form, target, SHA-256 of the image if it is known, models, SHA-256 of each file
    modules/kws.json     name, inputs and outputs of a module, with types and shapes, as in the test firmware of verify
    vectors/kws.npz      its inputs and expected outputs
    provenance.json      where the image is from, if the writer was given a statement; and its signature
    provenance.json.sig

It contains no code, no weights and no commands, and nothing that belongs to the machine that wrote it, such as paths
and addresses. Bundles are untrusted: every value is checked before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from mlfbuild import __version__
from mlfbuild.archive import source_date, tar
from mlfbuild.core import SHA256, InputFileError, open_binary, read_bytes, sha256
from mlfbuild.jobs.tree import Subject
from mlfbuild.library import Content, Fields, identities, parse_json
from mlfbuild.targets import BOARDS, CPUS, MCUS, Board, Cpu, DeviceMemoryKeys, Mcu, RegionKeys
from mlfbuild.verify.image import check_tensors

_MANIFEST = "bundle.json"
_PROVENANCES = _PROVENANCE, _SIGNATURE = ("provenance.json", "provenance.json.sig")
_FORM = 2
_WITHOUT_PROVENANCE = 1
"""The form of bundles without these members, which older versions of mlfbuild read."""
# Limits for untrusted files. A description of a module has some kilobytes.
_LARGEST_JSON = 1 << 20
# Larger files would have to fit the memory of the machine with the device, often a small one.
_LARGEST_VECTORS = 1 << 30
_MOST_MODELS = 1000
# The end of the address space of every supported core.
_ADDRESSES = 1 << 32
_AGAIN = "make the bundle again with mlfbuild bundle"
_Known = TypeVar("_Known")


@dataclass(frozen=True)
class BundledModel:
    """A module of an archive, and its vectors."""

    subject: Subject
    archive: str
    """Name of the archive's file."""
    archive_sha256: str
    model_id: str
    """SHA-256 of the model file, as in the image; empty for modules of other compilers."""
    vectors: Content | None
    """Content of a file ``.npz``; ``None`` if the model is not run."""


@dataclass(frozen=True)
class DeviceBundle:
    """A target, and the models in an image for it."""

    target: str
    """The target's name."""
    cpu: Cpu
    board: Board | None
    """Board that QEMU emulates."""
    mcu: Mcu | None
    models: tuple[BundledModel, ...]
    memory: DeviceMemoryKeys | None = None
    """Memories of the device; ``None`` if they are those of ``board`` or ``mcu``."""
    image_sha256: str = ""
    """Of the only image that the bundle is for; empty if any image with these models is."""
    provenance: bytes = b""
    """Statement about the image; empty for none. Its content is not checked here."""
    signature: bytes = b""
    """Of the statement; empty for none."""


def pack_bundle(bundle: DeviceBundle) -> bytes:
    """Return the bytes of ``bundle``, a tar; equal bundles give equal bytes.

    Members are dated by ``SOURCE_DATE_EPOCH`` or a fixed date. Raises ``UsageError`` if that variable is not a number.
    """
    files: dict[str, Content] = {}
    for model in bundle.models:
        files[_module_path(model.subject.name)] = f"{model.subject.to_json()}\n".encode()
        if model.vectors is not None:
            files[_vectors_path(model.subject.name)] = model.vectors
    if bundle.provenance:
        files[_PROVENANCE] = bundle.provenance
    if bundle.signature:
        files[_SIGNATURE] = bundle.signature
    manifest = {
        "mlfbuild_bundle": _FORM if bundle.provenance else _WITHOUT_PROVENANCE,
        "written_by": __version__,
        "target": {
            "name": bundle.target,
            "cpu": bundle.cpu.name,
            "board": bundle.board.name if bundle.board else None,
            "mcu": bundle.mcu.name if bundle.mcu else None,
            "memory": asdict(bundle.memory) if bundle.memory else None,
        },
        "image_sha256": bundle.image_sha256,
        "models": [
            {
                "module": model.subject.name,
                "archive": model.archive,
                "archive_sha256": model.archive_sha256,
                "model_id": model.model_id,
            }
            for model in bundle.models
        ],
        "files": {path: sha256(bytes(files[path])) for path in sorted(files)},
    }
    # The manifest is last because it has the hashes of the others. It has no hash itself: anyone who can change it
    # could also change that.
    files[_MANIFEST] = f"{json.dumps(manifest, indent=1)}\n".encode()
    return b"".join(tar.pack(files, source_date()))


def read_bundle(path: Path) -> DeviceBundle:
    """Return the bundle in the file ``path``.

    Raises ``InputFileError``, with the file and its member as its place, if it is not a bundle, damaged, or of a newer
    version.
    """
    files = tar.members(open_binary(path, "bundle"), str(path))
    if _MANIFEST not in files:
        raise InputFileError(
            "not-a-bundle", place=path, reason=f"has no {_MANIFEST}, so it is not a bundle of mlfbuild", hint=_AGAIN
        )
    manifest = _fields(files, _MANIFEST, path)
    version = manifest.integer("mlfbuild_bundle", minimum=1)
    if version > _FORM:
        hint = f"use mlfbuild {manifest.text('written_by', 'of that machine')!a}, or a newer one"
        raise manifest.error("mlfbuild_bundle", f"is {version}, but this mlfbuild knows {_FORM}", hint=hint)
    # Before any of the other files is parsed.
    _check_hashes(files, manifest, path)
    target, models = manifest.member("target"), manifest.objects("models")
    if not 0 < len(models) <= _MOST_MODELS:
        raise manifest.error("models", f"must have 1 to {_MOST_MODELS} items")
    memory = None
    if not target.is_null("memory"):
        regions = target.member("memory")
        flash = None if regions.is_null("flash") else _region(regions.member("flash"))
        memory = DeviceMemoryKeys(_region(regions.member("ram")), flash)
    bundle = DeviceBundle(
        target.text("name"),
        _known(target, "cpu", CPUS),
        None if target.is_null("board") else _known(target, "board", BOARDS),
        None if target.is_null("mcu") else _known(target, "mcu", MCUS),
        tuple(_model(fields, files, path) for fields in models),
        memory,
        _hash(manifest, "image_sha256"),
        bytes(files.get(_PROVENANCE, b"")),
        bytes(files.get(_SIGNATURE, b"")),
    )
    known = {
        _MANIFEST,
        *(_PROVENANCES if bundle.provenance else ()),
        *(path for model in bundle.models for path in _paths(model)),
    }
    for name in files:
        # A member that nothing refers to is an error of the writer, or was added.
        if name not in known:
            raise _damaged(path, name, "belongs to no model of the bundle")
    return bundle


def bundled_image(bundle: DeviceBundle, image: Path) -> str:
    """Return the SHA-256 of ``image``; the first thing to call, before an image is written to a device.

    Raises ``InputFileError`` if ``bundle`` is for another image, or the ID of a model in the image is missing or is not
    the bundle's, with both hashes in the reason.
    """
    data = read_bytes(image, "image")
    found = sha256(data)
    if bundle.image_sha256 not in {"", found}:
        raise InputFileError(
            "image-of-another-bundle",
            place=image,
            reason=f"its SHA-256 is {found}, but the bundle is for the image {bundle.image_sha256}",
            hint="use the image and the bundle of the same build",
        )
    # The hash of the image may be unknown at bundling time; the ID that each native model carries still identifies it.
    ids = identities(data)
    for model in bundle.models:
        # An image may contain a model twice by mistake, with different IDs; then neither is certain to be the one that
        # runs.
        own = sorted({each.sha256 for each in ids if each.model == model.subject.name})
        if model.model_id and own != [model.model_id]:
            there = f"the model has the ID {' and '.join(own)}" if own else "the image has no ID of the model"
            raise InputFileError(
                "model-of-another-bundle",
                place=f"{image}: model {model.subject.name}",
                reason=f"{there}, but the bundle is for {model.model_id}",
                hint="use an image and a bundle with the same models",
            )
    return found


# Members -------------------------------------------------------------------------------------------------------------


def _module_path(name: str) -> str:
    return f"modules/{name}.json"


def _vectors_path(name: str) -> str:
    return f"vectors/{name}.npz"


def _paths(model: BundledModel) -> tuple[str, ...]:
    module = _module_path(model.subject.name)
    return (module,) if model.vectors is None else (module, _vectors_path(model.subject.name))


def _check_hashes(files: Mapping[str, Content], manifest: Fields, path: Path) -> None:
    """Raise ``InputFileError`` if a file is missing, was added, or is not the one that the manifest describes."""
    hashes = manifest.member("files")
    for name in sorted({*files, *hashes.names()} - {_MANIFEST}):
        if name not in hashes or name not in files:
            raise _damaged(path, name, "is missing" if name in hashes else f"is not in {_MANIFEST}")
        if len(files[name]) > (
            _LARGEST_JSON if name.startswith("modules/") or name in _PROVENANCES else _LARGEST_VECTORS
        ):
            raise _damaged(path, name, f"has {len(files[name]):,} bytes, which is too large")
        expected, found = hashes.text(name), sha256(bytes(files[name]))
        if found != expected:
            raise _damaged(path, name, f"its SHA-256 is {found}, but {_MANIFEST} has {expected!a:.70}")


def _model(fields: Fields, files: Mapping[str, Content], path: Path) -> BundledModel:
    name = fields.text("module")
    member = _module_path(name)
    if member not in files:
        raise fields.error("module", f"has no file {member!a:.200}")
    subject = Subject.from_json(bytes(files[member]), f"{path}: {member}")
    check_tensors(subject, f"{path}: {member}")
    if subject.name != name:
        raise _damaged(path, member, f"is the module {subject.name!a:.200}")
    return BundledModel(
        subject,
        fields.text("archive"),
        _hash(fields, "archive_sha256"),
        _hash(fields, "model_id"),
        files.get(_vectors_path(name)),
    )


def _fields(files: Mapping[str, Content], name: str, path: Path) -> Fields:
    if len(files[name]) > _LARGEST_JSON:
        raise _damaged(path, name, f"has {len(files[name]):,} bytes, which is too large")
    where = f"{path}: {name}"
    return Fields(parse_json(bytes(files[name]), where, _AGAIN), where, advice=_AGAIN)


def _hash(fields: Fields, key: str) -> str:
    value = fields.text(key)
    if value and not SHA256.fullmatch(value):
        raise fields.error(key, "is not a SHA-256 of 64 lower-case hexadecimal digits")
    return value


def _known(fields: Fields, key: str, table: Mapping[str, _Known]) -> _Known:
    name = fields.text(key)
    # Names, not values: the reader's tables describe a CPU, so the bundle cannot smuggle in other settings.
    if name not in table:
        raise fields.error(key, f"this mlfbuild has no {key} {name!a:.120}", hint="use the mlfbuild that wrote it")
    return table[name]


def _region(fields: Fields) -> RegionKeys:
    origin, size = fields.integer("origin"), fields.integer("size", minimum=1)
    if origin + size > _ADDRESSES:
        raise fields.error("size", f"{size:,} bytes at {origin:#x} are not in 32 bits of addresses")
    return RegionKeys(origin, size)


def _damaged(path: Path, member: str, reason: str) -> InputFileError:
    return InputFileError("bundle-damaged", place=f"{path}: {member!a:.200}", reason=reason, hint=_AGAIN)
