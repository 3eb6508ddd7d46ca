"""YAML text -> nodes that know their line and column.

PyYAML's parser turns text into events; composing them here instead of with ``yaml.compose`` keeps what a project file
must not contain visible (tags, a second document) and bounds the depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from mlfbuild.project.problems import Position, Problem, end_of, quoted

_DEEPEST = 20

_ADVICE = (
    ("character '\\t'", "indent with spaces, not with tabs"),
    (
        "mapping values are not allowed",
        "a key stands where none can; check the indentation, and quote text that holds ': '",
    ),
    ("did not find expected", "check indentation and brackets"),
    ("expected <block end>", "check the indentation of this line and the ones before it"),
    ("could not find expected ':'", "a key needs a colon and a space after it"),
    ("expected ',' or", "a bracket is not closed, or a comma is missing"),
    ("while scanning a quoted scalar", "a quote is not closed"),
    ("found character '@'", "quote text that starts with @"),
    ("found character '`'", "quote text that starts with `"),
    ("found character '%'", "quote text that starts with %"),
)


class SyntaxProblem(Exception):  # noqa: N818 - carries a Problem, is never shown itself
    """The text is not YAML as a project file may hold it; nothing after ``problem`` can be read."""

    def __init__(self, position: Position, reason: str) -> None:
        super().__init__(reason)
        self.problem = Problem(position, (), reason)


@dataclass(frozen=True)
class Node:
    """A value as written: position of its first character, explicit tag such as ``!!str`` if any."""

    position: Position
    tag: str | None = None


@dataclass(frozen=True)
class ScalarNode(Node):
    """Text; ``plain`` where it stands without quotes."""

    text: str = ""
    plain: bool = True


@dataclass(frozen=True)
class ListNode(Node):
    """A sequence."""

    items: tuple[Node, ...] = ()


@dataclass(frozen=True)
class MappingNode(Node):
    """A mapping; duplicate keys are still here."""

    entries: tuple[tuple[Node, Node], ...] = ()


def compose(text: str) -> Node | None:
    """Return the root node of the one document in ``text``, ``None`` for an empty file.

    Raises ``SyntaxProblem`` where the text is not YAML, has a second document, or nests too deep.
    """
    try:
        return _Composer(yaml.parse(text, Loader=yaml.SafeLoader)).document()
    except yaml.reader.ReaderError as error:
        character = text[error.position]
        reason = f"control character {quoted(character)}; a project file is plain text"
        raise SyntaxProblem(end_of(text[: error.position]), reason) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_problem(error) from None


def _syntax_problem(error: yaml.MarkedYAMLError) -> SyntaxProblem:
    mark = error.problem_mark or error.context_mark
    reason = f"{error.context or ''} {error.problem or ''}".strip()
    advice = next((advice for words, advice in _ADVICE if words in reason), "")
    position = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
    return SyntaxProblem(position, f"not YAML: {advice or error.problem}")


@dataclass
class _Composer:
    events: Iterator[yaml.Event]
    anchors: dict[str, Node] = field(default_factory=dict)
    depth: int = 0

    def document(self) -> Node | None:
        next(self.events)  # start of the stream
        if isinstance(next(self.events), yaml.StreamEndEvent):
            return None
        root = self.node(next(self.events))
        next(self.events)  # end of the document
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise SyntaxProblem(_start(after), "a second document; a project file is one document")
        return root

    def node(self, event: yaml.Event) -> Node:
        if isinstance(event, yaml.AliasEvent):
            anchored = self.anchors.get(event.anchor or "")
            if anchored is None:
                raise SyntaxProblem(_start(event), f"alias *{event.anchor} names no anchor before it")
            return anchored
        self.depth += 1
        if self.depth > _DEEPEST:
            raise SyntaxProblem(_start(event), f"nested deeper than {_DEEPEST} levels")
        node = self.collection(event)
        self.depth -= 1
        if event.anchor is not None:  # type: ignore[attr-defined]  # scalars and collections have one
            self.anchors[event.anchor] = node  # type: ignore[attr-defined]  # as above
        return node

    def collection(self, event: yaml.Event) -> Node:
        start = _start(event)
        if isinstance(event, yaml.ScalarEvent):
            return ScalarNode(start, event.tag, text=event.value, plain=event.style is None)
        if isinstance(event, yaml.SequenceStartEvent):
            return ListNode(start, event.tag, items=tuple(self.items(yaml.SequenceEndEvent)))
        assert isinstance(event, yaml.MappingStartEvent)
        flat = list(self.items(yaml.MappingEndEvent))
        return MappingNode(start, event.tag, entries=tuple(zip(flat[::2], flat[1::2], strict=True)))

    def items(self, end: type[yaml.Event]) -> Iterator[Node]:
        while not isinstance(event := next(self.events), end):
            yield self.node(event)


def _start(event: yaml.Event) -> Position:
    assert event.start_mark is not None
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)
