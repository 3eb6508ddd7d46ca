"""What an error's words say to do next, as far as the place that makes it tells."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlfbuild import errors

CLASSES = {name for name, kind in vars(errors).items() if isinstance(kind, type)}

_VERBS = (
    "add|ask|build|bundle|call|change|check|choose|compile|compute|convert|copy|correct|create|decompress|delete|export|"
    "free|give|install|keep|leave|let|link|make|merge|move|name|pack|pip|place|put|quantise|raise|reduce|remove|rename|repack|"
    "reshape|run|save|say|see|set|shorten|split|store|try|unset|update|upgrade|use|write"
)
_ADVICE = re.compile(rf"(?:[;:?,] |\bor |\band |\()(?:{_VERBS})\b|supported (?:is|are)\b|must (?:be|have|hold|match)\b")
"""An imperative at the start of a clause, or what is allowed."""
_CHOICES = re.compile(r"advice|advised|hint|suggest|known|how_to|problems", re.IGNORECASE)
"""Names of what brings the advice, or the choices that there are, into the message."""
_FILLED_IN = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Site:
    """One place that makes an error."""

    file: str
    function: str
    line: int
    text: str
    """The message, with the source of what is filled in between braces."""
    passes_on: bool = False
    """Whether it has the words of an error that was caught there."""

    @property
    def advises(self) -> bool:
        """Whether the message says what to do, or what there is to choose from."""
        return (
            self.passes_on
            or bool(_ADVICE.search(_FILLED_IN.sub("X", self.text)))
            or any(_CHOICES.search(source) for source in _FILLED_IN.findall(self.text))
        )


def sites(package: Path) -> Iterator[Site]:
    """Yield each call of an error class below the folder ``package`` that makes a message."""
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package)
        if file.name not in {"errors.py", "__main__.py"} and "templates" not in file.parts:
            module = ".".join((package.name, *file.with_suffix("").parts)).removesuffix(".__init__")
            yield from sites_in(path.read_text(), file.as_posix(), vars(importlib.import_module(module)))


def sites_in(source: str, file: str, names: Mapping[str, Any]) -> Iterator[Site]:
    """Yield the places in ``source``, whose module has ``names``."""
    yield from _sites(ast.parse(source), file, names, "", caught=frozenset())


def _sites(
    node: ast.AST, file: str, names: Mapping[str, Any], function: str, *, caught: frozenset[str]
) -> Iterator[Site]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        function = f"{function}.{node.name}".lstrip(".")
    if (
        isinstance(node, ast.ExceptHandler)
        and node.name
        and isinstance(node.type, ast.Name)
        and node.type.id in CLASSES
    ):
        caught |= {node.name}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES and node.args:
        text = _text(node.args[0], names)
        passes_on = any(source in caught for source in _FILLED_IN.findall(text))
        yield Site(file, function, node.lineno, text, passes_on)
    for child in ast.iter_child_nodes(node):
        yield from _sites(child, file, names, function, caught=caught)


def _text(node: ast.expr, names: Mapping[str, Any]) -> str:
    """Return the text of an expression: constants of the module as they are, the source of anything else in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value, names) for value in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, names)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body, names)} {_text(node.orelse, names)}"
    if isinstance(node, ast.List):
        return "\n".join(_text(each, names) for each in node.elts)
    if isinstance(node, ast.Name) and isinstance(names.get(node.id), str):
        return str(names[node.id])
    return "{" + ast.unparse(node).replace("{", "").replace("}", "") + "}"
