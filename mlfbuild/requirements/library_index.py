"""Which file of a library defines a name, and what each of its files mentions and includes."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.c_analysis import (
    ANYTHING,
    COMPUTED,
    CXX_SUFFIXES,
    HEADER_SUFFIXES,
    Include,
    Macro,
    Mentions,
    Symbols,
    c_mentions,
    c_symbols,
    defined_macro,
    object_symbols,
    tokens,
    words_in,
)
from mlfbuild.library import text_of
from mlfbuild.requirements.types import Source

_CXX_SUFFIXES = CXX_SUFFIXES | {".cxx"}
ASSEMBLER_SUFFIXES = frozenset({".s", ".S", ".asm"})
_GLOBAL = re.compile(r"^[ \t]*(?:\.globa?l|\.weak|EXPORT|PUBLIC|XDEF)[ \t]+([^\n]+)", re.MULTILINE)
_ASSEMBLER_INCLUDE = re.compile(r'^[ \t]*(?:#[ \t]*include|\.include|\.incbin)[ \t]+[<"]([^">\n]+)[">]', re.MULTILINE)
_ASSEMBLER_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|@[^\n]*", re.DOTALL)
_NUMBERS = re.compile(r"(?<![\w.])(?:[-+]?\.?\d[\w.]*[ \t\r\n]*,[ \t\r\n]*)+")
_LONGEST = 256  # characters of a name that is looked for in two words
_LEAST_PIECE = 2  # characters; one-letter words would make up any name


@dataclass(frozen=True)
class FileFacts:
    """What is known of a file."""

    mentions: Mentions
    defined: frozenset[str] = frozenset()
    local: frozenset[str] = frozenset()
    """Names that are the file's own."""


def facts_of_code(content: bytes, where: str) -> FileFacts:
    """Return the facts of C text or of an ELF object; raises ``InputFileError`` for an object that is damaged.

    Lists of numbers, which most generated code consists of, are passed over: they mention nothing.
    """
    if content.startswith(b"\x7fELF"):
        names = object_symbols(content, where).declared
        return FileFacts(Mentions((), names, {}, {}, ()))
    text = _NUMBERS.sub(lambda found: "\n" if "\n" in found[0] else " ", content.decode(errors="replace"))
    return FileFacts(c_mentions(text))


class LibraryIndex:
    """The files of ``source``: its sources are read at once, its headers when they are included."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._facts: dict[str, FileFacts] = {}
        self._mentioned: dict[str, Mentions] = {}
        self._texts = {path: text_of(source.files[path]) for path in source.sources}
        self._macros = self._header_macros()
        self._definers: defaultdict[str, list[str]] = defaultdict(list)
        for path in source.sources:
            for name in self._defined_by(path):
                self._definers[name].append(path)

    def facts(self, path: str) -> FileFacts:
        """Return what the library's file at ``path`` mentions and defines."""
        if path not in self._facts:
            self._facts[path] = self._read(path)
        return self._facts[path]

    @property
    def defined(self) -> Collection[str]:
        """The names that sources define."""
        return self._definers.keys()

    def definers(self, name: str) -> Collection[str]:
        """Return the sources that define ``name``, in whatever branch."""
        return self._definers.get(name, ())

    def included(self, includes: Iterable[Include], path: str) -> Iterator[str]:
        """Yield the library's files that the file at ``path`` includes; those of others are not among them.

        Where a macro says which file it is, that may be any header.
        """
        for include in includes:
            if include.path == COMPUTED:
                yield from (file for file in self._source.files if posixpath.splitext(file)[1] in HEADER_SUFFIXES)
                continue
            own = [posixpath.dirname(path)] if include.quoted and path else []
            for folder in (*own, *self._source.include_dirs):
                found = posixpath.normpath(posixpath.join(folder, include.path))
                if found in self._source.files:
                    yield found
                    break

    def below_include_dirs(self) -> Iterator[str]:
        """Yield the files that an include can name."""
        folders = [posixpath.normpath(folder) for folder in self._source.include_dirs]
        for path in self._source.files:
            if any(folder == "." or path.startswith(f"{folder}/") for folder in folders):
                yield path

    def _read(self, path: str) -> FileFacts:
        text = self._texts.get(path)
        if text is not None and posixpath.splitext(path)[1] in ASSEMBLER_SUFFIXES:
            return _assembler_facts(text)
        is_header = text is None
        text = text_of(self._source.files[path]) if text is None else text
        symbols = c_symbols(text, cplusplus=_is_cplusplus(path), macros=self._macros)
        defined = symbols.defined if is_header else _plain_names(symbols)
        return FileFacts(self._mentions(path), defined, symbols.local)

    def _defined_by(self, path: str) -> frozenset[str]:
        """Return what compiling the source at ``path`` defines, in files that it includes, too."""
        seen, waiting = {path}, [path]
        defined: set[str] = set()
        while waiting:
            at = waiting.pop()
            facts = self.facts(at)
            defined |= facts.defined
            new = set(self.included(facts.mentions.includes, at)) - seen
            seen |= new
            waiting += new
        return frozenset(defined)

    def _mentions(self, path: str) -> Mentions:
        if path not in self._mentioned:
            text = self._texts[path] if path in self._texts else text_of(self._source.files[path])
            self._mentioned[path] = c_mentions(text, cplusplus=_is_cplusplus(path))
        return self._mentioned[path]

    def _header_macros(self) -> Mapping[str, Macro]:
        """Return the macros of all headers that a source can come to include: they may say what is ``static``."""
        macros: dict[str, Macro] = {}
        waiting = list(self._source.sources)
        seen = set(waiting)
        while waiting:
            path = waiting.pop()
            if path not in self._texts:
                macros.update(_macros_in(text_of(self._source.files[path])))
            new = [other for other in self.included(self._mentions(path).includes, path) if other not in seen]
            seen.update(new)
            waiting += new
        return macros


def _macros_in(text: str) -> Iterator[tuple[str, Macro]]:
    for token in tokens(text):
        found = defined_macro(token.text) if token.kind == "directive" and "define" in token.text else None
        if found is not None:
            yield found


def _is_cplusplus(path: str) -> bool:
    return posixpath.splitext(path)[1] in _CXX_SUFFIXES


def _plain_names(symbols: Symbols) -> frozenset[str]:
    """Return the identifiers in the names that a source defines: those of C++ have classes and namespaces in them."""
    names = symbols.defined | symbols.weak
    return frozenset(word for name in names for word in (words_in(name) if "::" in name or "(" in name else (name,)))


def _assembler_facts(text: str) -> FileFacts:
    """Return the facts of an assembler source: all its words are mentioned."""
    code = _ASSEMBLER_COMMENT.sub(" ", text)
    defined = frozenset(word for line in _GLOBAL.findall(code) for word in words_in(line))
    includes = tuple(Include(path, True) for path in _ASSEMBLER_INCLUDE.findall(text))
    return FileFacts(Mentions(includes, words_in(code), {}, {}, ()), defined)


def names_like(patterns: Iterable[str], names: Collection[str], words: Collection[str]) -> Iterator[str]:
    """Yield those of ``names`` that one of ``patterns`` makes: by its own text, or of two of ``words`` alone.

    Takes time linear in the length of each name, whatever the pattern.
    """
    for pattern in patterns:
        first, *others = pattern.split(ANYTHING)
        if pattern.strip(ANYTHING):
            yield from (name for name in names if _fits(name, first, others))
        else:
            yield from (name for name in names if _is_joined(name, words))


def _fits(name: str, first: str, others: Sequence[str]) -> bool:
    """Whether ``name`` begins with ``first`` and has the ``others`` behind that, in order, the last at its end."""
    if not others:
        return name == first
    *middle, last = others
    at, end = len(first), len(name) - len(last)
    if not (name.startswith(first) and name.endswith(last)):
        return False
    for piece in middle:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


def _is_joined(name: str, words: Collection[str]) -> bool:
    """Whether ``name`` is one of ``words`` behind another, or behind a number."""
    pieces = range(_LEAST_PIECE, min(len(name), _LONGEST))
    return any(name[:at] in words and (name[at:] in words or name[at:].isdigit()) for at in pieces)
