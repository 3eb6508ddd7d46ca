"""YAML text -> nodes that know their line and column.

PyYAML's parser turns text into events. Composing them here instead of with ``yaml.compose`` keeps tags, duplicate keys
and a second document visible, which a project file must not contain, and limits the depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from mlfbuild.core import Mistake, in_quotes
from mlfbuild.project.problems import Position, Problem, end_of

# Composing is recursive: without a limit, a file of brackets would end in a RecursionError.
_DEEPEST = 20

_MEANINGS = (
    ("character '\\t'", "a tab in the indentation", "indent with spaces"),
    (
        "mapping values are not allowed",
        "a key in the middle of a value",
        "quote text with ': ', or check the indentation",
    ),
    ("did not find expected", "the structure is broken here", "check indentation and brackets"),
    (
        "expected <block end>",
        "the structure is broken here",
        "check the indentation of this line and those before",
    ),
    ("could not find expected ':'", "a key without a colon", "write a colon and a space after the key"),
    ("expected ',' or", "a bracket is not closed, or a comma is missing", ""),
    ("while scanning a quoted scalar", "a quote is not closed", ""),
    ("while scanning an alias", "text starts with *", "put it in quotes"),
    ("found character '@'", "text starts with @", "put it in quotes"),
    ("found character '`'", "text starts with `", "put it in quotes"),
    ("found character '%'", "text starts with %", "put it in quotes"),
)
"""Words of PyYAML's errors, with the reason and the hint for a user."""


class SyntaxProblem(Exception):  # noqa: N818 - carries a Problem and is never shown itself
    """The text is not YAML that a project file may contain; nothing after ``problem`` can be read."""

    def __init__(self, position: Position, mistake: Mistake) -> None:
        super().__init__(mistake)
        self.problem = Problem(position, (), mistake)


@dataclass(frozen=True)
class YamlNode:
    """A value as written: position of its first character, explicit tag such as ``!!str`` if any."""

    position: Position
    tag: str | None = None


@dataclass(frozen=True)
class ScalarNode(YamlNode):
    """Text; ``plain`` if it is written without quotes."""

    text: str = ""
    plain: bool = True


@dataclass(frozen=True)
class ListNode(YamlNode):
    """A sequence."""

    items: tuple[YamlNode, ...] = ()


@dataclass(frozen=True)
class MappingNode(YamlNode):
    """A mapping; duplicate keys are kept."""

    entries: tuple[tuple[YamlNode, YamlNode], ...] = ()


def compose(text: str) -> YamlNode | None:
    """Return the root node of the one document in ``text``, ``None`` for an empty file.

    Raises ``SyntaxProblem`` if the text is not YAML, has a second document, or nests too deeply.
    """
    try:
        return _Composer(yaml.parse(text, Loader=yaml.SafeLoader)).document()
    except yaml.reader.ReaderError as error:
        character = text[error.position]
        mistake = Mistake("control-character", reason=f"control character {in_quotes(character)}", hint="remove it")
        raise SyntaxProblem(end_of(text[: error.position]), mistake) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_problem(error) from None


def _syntax_problem(error: yaml.MarkedYAMLError) -> SyntaxProblem:
    mark = error.problem_mark or error.context_mark
    words = f"{error.context or ''} {error.problem or ''}".strip()
    unknown = (str(error.problem), "")
    # PyYAML's words are about its grammar; the first entry that occurs in them counts.
    reason, hint = next(((reason, hint) for part, reason, hint in _MEANINGS if part in words), unknown)
    position = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
    return SyntaxProblem(position, Mistake("not-yaml", reason=f"not YAML: {reason}", hint=hint))


@dataclass
class _Composer:
    events: Iterator[yaml.Event]
    anchors: dict[str, YamlNode] = field(default_factory=dict)
    depth: int = 0

    def document(self) -> YamlNode | None:
        next(self.events)  # start of the stream
        if isinstance(next(self.events), yaml.StreamEndEvent):
            return None
        root = self.node(next(self.events))
        next(self.events)  # end of the document
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            mistake = Mistake("second-document", reason="a second document in the file", hint="remove it")
            raise SyntaxProblem(_start(after), mistake)
        return root

    def node(self, event: yaml.Event) -> YamlNode:
        if isinstance(event, yaml.AliasEvent):
            anchored = self.anchors.get(event.anchor or "")
            if anchored is None:
                mistake = Mistake("unknown-alias", reason=f"alias *{event.anchor} has no anchor before it")
                raise SyntaxProblem(_start(event), mistake)
            return anchored
        self.depth += 1
        if self.depth > _DEEPEST:
            mistake = Mistake("nested-too-deeply", reason=f"nested deeper than {_DEEPEST} levels")
            raise SyntaxProblem(_start(event), mistake)
        node = self.collection(event)
        self.depth -= 1
        if event.anchor is not None:  # type: ignore[attr-defined]  # scalars and collections have one
            self.anchors[event.anchor] = node  # type: ignore[attr-defined]  # as above
        return node

    def collection(self, event: yaml.Event) -> YamlNode:
        start = _start(event)
        if isinstance(event, yaml.ScalarEvent):
            return ScalarNode(start, event.tag, text=event.value, plain=event.style is None)
        if isinstance(event, yaml.SequenceStartEvent):
            return ListNode(start, event.tag, items=tuple(self.items(yaml.SequenceEndEvent)))
        assert isinstance(event, yaml.MappingStartEvent)
        flat = list(self.items(yaml.MappingEndEvent))
        return MappingNode(start, event.tag, entries=tuple(zip(flat[::2], flat[1::2], strict=True)))

    def items(self, end: type[yaml.Event]) -> Iterator[YamlNode]:
        while not isinstance(event := next(self.events), end):
            yield self.node(event)


def _start(event: yaml.Event) -> Position:
    assert event.start_mark is not None
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)
