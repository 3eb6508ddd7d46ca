"""The project file as plain values beside the position of each: what every check works on.

Reading a document decides everything that is about YAML and nothing that is about models: encoding, syntax, duplicate
keys, tags, ambiguous scalars, empty values, aliases that multiply. Such a value is reported once; ``refused`` keeps
its path so that later checks do not complain about it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.core import ProjectFileError
from mlfbuild.project.nodes import ListNode, MappingNode, Node, ScalarNode, SyntaxProblem, compose
from mlfbuild.project.problems import KeyPath, Position, Problem, end_of, quoted
from mlfbuild.project.scalars import ScalarError, read_scalar

_LARGEST_FILE = 1024 * 1024
_MOST_VALUES = 50_000
_KEY_ADVICE = {"": "give it a name", "<<": "merge keys are not accepted, repeat the keys"}
_YAML_TAGS = "tag:yaml.org,2002:"


@dataclass
class Document:
    """Plain values, where they stand, and what was wrong with them."""

    data: object = None
    values: dict[KeyPath, Position] = field(default_factory=dict)
    """Where the value of each path starts."""
    keys: dict[KeyPath, Position] = field(default_factory=dict)
    """Where the key of each path starts; list items have none."""
    problems: list[Problem] = field(default_factory=list)
    refused: set[KeyPath] = field(default_factory=set)

    def key_position(self, path: KeyPath) -> Position:
        """Return where the key of ``path`` starts, or the nearest thing around it."""
        for end in range(len(path), -1, -1):
            position = self.keys.get(path[:end]) or self.values.get(path[:end])
            if position:
                return position
        return Position(1, 1)

    def value_position(self, path: KeyPath) -> Position:
        """Return where the value of ``path`` starts, or the nearest thing around it."""
        return self.values.get(path) or self.key_position(path)

    def add(self, path: KeyPath, reason: str, *, at_key: bool = False) -> None:
        """Report a mistake unless the value at ``path``, or one around it, was refused already."""
        if any(path[:end] in self.refused for end in range(len(path) + 1)):
            return
        position = self.key_position(path) if at_key else self.value_position(path)
        self.problems.append(Problem(position, path, reason))

    def refuse(self, path: KeyPath, reason: str) -> None:
        """Report a mistake that makes the value at ``path`` meaningless."""
        self.add(path, reason)
        self.refused.add(path)


def read_document(path: Path) -> Document:
    """Read the project file at ``path``.

    Raises ``ProjectFileError`` where there is no file, no text or no YAML; other mistakes are in ``problems``.
    """
    text = _read_text(path)
    try:
        root = compose(text)
        if root is None:
            raise SyntaxProblem(Position(1, 1), "empty; let `mlfbuild init` write a starter into an empty folder")
        return _Reader().read(root)
    except SyntaxProblem as error:
        raise ProjectFileError([f"{path}:{error.problem}"]) from None


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ProjectFileError(
            [f"{path}: no such project file; name another with -f, or let `mlfbuild init` write a starter"]
        ) from None
    except IsADirectoryError:
        raise ProjectFileError(
            [f"{path}: is a folder, not a project file; name the folder of a project with -C"]
        ) from None
    except OSError as error:
        raise ProjectFileError(
            [f"{path}: cannot read the project file: {error.strerror}; check the path and its permissions"]
        ) from None
    if len(data) > _LARGEST_FILE:
        raise ProjectFileError(
            [f"{path}: larger than {_LARGEST_FILE // 1024} KiB, no project file; name another with -f"]
        )
    return _decode(path, data)


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = end_of(data[: error.start].decode("utf-8-sig", errors="replace"))
        problem = Problem(place, (), "not UTF-8 text; save the file as UTF-8")
        raise ProjectFileError([f"{path}:{problem}"]) from None


class _Reader:
    """Turns nodes into plain values; every alias is expanded, up to a number of values no honest file has."""

    def __init__(self) -> None:
        self.document = Document()

    def read(self, root: Node) -> Document:
        self.document.data = self.value(root, ())
        return self.document

    def value(self, node: Node, path: KeyPath) -> object:
        document = self.document
        document.values[path] = node.position
        if len(document.values) > _MOST_VALUES:
            raise SyntaxProblem(node.position, f"more than {_MOST_VALUES} values, aliases expanded")
        if node.tag is not None:
            document.refuse(
                path, f"tag {quoted(node.tag.replace(_YAML_TAGS, '!!'))}; tags are not accepted, write the plain value"
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
        except ScalarError as error:
            self.document.refuse(path, str(error))
            return None
        if value is None and path:
            self.document.refuse(path, "has no value; give one or remove the key")
        return value

    def entries(self, node: MappingNode, path: KeyPath) -> Iterator[tuple[str, Node]]:
        """Yield the keys that can be used, each once."""
        for key_node, value in node.entries:
            key = self.key(key_node, path)
            if key is None:
                continue
            place = (*path, key)
            first = self.document.keys.get(place)
            if first is not None:
                reason = f"duplicate key, first on line {first.line}"
                self.document.problems.append(Problem(key_node.position, place, reason))
                continue
            self.document.keys[place] = key_node.position
            yield key, value

    def key(self, node: Node, path: KeyPath) -> str | None:
        """Return the text of a key; anything else is reported and ``None``."""
        reason = "a key must be text"
        if isinstance(node, ScalarNode) and node.tag is None:
            with contextlib.suppress(ScalarError):
                key = read_scalar(node.text, plain=node.plain)
                if isinstance(key, str) and key:
                    return key
            reason = f"key {quoted(node.text)} is not plain text; {_KEY_ADVICE.get(node.text, 'put it in quotes')}"
        self.document.problems.append(Problem(node.position, path, reason))
        return None
