"""The smallest set of a library's files that is sure to hold what some code calls.

Sure, because no preprocessor decides here: the definitions of every branch count, the calls in every branch count, and
of several files that define a name all are taken. Small, because a file is taken only where its names are mentioned: a
prototype mentions nothing, an inline function or a macro of a header only where it is reached itself. A name that no
file of the library defines is left to the linker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from mlfbuild.c_analysis import HEADER_SUFFIXES
from mlfbuild.requirements.identity import content_hash
from mlfbuild.requirements.library_index import FileFacts, LibraryIndex, facts_of_code, names_like
from mlfbuild.requirements.types import Source


def needed(source: Source, code: Iterable[bytes]) -> Source:
    """Return ``source`` with only the files that ``code`` needs, and its licence files.

    ``code`` is the contents of C and C++ sources, of headers, and of ELF objects. Raises ``InputFileError`` for an
    object that is damaged.
    """
    return Needs(source).of(code)


def needs_key(source: Source, code: Iterable[bytes]) -> str:
    """Return the hash of everything that decides what ``needed`` returns: whoever remembers it need not ask again."""
    digest = hashlib.sha256(content_hash(source).encode())
    for content in sorted(hashlib.sha256(content).digest() for content in code):
        digest.update(content)
    return digest.hexdigest()


class Needs:
    """What pieces of code need of one library, whose files are read once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._index = LibraryIndex(source)

    def of(self, code: Iterable[bytes]) -> Source:
        """Return the library with the files that ``code`` needs, as ``needed`` does."""
        search = _Search(self._index)
        for number, content in enumerate(code):
            search.take_code(facts_of_code(content, f"object {number + 1}"))
        if self._source.public_headers:
            search.take_headers(path for path in self._index.below_include_dirs() if _is_header(path))
        search.finish()
        return self._only(search.taken)

    def _only(self, taken: Iterable[str]) -> Source:
        kept = {*taken, *self._source.license_files}
        files = {path: content for path, content in self._source.files.items() if path in kept}
        return replace(
            self._source,
            files=files,
            sources=tuple(path for path in self._source.sources if path in files),
            include_dirs=tuple(folder for folder in self._source.include_dirs if _has_files(folder, files)),
        )


class _Search:
    """Files and names that have been reached, until nothing new is."""

    def __init__(self, index: LibraryIndex) -> None:
        self.taken: dict[str, None] = {}
        self._index = index
        self._reached: set[str] = set()
        self._waiting: list[str] = []
        self._parts: dict[str, list[frozenset[str]]] = {}  # what names of headers stand for
        self._macros: dict[str, bool] = {}  # and whether they take arguments
        self._patterns: dict[str, tuple[str, ...]] = {}  # what macros paste
        self._heads: set[frozenset[str]] = set()  # declarations at file scope

    def take_code(self, facts: FileFacts) -> None:
        """Count what a file of somebody else mentions, and the headers that it includes."""
        self._mention(facts)
        self.take_headers(self._index.included(facts.mentions.includes, ""))

    def take_headers(self, paths: Iterable[str]) -> None:
        """Take files that are included, and those that they include."""
        waiting = list(paths)
        while waiting:
            path = waiting.pop()
            if path in self.taken:
                continue
            self.taken[path] = None
            facts = self._index.facts(path)
            self._heads.update(facts.mentions.heads)
            self._wait_for(facts.mentions.names)
            for name, words in facts.mentions.functions.items():
                if name in facts.defined:  # whoever includes the file compiles it
                    self._wait_for(words)
                else:
                    self._add_part(name, words)
            self._add_macros(facts)
            waiting += self._index.included(facts.mentions.includes, path)

    def finish(self) -> None:
        """Follow what is reached to its end."""
        while True:
            while self._waiting:
                self._reach(self._waiting.pop())
            self._expand_heads()
            self._paste()
            if not self._waiting:
                return

    def _reach(self, name: str) -> None:
        if name in self._reached:
            return
        self._reached.add(name)
        for words in self._parts.get(name, ()):
            self._wait_for(words)
        for path in self._index.definers(name):
            if path not in self.taken:
                self.taken[path] = None
                facts = self._index.facts(path)
                self._mention(facts)
                self.take_headers(self._index.included(facts.mentions.includes, path))

    def _mention(self, facts: FileFacts) -> None:
        """Count all that a compiled file mentions, but for the names that it has itself."""
        mentions = facts.mentions
        self._add_macros(facts)
        self._heads.update(mentions.heads)
        for words in (mentions.names, *mentions.functions.values()):
            self._wait_for(words - facts.local)

    def _add_macros(self, facts: FileFacts) -> None:
        for name, macro in facts.mentions.macros.items():
            self._add_part(name, macro.names)
            self._macros[name] = macro.is_function or self._macros.get(name, False)
            if macro.pasted:
                self._patterns[name] = (*self._patterns.get(name, ()), *macro.pasted)

    def _add_part(self, name: str, words: frozenset[str]) -> None:
        self._parts.setdefault(name, []).append(words)
        if name in self._reached:
            self._wait_for(words)

    def _wait_for(self, words: Iterable[str]) -> None:
        self._waiting += [word for word in words if word not in self._reached]

    def _expand_heads(self) -> None:
        """Count the macros at file scope, and the whole of a declaration where one of them takes arguments.

        Such a macro may make a function that calls them.
        """
        for head in self._heads:
            macros = head & self._macros.keys()
            self._wait_for(head if any(self._macros[name] for name in macros) else macros)

    def _paste(self) -> None:
        """Count the names that ``##`` of a reached macro can make."""
        patterns = {pattern for name, pasted in self._patterns.items() if name in self._reached for pattern in pasted}
        self._wait_for(names_like(patterns, {*self._index.defined, *self._parts}, self._reached))


def _is_header(path: str) -> bool:
    return any(path.endswith(suffix) for suffix in HEADER_SUFFIXES)


def _has_files(folder: str, files: Iterable[str]) -> bool:
    return folder in {"", "."} or any(path.startswith(f"{folder.rstrip('/')}/") for path in files)
