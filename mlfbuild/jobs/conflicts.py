"""Check that the models in an image do not define the same global symbols.

This module finds the files that an image is linked from. ``mlfbuild.c_analysis`` compares their symbols; its module
``conflicts`` defines what counts as a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mlfbuild.c_analysis import SymbolConflict, compared_objects, symbol_conflicts
from mlfbuild.core import CheckFailedError, find_tool, holds, read_bytes, run, write_atomic
from mlfbuild.jobs.model_job import CompileJob, FirmwareJob, TargetJob
from mlfbuild.library import HOST_FOLDER, SHARED_WORKSPACE, Fields, parse_json

# Conflicts that an error shows: two models with one clash usually clash in all their symbols.
_SHOWN = 4
COMPARED = {".o", ".obj", ".a"}
"""Suffixes of files that can define global symbols of the firmware."""


def check_image(job: FirmwareJob) -> None:
    """Check the finished image of ``job`` as ``check_libraries`` does.

    Nothing is read unless the image was linked after the last successful check.
    """
    stamp = job.build / ".mlfbuild-symbols"
    # Time and size of the image stand for its content. The check is repeated for nothing after a touch, and it reads
    # all objects, which takes seconds.
    linked = _state(job.elf)
    if linked is not None and holds(stamp, linked):
        return
    # Before the check: if it fails or is interrupted, the next build must check again.
    stamp.unlink(missing_ok=True)
    check_libraries(job)
    if linked is not None:
        write_atomic(stamp, linked)


def check_libraries(job: FirmwareJob) -> None:
    """Raise ``CheckFailedError`` if two models that the image is linked from share a global symbol.

    The image need not exist: it may have failed to link. Raises ``ProcessFailedError`` if Ninja does not know it.
    """
    owners = _owners([*job.target.models, *job.target.others])
    compiled: dict[str, list[Path]] = {}
    firmware = []
    for path in _link_inputs(job):
        owner = owners.get(path.name)
        if owner is not None and path.is_file():
            compiled.setdefault(owner, []).append(path)
        elif path.suffix in COMPARED and path.is_file():
            firmware.append(path)
    check_models(compiled, job.elf.name, firmware)


def check_models(compiled: Mapping[str, Sequence[Path]], image: str, firmware: Sequence[Path] = ()) -> None:
    """Raise ``CheckFailedError`` if two models, or a model and the firmware, share a global symbol.

    ``compiled`` has the objects (``.o``) and static libraries (``.a``) of each model in ``image``, ``firmware`` the
    other files that it is linked from. The linker would report two strong definitions, but not that a weak one or a
    common one was replaced, and not which models they belong to.

    Raises ``InputFileError`` if one of the files cannot be read.
    """
    if not compiled:
        return
    objects = [found for model, paths in compiled.items() for path in paths for found in compared_objects(model, path)]
    objects += [found for path in firmware for found in compared_objects(None, path)]
    shared = {name for found in objects for name in found.symbols.weak if name.startswith(SHARED_WORKSPACE)}
    found = list(symbol_conflicts(objects, frozenset(shared)))
    if found:
        more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise CheckFailedError(
            "symbols-in-conflict",
            place=image,
            reason=", ".join(str(conflict) for conflict in found[:_SHOWN]) + more,
            hint=_hint(found[0]),
        )


def _hint(conflict: SymbolConflict) -> str:
    if conflict.with_firmware:
        return "rename it in the firmware, or make it static"
    return "merge the archives with `mlfbuild merge`, or export one of them with another module name"


def check_module_names(modules: Mapping[str, Sequence[str]]) -> None:
    """Raise ``CheckFailedError`` if two models, the keys of ``modules``, have a module of the same name.

    All their symbols would conflict, and so would their build targets and files.
    """
    owners: dict[str, str] = {}
    for model, names in modules.items():
        for name in names:
            other = owners.setdefault(name, model)
            if other != model:
                raise CheckFailedError(
                    "module-name-twice",
                    reason=f"models {other} and {model} both have a module called {name!r}: all their symbols conflict",
                    hint=f"rename one of them with 'options: {{module-name: {model}}}'",
                )


def check_target(target: TargetJob) -> None:
    """Check the module names of all models of ``target`` whose trees exist."""
    check_module_names({job.model: modules_of(job) for job in (*target.models, *target.others)})


# What is linked ------------------------------------------------------------------------------------------------------


def _state(elf: Path) -> bytes | None:
    try:
        found = elf.stat()
    except OSError:
        return None
    return f"{found.st_mtime_ns} {found.st_size}\n".encode()


def _link_inputs(job: FirmwareJob) -> Iterator[Path]:
    """Yield the files that Ninja links the image from, directly and through other libraries."""
    # Ninja knows what CMake links, including libraries that come in through others.
    for line in run([find_tool("ninja"), "-C", job.build, "-t", "query", job.elf.name]).splitlines():
        if line.startswith("  outputs:"):
            return
        # Ninja marks order-only inputs with ||; they are not linked.
        if line.startswith("    ") and not line.startswith("    || "):
            yield job.build / line.strip().removeprefix("| ")


def _owners(jobs: Iterable[CompileJob]) -> dict[str, str]:
    """Return the title of the model that each static library belongs to, by the library's file name."""
    owners: dict[str, str] = {}
    for job in jobs:
        names = modules_of(job)
        # Libraries of devices are named after the folders of their code, which is all that an older tree records of
        # them.
        devices = sorted(path.name for path in (job.tree / "codegen").glob("*/") if path.name != HOST_FOLDER)
        for name in names:
            shown = job.module_title(name, names)
            kinds = ("", "_blobs", *(f".{device}" for device in devices))
            owners |= {f"libmlf_{name}{kind}.a": shown for kind in kinds}
    return owners


def modules_of(job: CompileJob) -> list[str]:
    """Return the names of the modules in the job's tree; none if this build made no tree.

    The only module of the native compiler has the name of the model.
    """
    # Without reading the tree, which may not exist yet.
    if job.compiler == "native":
        return [job.model]
    metadata = job.tree / "metadata.json"
    if not metadata.is_file():
        return []
    fields = Fields(parse_json(read_bytes(metadata, "metadata"), str(metadata)), str(metadata))
    if "modules" not in fields:  # operator style: one module
        return [fields.text("model_name")]
    return list(fields.member("modules").names())
