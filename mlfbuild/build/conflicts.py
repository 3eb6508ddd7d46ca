"""The two-model guarantee: no global symbol of one model appears in another one of the same image.

Linkers promise less. Of two static libraries that define one name they take the one they meet first, without a word,
and from then on one model computes with the other's function or data. So the objects themselves are compared:

- Two models define the same global symbol, or share a common one (C without ``static``, ``-fcommon``): a clash.
- One model takes a symbol from another, which it does not define itself: a clash.
- A model and the rest of the firmware define the same global symbol: a clash, as the firmware's would be taken.
- What both define as weak is one where it differs. Made to be merged are inline functions of C++, and helpers of LLVM.
- Local symbols are not: kernels are ``static inline``, each model has its own.

Objects that GCC leaves to link-time optimisation tell their symbols, too; those of clang do not, nor do formats other
than ELF: they cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mlfbuild.build.jobs import CompileJob, FirmwareJob, TargetJob
from mlfbuild.build.shared_symbols import Clash, clashes, compiled_objects
from mlfbuild.core import CheckFailedError, find_tool, holds, read_bytes, run, write_atomic
from mlfbuild.library import Fields, parse_json

_SHOWN = 4
COMPARED = {".o", ".obj", ".a"}
"""Suffixes of files that may hold global symbols of the firmware."""


def check_image(job: FirmwareJob) -> None:
    """Raise ``CheckFailedError`` where two models in the image share a global symbol; what is to be checked is built.

    Nothing is read unless the image was linked since it was last found right.
    """
    stamp = job.build / ".mlfbuild-symbols"
    linked = _state(job.elf)
    if linked is not None and holds(stamp, linked):
        return
    stamp.unlink(missing_ok=True)
    check_libraries(job)
    if linked is not None:
        write_atomic(stamp, linked)


def check_libraries(job: FirmwareJob) -> None:
    """Raise ``CheckFailedError`` where two models that the image is linked from share a global symbol.

    Works for an image that could not be linked, too. Raises ``ProcessFailedError`` where Ninja does not know the image.
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
    """Raise ``CheckFailedError`` where two models share a global symbol; the line names both and the symbol.

    ``compiled`` has the objects (``.o``) and static libraries (``.a``) of each model in ``image``, ``firmware`` what
    else it is linked from: where that defines a symbol of a model, too, the line says so. Raises ``InputFileError`` for
    one that cannot be read.
    """
    if not compiled:
        return
    objects = [found for model, paths in compiled.items() for path in paths for found in compiled_objects(model, path)]
    objects += [found for path in firmware for found in compiled_objects(None, path)]
    found = list(clashes(objects))
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        shown = "; ".join(str(clash) for clash in found[:_SHOWN])
        raise CheckFailedError(f"{image}: {shown}{more}; {_advice(found[0])}")


def _advice(clash: Clash) -> str:
    if clash.with_firmware:
        return "rename it in the firmware, or make it static"
    return "merge their archives with `mlfbuild merge`, or export one of them again so that its names are its own"


def check_module_names(modules: Mapping[str, Sequence[str]]) -> None:
    """Raise ``CheckFailedError`` where two models, which are the keys, have a module of one name.

    All its symbols would clash, and in a build so do its targets and files, long before anything is linked.
    """
    owners: dict[str, str] = {}
    for model, names in modules.items():
        for name in names:
            other = owners.setdefault(name, model)
            if other != model:
                raise CheckFailedError(
                    f"models {other} and {model} both have a module called {name!r}, so that all their symbols clash; "
                    f"give one of them another name: 'options: {{module-name: {model}}}'"
                )


def check_target(target: TargetJob) -> None:
    """Raise ``CheckFailedError`` where two models of ``target``, whose trees are there, have a module of one name."""
    check_module_names({job.model: modules_of(job) for job in (*target.models, *target.others)})


# What is linked ------------------------------------------------------------------------------------------------------


def _state(elf: Path) -> bytes | None:
    try:
        found = elf.stat()
    except OSError:
        return None
    return f"{found.st_mtime_ns} {found.st_size}\n".encode()


def _link_inputs(job: FirmwareJob) -> Iterator[Path]:
    """Yield what Ninja links the image from, itself and through other libraries."""
    for line in run([find_tool("ninja"), "-C", job.build, "-t", "query", job.elf.name]).splitlines():
        if line.startswith("  outputs:"):
            return
        if line.startswith("    ") and not line.startswith("    || "):
            yield job.build / line.strip().removeprefix("| ")


def _owners(jobs: Iterable[CompileJob]) -> dict[str, str]:
    """Return what messages call the model that a static library belongs to, by the library's file name."""
    owners: dict[str, str] = {}
    for job in jobs:
        names = modules_of(job)
        for name in names:
            shown = job.module_title(name, names)
            owners |= {f"libmlf_{name}.a": shown, f"libmlf_{name}_blobs.a": shown}
    return owners


def modules_of(job: CompileJob) -> list[str]:
    """Return the names of the modules in the job's tree; none where it is not there: what this build left alone.

    The native compiler calls its only module as the project calls the model.
    """
    if job.compiler == "native":
        return [job.model]
    metadata = job.tree / "metadata.json"
    if not metadata.is_file():
        return []
    fields = Fields(parse_json(read_bytes(metadata, "metadata"), str(metadata)), str(metadata))
    if "modules" not in fields:  # an operator's, which is the only module of its archive
        return [fields.text("model_name")]
    return list(fields.member("modules").names())
