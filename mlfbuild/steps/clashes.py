"""The two-model guarantee: no global symbol of one model appears in another one of the same image.

Linkers promise less. Of two static libraries that define one name they take the one they meet first, without a word,
and from then on one model computes with the other's function or data. So the objects themselves are compared:

- Two models define the same global symbol, or share a common one (C without ``static``, ``-fcommon``): a clash.
- One model takes a symbol from another, which it does not define itself: a clash.
- What both define as weak is not: it was made to be merged (inline functions of C++, helpers of LLVM).
- Local symbols are not: kernels are ``static inline``, each model has its own.

Objects without symbols in ELF, as link-time optimisation and other systems have them, cannot be compared.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.code.symbols import Symbols, object_symbols
from mlfbuild.compilers.native.workspace import SHARED as SHARED_WORKSPACE
from mlfbuild.errors import CheckFailedError
from mlfbuild.files import holds, read_bytes, write_atomic
from mlfbuild.library.fields import Fields, parse_json
from mlfbuild.process import find_tool, run
from mlfbuild.steps.jobs import CompileJob, FirmwareJob
from mlfbuild.steps.static_library import members

_ELF = b"\x7fELF"
_MEANT_TO_BE_SHARED = {
    SHARED_WORKSPACE,  # of models that the project file says never run at the same time
    "__gnu_lto_slim",  # a mark in every object that GCC leaves to link-time optimisation
}
_SHOWN = 4


@dataclass(frozen=True)
class _Compiled:
    """One object of a model."""

    model: str
    place: str
    symbols: Symbols
    content: bytes
    """Of an object with weak symbols: only its symbol table tells which of them are common."""

    @property
    def weak(self) -> frozenset[str]:
        """The weak symbols that may be a clash."""
        return self.symbols.weak - _MEANT_TO_BE_SHARED


@dataclass(frozen=True)
class _Clash:
    symbol: str
    first: _Compiled
    second: _Compiled
    borrowed: bool
    """Whether the second only uses what the first defines."""

    def __str__(self) -> str:
        if self.borrowed:
            return (
                f"model {self.second.model} uses the global symbol {self.symbol!r} of model {self.first.model} "
                f"({self.second.place}, {self.first.place})"
            )
        return (
            f"models {self.first.model} and {self.second.model} both define the global symbol {self.symbol!r} "
            f"({self.first.place}, {self.second.place})"
        )


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
    check_models(_linked_libraries(job), job.elf.name)


def check_models(compiled: Mapping[str, Sequence[Path]], image: str) -> None:
    """Raise ``CheckFailedError`` where two models share a global symbol; the line names both and the symbol.

    ``compiled`` has the objects (``.o``) and static libraries (``.a``) of each model in ``image``. Raises
    ``InputFileError`` for one that cannot be read.
    """
    if len(compiled) < 2:
        return
    objects = [found for model, paths in compiled.items() for path in paths for found in _objects(model, path)]
    clashes = list(_clashes(objects))
    if clashes:
        more = f"; and {len(clashes) - _SHOWN} more" if len(clashes) > _SHOWN else ""
        raise CheckFailedError(
            f"{image}: {'; '.join(str(clash) for clash in clashes[:_SHOWN])}{more}; merge their archives with "
            f"`mlfbuild merge`, or export one of them again so that its names are its own"
        )


# What is linked ------------------------------------------------------------------------------------------------------


def _state(elf: Path) -> bytes | None:
    try:
        found = elf.stat()
    except OSError:
        return None
    return f"{found.st_mtime_ns} {found.st_size}\n".encode()


def _linked_libraries(job: FirmwareJob) -> dict[str, list[Path]]:
    """Return the static libraries of each model that the image is linked from and that are built, by model."""
    owners = _owners([*job.target.models, *job.target.others])
    found: dict[str, list[Path]] = {}
    for path in _link_inputs(job):
        owner = owners.get(path.name)
        if owner is not None and path.is_file():
            found.setdefault(owner, []).append(path)
    return found


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
        names = _modules(job.tree / "metadata.json")
        for name in names:
            shown = owner_name(job, names, name)
            owners |= {f"libmlf_{name}.a": shown, f"libmlf_{name}_blobs.a": shown}
    return owners


def owner_name(job: CompileJob, modules: Sequence[str], module: str) -> str:
    """Return what messages call ``module``, one of the ``modules`` of a job."""
    return job.model if list(modules) == [job.model] else f"{job.model} (module {module})"


def _modules(metadata: Path) -> list[str]:
    """Return the names of the modules in a tree; empty where it is not there: a model that this build left alone."""
    if not metadata.is_file():
        return []
    fields = Fields(parse_json(read_bytes(metadata, "metadata"), str(metadata)), str(metadata))
    return list(fields.member("modules").names())


# Symbols -------------------------------------------------------------------------------------------------------------


def _objects(model: str, path: Path) -> Iterator[_Compiled]:
    data = read_bytes(path, "object of a model")
    parts = members(data, str(path)) if path.suffix == ".a" else iter([("", data)])
    for name, content in parts:
        if content.startswith(_ELF):
            symbols = object_symbols(content, f"{path}({name})" if name else str(path))
            place = f"{path.name}({name})" if name else path.name
            yield _Compiled(model, place, symbols, content if symbols.weak else b"")


def _common(found: _Compiled) -> frozenset[str]:
    """Return those of the weak symbols that are common ones: data that every object that has it shares."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    table = ELFFile(io.BytesIO(found.content)).get_section_by_name(".symtab")
    entries = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
    common = {entry.name for entry in entries if entry["st_shndx"] == "SHN_COMMON"}
    return found.weak & common


def _clashes(objects: Sequence[_Compiled]) -> Iterator[_Clash]:
    """Yield a clash for each symbol, in the order of objects and names."""
    told: set[str] = set()
    commons = _commons(objects)
    strong = _first_of((found, found.symbols.defined) for found in objects)
    shared = _first_of(zip(objects, commons, strict=True))
    for found, common in zip(objects, commons, strict=True):
        for name in sorted(found.symbols.defined | found.symbols.weak):
            first = strong.get(name) or (shared[name] if name in common else None)
            if first is not None and first.model != found.model and name not in told:
                told.add(name)
                yield _Clash(name, first, found, borrowed=False)
    own = {(found.model, name) for found in objects for name in found.symbols.defined | found.symbols.weak}
    for found in objects:
        for name in sorted(found.symbols.declared):
            if name in strong and (found.model, name) not in own and name not in told:
                told.add(name)
                yield _Clash(name, strong[name], found, borrowed=True)


def _first_of(names: Iterable[tuple[_Compiled, Iterable[str]]]) -> dict[str, _Compiled]:
    first: dict[str, _Compiled] = {}
    for found, defined in names:
        for name in defined:
            first.setdefault(name, found)
    return first


def _commons(objects: Sequence[_Compiled]) -> list[frozenset[str]]:
    """Return the common symbols of each object; none where no other model has one of its weak symbols, too."""
    models: dict[str, set[str]] = {}
    for found in objects:
        for name in found.weak:
            models.setdefault(name, set()).add(found.model)
    return [_common(found) if any(len(models[name]) > 1 for name in found.weak) else frozenset() for found in objects]
