"""Global symbols that models in one image share with each other, or with the rest of the firmware.

Linkers do not prevent this. If two static libraries define a symbol, the linker silently takes the one that it finds
first, and from then on one model computes with the other's function or data. So the objects themselves are compared,
not the image. A conflict is one symbol of two objects:

- Two models define the same global symbol, or share a common one (C without ``static``, ``-fcommon``).
- A model uses a symbol that only another model defines.
- A model and the rest of the firmware define the same global symbol: the linker would use the firmware's.
- Two models define a weak symbol differently. Equal definitions, and those made to be merged (inline functions of C++,
  helpers of LLVM), are not a conflict.

Local symbols are not compared: kernels are ``static inline``, so that each model has its own. Objects that GCC compiled
for link-time optimisation are compared; those of clang, and formats other than ELF, cannot be.

Static libraries (``.a``): the objects in them, read with arpy.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.c_analysis.objects import MERGED, SHARED, Symbols, object_symbols, weak_definitions
from mlfbuild.core import InputFileError, read_bytes

# Their names are ordinary names for arpy, in contrast to the symbol tables `/` and `/SYM64/` of GNU ar.
_INDICES = {"__.SYMDEF", "__.SYMDEF SORTED"}  # symbol tables of BSD libraries


def members(data: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each object in the static library ``data``, in the file's order.

    The System V, GNU and BSD formats are read; a name may occur twice. ``where`` names the library in messages. Raises
    ``InputFileError`` if ``data`` is not a static library, is damaged, or is a thin one, whose objects are other files.
    """
    import arpy  # only builds that link models read libraries

    if data.startswith(b"!<thin>\n"):
        raise InputFileError(
            "library-thin",
            place=where,
            reason="a thin static library, which does not contain its objects",
            hint="create it without the `T` modifier of `ar`",
        )
    if not data.startswith(b"!<arch>\n"):
        raise InputFileError(
            "library-not-ar", place=where, reason="not a static library", hint="delete it and build it again"
        )
    try:
        library = arpy.Archive(fileobj=io.BytesIO(data))
        while (header := library.read_next_header()) is not None:
            if header.size < 0:  # arpy would move back and read the same headers forever
                raise arpy.ArchiveFormatError("the size of an object is negative")
            if header.type not in {arpy.HEADER_NORMAL, arpy.HEADER_GNU, arpy.HEADER_BSD}:
                continue
            name = header.name.rstrip(b"\0").decode(errors="backslashreplace")
            if header.file_offset + header.size > len(data):
                raise arpy.ArchiveFormatError(f"{name!a} extends beyond the end of the file")
            if name not in _INDICES:
                yield name, data[header.file_offset : header.file_offset + header.size]
    except (arpy.ArchiveFormatError, ValueError) as error:
        raise InputFileError(
            "library-damaged",
            place=where,
            reason=f"damaged static library: {error}",
            hint="delete it and build it again",
        ) from None


_ELF = b"\x7fELF"
# A common symbol without meaning, which would be a conflict between any two models that are built with -flto.
_LTO_MARK = "__gnu_lto_slim"  # in every object that GCC compiles for link-time optimisation


@dataclass(frozen=True)
class ComparedObject:
    """One object of a model, or of the rest of the firmware."""

    model: str | None
    """``None`` for the firmware."""
    place: str
    """Its name in messages."""
    symbols: Symbols
    content: bytes
    """The bytes of an object with weak symbols, whose definitions are compared if another model also has them."""


@dataclass(frozen=True)
class SymbolConflict:
    """One symbol of two objects.

    Both define it, unless it is ``borrowed``: then the second only uses the symbol, which the first defines.
    """

    symbol: str
    first: ComparedObject
    second: ComparedObject
    borrowed: bool = False

    @property
    def with_firmware(self) -> bool:
        """Whether only one of the two objects belongs to a model."""
        return self.first.model is None or self.second.model is None

    def __str__(self) -> str:
        first, second = self.first, self.second
        if self.borrowed:
            return (
                f"model {second.model} uses the global symbol {self.symbol!r} of model {first.model} "
                f"({second.place}, {first.place})"
            )
        if self.with_firmware:
            model, firmware = (first, second) if second.model is None else (second, first)
            return (
                f"model {model.model} and the firmware both define the global symbol {self.symbol!r} "
                f"({model.place}, {firmware.place})"
            )
        return (
            f"models {first.model} and {second.model} both define the global symbol {self.symbol!r} "
            f"({first.place}, {second.place})"
        )


def compared_objects(model: str | None, path: Path) -> Iterator[ComparedObject]:
    """Yield the ELF objects in ``path``, an object (``.o``) or a static library (``.a``); other formats are ignored.

    Raises ``InputFileError`` if it cannot be read or is damaged.
    """
    # A model may also be linked as single objects, which CMake's object libraries are.
    data = read_bytes(path, "object of a model")
    parts = members(data, str(path)) if path.suffix == ".a" else iter([("", data)])
    for name, content in parts:
        if content.startswith(_ELF):
            symbols = object_symbols(content, f"{path}({name})" if name else str(path))
            place = f"{path.name}({name})" if name else path.name
            yield ComparedObject(model, place, symbols, content if symbols.weak else b"")


def symbol_conflicts(
    objects: Sequence[ComparedObject], shared: frozenset[str] = frozenset()
) -> Iterator[SymbolConflict]:
    """Yield a conflict for each symbol, in the order of objects and names.

    ``shared`` are symbols that models share on purpose. A symbol that the firmware and a model take from each other is
    not a conflict, and neither is one that the firmware shares with itself.
    """
    shared |= {_LTO_MARK}
    reported: set[str] = set()
    # The first definition in link order is the one that a linker takes from static libraries.
    strong = _first_of(found for found in objects if found.model is not None)
    firmware = _first_of(found for found in objects if found.model is None)
    weak = _weak_in_two_models(objects) - shared
    seen: dict[str, list[tuple[ComparedObject, str]]] = {}
    for found in objects:
        if found.model is None:
            continue
        definitions = _definitions(found, weak)
        for name in sorted(found.symbols.defined | found.symbols.weak):
            first = strong.get(name)
            # A model may define its own symbol weakly and strongly; only another model's definition can be mistaken for
            # it.
            if first is None or first.model == found.model:
                first = _other_definition(found, definitions.get(name), seen.get(name, []))
            if first is None and name in found.symbols.defined:
                first = firmware.get(name)
            # One report for each name: with three models the second conflict has the same cause and the same repair.
            if first is not None and name not in reported:
                reported.add(name)
                yield SymbolConflict(name, first, found)
        for name, definition in definitions.items():
            seen.setdefault(name, []).append((found, definition))
    yield from _borrowed(objects, strong, reported)


def _borrowed(
    objects: Sequence[ComparedObject], strong: Mapping[str, ComparedObject], reported: set[str]
) -> Iterator[SymbolConflict]:
    # A model that defines the name in any of its objects does not borrow it.
    own = {(found.model, name) for found in objects for name in found.symbols.defined | found.symbols.weak}
    for found in objects:
        for name in sorted(found.symbols.declared) if found.model is not None else ():
            if name in strong and (found.model, name) not in own and name not in reported:
                reported.add(name)
                yield SymbolConflict(name, strong[name], found, borrowed=True)


def _first_of(objects: Iterable[ComparedObject]) -> dict[str, ComparedObject]:
    """Return each name that is defined, with the first object that defines it."""
    # Of equal keys the last one stays.
    return {name: found for found in reversed([*objects]) for name in found.symbols.defined}


def _weak_in_two_models(objects: Sequence[ComparedObject]) -> frozenset[str]:
    models: dict[str, set[str]] = {}
    for found in objects:
        for name in found.symbols.weak if found.model is not None else ():
            models.setdefault(name, set()).add(str(found.model))
    return frozenset(name for name, users in models.items() if len(users) > 1)


def _definitions(found: ComparedObject, names: frozenset[str]) -> Mapping[str, str]:
    # Hashing definitions reads relocations, which is slow: only names that at least two models have are worth it.
    wanted = found.symbols.weak & names
    return weak_definitions(found.content, wanted, found.place) if wanted else {}


def _other_definition(
    found: ComparedObject, mine: str | None, seen: Iterable[tuple[ComparedObject, str]]
) -> ComparedObject | None:
    """Return the first object in ``seen`` of another model that defines the name differently from ``found``."""
    for other, theirs in seen:
        # Two common symbols have no definitions that could differ, but share one variable: that is why SHARED differs
        # even from itself.
        if other.model != found.model and MERGED not in {mine, theirs} and (theirs != mine or mine == SHARED):
            return other
    return None
