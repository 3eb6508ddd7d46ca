"""The project file as plain values together with the position of each, as input for every check.

Reading a document settles everything that concerns YAML rather than models: encoding, syntax, duplicate keys, tags,
ambiguous scalars, empty values, aliases that multiply. Such a value is reported once; ``refused`` keeps its path, so
that later checks do not report it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.core import Diagnostic, Mistake, ProjectFileError, in_quotes
from mlfbuild.project.nodes import ListNode, MappingNode, ScalarNode, SyntaxProblem, YamlNode, compose
from mlfbuild.project.problems import KeyPath, Position, Problem, end_of
from mlfbuild.project.scalars import read_scalar

# Far above any real project file; a model or a log that was named by mistake is refused before YAML parses it.
_LARGEST_FILE = 1024 * 1024
# Real project files have some hundreds; only aliases of aliases lead to so many.
_MOST_VALUES = 50_000
_KEY_HINTS = {"": "write a name", "<<": "repeat the keys, because merge keys are not accepted"}
_YAML_TAGS = "tag:yaml.org,2002:"


@dataclass
class Document:
    """Plain values, their positions, and the mistakes found in them."""

    data: object = None
    values: dict[KeyPath, Position] = field(default_factory=dict)
    """The position of the value of each path."""
    keys: dict[KeyPath, Position] = field(default_factory=dict)
    """The position of the key of each path; list items have none."""
    problems: list[Problem] = field(default_factory=list)
    refused: set[KeyPath] = field(default_factory=set)

    def key_position(self, path: KeyPath) -> Position:
        """Return where the key of ``path`` starts, or of the nearest enclosing value.

        Lines and columns count from 1. For a path that is not in the file it is the nearest part that is.
        """
        for end in range(len(path), -1, -1):
            position = self.keys.get(path[:end]) or self.values.get(path[:end])
            if position:
                return position
        return Position(1, 1)

    def value_position(self, path: KeyPath) -> Position:
        """Return where the value of ``path`` starts, or of the nearest enclosing value.

        Lines and columns count from 1. Use ``key_position`` for a mistake about an entry as a whole, such as a missing
        key.
        """
        return self.values.get(path) or self.key_position(path)

    def mapping(self, *path: str) -> Mapping[str, object]:
        """Return the mapping at ``path``, an empty one if there is none.

        Values of the wrong type count as none: the checks of types report them.
        """
        return mapping_in(self.data, *path)

    def entries(self, section: str) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield the names and mappings of a section, without entries that are not mappings.

        For checks that run although other values are wrong: an entry of another type is reported by the check of types,
        and skipped here.
        """
        for name, entry in self.mapping(section).items():
            if isinstance(entry, dict):
                yield name, entry

    def change(self, path: KeyPath, value: object) -> None:
        """Set the ``value`` at ``path``, the keys from the outside to the inside; ``None`` removes it.

        Mappings on the way are made. A value that is not a mapping there is left to the checks of types.
        """
        entry: object = self.data
        for key in path[:-1]:
            entry = entry.setdefault(key, {}) if isinstance(entry, dict) else None
        if isinstance(entry, dict):
            entry.pop(path[-1], None)
            entry.update({} if value is None else {path[-1]: value})

    def add(self, path: KeyPath, mistake: Mistake, *, at_key: bool = False) -> None:
        """Report a mistake unless the value at ``path``, or one around it, was already refused.

        Its place is that of the value or, with ``at_key``, that of the key: use this for a mistake about the entry as a
        whole, such as a missing key.
        """
        if any(path[:end] in self.refused for end in range(len(path) + 1)):
            return
        position = self.key_position(path) if at_key else self.value_position(path)
        self.problems.append(Problem(position, path, mistake))

    def report(self, path: KeyPath, code: str, reason: str, hint: str, *, at_key: bool = False) -> None:
        """Report the mistake with these fields as ``add`` does.

        ``path`` is the way to the value, ``code`` the stable id of the mistake, ``hint`` may be empty. With ``at_key``,
        the place is that of the key. Nothing is reported below a value that was refused.
        """
        self.add(path, Mistake(code, reason=reason, hint=hint), at_key=at_key)

    def refuse(self, path: KeyPath, mistake: Mistake) -> None:
        """Report a mistake that makes the value at ``path`` meaningless.

        Later mistakes at ``path`` and in what it contains are dropped: they would be consequences of this one.
        """
        self.add(path, mistake)
        self.refused.add(path)


def mapping_in(value: object, *path: str) -> Mapping[str, object]:
    """Return the mapping at ``path`` in a plain value, an empty one if there is none.

    ``path`` are keys from the outside to the inside. A value of the wrong type on the way counts as missing, so that
    checks need no tests of types.
    """
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def read_document(path: Path) -> Document:
    """Read the project file at ``path``.

    Raises ``ProjectFileError`` if there is no file, no text or no YAML; other mistakes are in ``problems``.
    """
    text = _read_text(path)
    try:
        root = compose(text)
        if root is None:
            hint = "run `mlfbuild init` in an empty folder to write a project file"
            raise SyntaxProblem(Position(1, 1), Mistake("project-file-empty", reason="the file is empty", hint=hint))
        return _Reader().read(root)
    except SyntaxProblem as error:
        raise ProjectFileError([error.problem.in_file(path)]) from None


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            # One byte more than allowed shows that the file is too large, whatever its size, and devices have none.
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ProjectFileError([_unreadable(path, error)]) from None
    if len(data) > _LARGEST_FILE:
        reason = f"larger than {_LARGEST_FILE // 1024} KiB, so it is not a project file"
        raise ProjectFileError.of("project-file-too-large", str(path), reason=reason, hint="name another file with -f")
    return _decode(path, data)


def _unreadable(path: Path, error: OSError) -> Diagnostic:
    if isinstance(error, FileNotFoundError):
        hint = "correct its path, or run `mlfbuild init` to write one"
        return Diagnostic("no-project-file", str(path), reason="no such project file", hint=hint)
    if isinstance(error, IsADirectoryError):
        hint = "name the folder of a project with -C"
        return Diagnostic("project-file-is-folder", str(path), reason="is a folder, not a project file", hint=hint)
    reason = f"cannot read the project file: {error.strerror}"
    hint = "check the path and its permissions"
    return Diagnostic("project-file-unreadable", str(path), reason=reason, hint=hint)


def _decode(path: Path, data: bytes) -> str:
    try:
        # Editors of Windows put a byte order mark before UTF-8, which the plain codec would take for text.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = end_of(data[: error.start].decode("utf-8-sig", errors="replace"))
        hint = "save the file as UTF-8, or name another one with -f"
        mistake = Mistake("not-utf8", reason="not UTF-8 text", hint=hint)
        raise ProjectFileError([Problem(place, (), mistake).in_file(path)]) from None


class _Reader:
    """Turns nodes into plain values; every alias is expanded, up to a limit far above that of a real file."""

    def __init__(self) -> None:
        self.document = Document()

    def read(self, root: YamlNode) -> Document:
        self.document.data = self.value(root, ())
        return self.document

    def value(self, node: YamlNode, path: KeyPath) -> object:
        document = self.document
        document.values[path] = node.position
        # Aliases are expanded here: ten lines of them, each with ten of the one before, would be ten billion values.
        if len(document.values) > _MOST_VALUES:
            reason = f"more than {_MOST_VALUES} values after expanding aliases"
            raise SyntaxProblem(node.position, Mistake("too-many-values", reason=reason))
        if node.tag is not None:
            tag = in_quotes(node.tag.replace(_YAML_TAGS, "!!"))
            # Tags can make parsers construct objects, and values such as !!binary have no meaning here.
            document.refuse(
                path, Mistake("yaml-tag", reason=f"tag {tag} is not accepted", hint="write the plain value")
            )
            return None
        if isinstance(node, ScalarNode):
            return self.scalar(node, path)
        if isinstance(node, ListNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.items)]
        assert isinstance(node, MappingNode)
        return {key: self.value(value, (*path, key)) for key, value in self.entries(node, path)}

    def scalar(self, node: ScalarNode, path: KeyPath) -> object:
        try:
            value = read_scalar(node.text, plain=node.plain)
        except Mistake as mistake:
            self.document.refuse(path, mistake)
            return None
        # `flash:` without a value is a key that was begun and forgotten; taking it for the default would hide that.
        if value is None and path:
            hint = "write a value or remove the key"
            self.document.refuse(path, Mistake("missing-value", reason="has no value", hint=hint))
        return value

    def entries(self, node: MappingNode, path: KeyPath) -> Iterator[tuple[str, YamlNode]]:
        """Yield the keys that can be used, each once."""
        for key_node, value in node.entries:
            key = self.key(key_node, path)
            if key is None:
                continue
            place = (*path, key)
            # Most parsers of YAML keep the last of two equal keys without a message, although YAML forbids them.
            first = self.document.keys.get(place)
            if first is not None:
                reason = f"duplicate key, first on line {first.line}"
                mistake = Mistake("duplicate-key", reason=reason, hint="rename or remove one")
                # Not with `add`, which says nothing about a key whose first value was refused.
                self.document.problems.append(Problem(key_node.position, place, mistake))
                continue
            self.document.keys[place] = key_node.position
            yield key, value

    def key(self, node: YamlNode, path: KeyPath) -> str | None:
        """Return the text of a key; any other key is reported and ``None``."""
        mistake = Mistake("key-is-not-text", reason="a key must be text")
        if isinstance(node, ScalarNode) and node.tag is None:
            with contextlib.suppress(Mistake):
                key = read_scalar(node.text, plain=node.plain)
                if isinstance(key, str) and key:
                    return key
            hint = _KEY_HINTS.get(node.text, "put it in quotes")
            mistake = Mistake("key-is-not-text", reason=f"key {in_quotes(node.text)} is not plain text", hint=hint)
        self.document.problems.append(Problem(node.position, path, mistake))
        return None
