"""The hashes that connect an image with its bundle, archives and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlfbuild.cli.output.printing import show
from mlfbuild.core import Trust, UsageError, text_table

if TYPE_CHECKING:
    from pathlib import Path

    from mlfbuild.cli.options import SharedOptions
    from mlfbuild.usecases import ReceivedImage
    from mlfbuild.verify import DeviceBundle


def shown_image(
    options: SharedOptions,
    bundle: Path,
    image: Path | None,
    option: str,
    *,
    board: str | None,
    runner: tuple[str, ...],
    signers: Path | None,
) -> ReceivedImage:
    """Return ``image`` as its ``bundle`` describes it, and print their hashes; ``option`` is the one that names it.

    Raises ``UsageError`` without an image, and as ``received_image``.
    """
    from mlfbuild.usecases import received_image

    if image is None:
        raise UsageError(
            "bundle-without-image", place=f"--bundle {bundle}", reason="the image is missing", hint=f"add {option}"
        )
    trust = None if signers is None else Trust(signers)
    received = received_image(bundle, image, board=board, runner=runner, trust=trust)
    if not (options.quiet or options.json):
        show(hashes(received))
    return received


def hashes(image: ReceivedImage) -> str:
    """Return the SHA-256 of an image and of what its bundle describes, as a table."""
    rows = [("image", image.elf.name, image.sha256), *bundle_rows(image.bundle, image.bundle_sha256)]
    if image.builder:
        signed = f"signed by {image.signer}" if image.signer else "who signed it was not checked: add --signers"
        rows.append(("builder", image.builder, signed))
    return text_table(rows)


def bundle_rows(bundle: DeviceBundle, sha256: str) -> list[tuple[str, str, str]]:
    """Return the rows of a bundle in such a table: itself, its archives, and the IDs of its models."""
    archives = {model.archive: model.archive_sha256 for model in bundle.models}
    return [
        ("bundle", f"target {bundle.target}", sha256),
        *(("archive", name, digest) for name, digest in archives.items()),
        *(("model", model.subject.name, model.model_id or "no ID") for model in bundle.models),
    ]


def hashes_json(image: ReceivedImage) -> dict[str, Any]:
    """Return the same as JSON values."""
    provenance = {"builder": image.builder, "signer": image.signer} if image.builder else {}
    return {"elf": image.elf, "sha256": image.sha256, **bundle_json(image.bundle, image.bundle_sha256), **provenance}


def bundle_json(bundle: DeviceBundle, sha256: str) -> dict[str, Any]:
    """Return the facts of a bundle, whose own hash is ``sha256``, as JSON values; unknown ones are ``None``.

    One entry of ``models`` for each module, with the archive that it is from and whether the bundle has vectors for it.
    """
    return {
        "bundle_sha256": sha256,
        "target": bundle.target,
        "image_sha256": bundle.image_sha256 or None,
        "models": [
            {
                "module": model.subject.name,
                "archive": model.archive,
                "archive_sha256": model.archive_sha256,
                "model_id": model.model_id or None,
                "vectors": model.vectors is not None,
            }
            for model in bundle.models
        ],
    }
