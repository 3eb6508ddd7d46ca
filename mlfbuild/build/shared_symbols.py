"""Which global symbols the models of one image share, and share with the rest of the firmware.

Objects are compared, not the image: of two static libraries that define one name, linkers take the one they meet first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.c_analysis import MERGED, SHARED, Symbols, members, object_symbols, weak_definitions
from mlfbuild.core import read_bytes
from mlfbuild.library import SHARED_WORKSPACE

_ELF = b"\x7fELF"
_MEANT_TO_BE_SHARED = {
    SHARED_WORKSPACE,  # of models that the project file says never run at the same time
    "__gnu_lto_slim",  # a mark in every object that GCC leaves to link-time optimisation
}


@dataclass(frozen=True)
class Compiled:
    """One object of a model, or of the rest of the firmware."""

    model: str | None
    """``None`` for the firmware."""
    place: str
    """What messages call it."""
    symbols: Symbols
    content: bytes
    """Of an object with weak symbols: what stands behind them is looked up where another model has them, too."""

    @property
    def weak(self) -> frozenset[str]:
        """The weak symbols that may be a clash."""
        return self.symbols.weak - _MEANT_TO_BE_SHARED


@dataclass(frozen=True)
class Clash:
    """One symbol of two objects."""

    symbol: str
    first: Compiled
    second: Compiled
    borrowed: bool = False
    """Whether the second only uses what the first defines."""

    @property
    def with_firmware(self) -> bool:
        """Whether only one of the two is a model's."""
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


def compiled_objects(model: str | None, path: Path) -> Iterator[Compiled]:
    """Yield what can be compared of the object or static library (``.a``) ``path``.

    Raises ``InputFileError`` where it cannot be read or is damaged.
    """
    data = read_bytes(path, "object of a model")
    parts = members(data, str(path)) if path.suffix == ".a" else iter([("", data)])
    for name, content in parts:
        if content.startswith(_ELF):
            symbols = object_symbols(content, f"{path}({name})" if name else str(path))
            place = f"{path.name}({name})" if name else path.name
            yield Compiled(model, place, symbols, content if symbols.weak else b"")


def clashes(objects: Sequence[Compiled]) -> Iterator[Clash]:
    """Yield a clash for each symbol, in the order of objects and names.

    What the firmware gives to a model, and takes from one, is no clash; nor is what the firmware shares with itself.
    """
    told: set[str] = set()
    strong = _first_of((found, found.symbols.defined) for found in objects if found.model is not None)
    firmware = _first_of((found, found.symbols.defined) for found in objects if found.model is None)
    weak = _weak_in_two_models(objects)
    seen: dict[str, list[tuple[Compiled, str]]] = {}
    for found in objects:
        if found.model is None:
            continue
        definitions = _definitions(found, weak)
        for name in sorted(found.symbols.defined | found.symbols.weak):
            first = strong.get(name)
            if first is None or first.model == found.model:
                first = _other_definition(found, definitions.get(name), seen.get(name, []))
            if first is None and name in found.symbols.defined:
                first = firmware.get(name)
            if first is not None and name not in told:
                told.add(name)
                yield Clash(name, first, found)
        for name, definition in definitions.items():
            seen.setdefault(name, []).append((found, definition))
    yield from _borrowed(objects, strong, told)


def _borrowed(objects: Sequence[Compiled], strong: Mapping[str, Compiled], told: set[str]) -> Iterator[Clash]:
    own = {(found.model, name) for found in objects for name in found.symbols.defined | found.symbols.weak}
    for found in objects:
        for name in sorted(found.symbols.declared) if found.model is not None else ():
            if name in strong and (found.model, name) not in own and name not in told:
                told.add(name)
                yield Clash(name, strong[name], found, borrowed=True)


def _first_of(names: Iterable[tuple[Compiled, Iterable[str]]]) -> dict[str, Compiled]:
    first: dict[str, Compiled] = {}
    for found, defined in names:
        for name in defined:
            first.setdefault(name, found)
    return first


# Weak and common symbols ---------------------------------------------------------------------------------------------


def _weak_in_two_models(objects: Sequence[Compiled]) -> frozenset[str]:
    models: dict[str, set[str]] = {}
    for found in objects:
        for name in found.weak if found.model is not None else ():
            models.setdefault(name, set()).add(str(found.model))
    return frozenset(name for name, users in models.items() if len(users) > 1)


def _definitions(found: Compiled, names: frozenset[str]) -> Mapping[str, str]:
    wanted = found.weak & names
    return weak_definitions(found.content, wanted, found.place) if wanted else {}


def _other_definition(found: Compiled, mine: str | None, seen: Iterable[tuple[Compiled, str]]) -> Compiled | None:
    """Return the first of ``seen``, of another model, that means something else by a name than ``found``."""
    for other, theirs in seen:
        if other.model != found.model and MERGED not in {mine, theirs} and (theirs != mine or mine == SHARED):
            return other
    return None
