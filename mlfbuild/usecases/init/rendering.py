"""Render the files of a user's template with jinja, in a sandbox: no attribute or call of Python's own, no files.

A template comes from a stranger, but so does the project that it makes: building that runs its commands. The sandbox
therefore only ensures that ``init`` itself runs none, and writes no more than a limit. ``limits`` bounds the work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError, meta, nodes
from jinja2.sandbox import SandboxedEnvironment

from mlfbuild.core import Diagnostic, ProjectFileError, suggestion

LARGEST_FILE = 4 << 20
"""Bytes of a rendered file."""


class _Sandbox(SandboxedEnvironment):
    """Also refuses to repeat a text more often than a file is large."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiply numbers only, and raise small powers only."""
        # ``'x' * 2000000000`` and ``9 ** 9 ** 9`` are a few characters that take gigabytes or minutes.
        if not all(isinstance(each, int | float) for each in (left, right)) or (operator == "**" and abs(right) > 64):
            raise UndefinedError(f"{operator} is only for numbers")
        return super().call_binop(context, operator, left, right)


def _environment() -> _Sandbox:
    return _Sandbox(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)


def unsound(text: str, place: str, known: Collection[str]) -> list[Diagnostic]:
    """Return the mistakes in the template ``text``: of its syntax, and names that are not ``known``.

    Nothing is rendered. ``place`` is the template's file, to which the line of each mistake is added; ``known`` has
    the names that values will be given for.
    """
    environment = _environment()
    # jinja's own functions, such as `range`, are globals of its environment and need no declaration.
    try:
        tree = environment.parse(text)
        names = meta.find_undeclared_variables(tree) - set(known) - environment.globals.keys()
    except TemplateSyntaxError as error:  # also for unknown filters and tests
        return [_finding("template-syntax", f"{place}:{error.lineno}", error.message or "invalid syntax")]
    except RecursionError:
        return [_finding("template-syntax", place, "the expressions are nested too deeply")]
    except ValueError as error:  # Python limits the digits of numbers
        return [_finding("template-syntax", place, str(error))]
    return [*_unknown(tree, names, place, known), *_imports(tree, place)]


def _unknown(tree: nodes.Template, names: Collection[str], place: str, known: Collection[str]) -> Iterator[Diagnostic]:
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        lines.setdefault(node.name, node.lineno)
    for name in sorted(names, key=lambda name: lines.get(name, 0)):
        hint = "declare it under variables, or correct the name"
        reason = f'unknown name "{name}"{suggestion(name, known)}'
        yield _finding("template-unknown-name", f"{place}:{lines.get(name, 1)}", reason, hint)


def _imports(tree: nodes.Template, place: str) -> Iterator[Diagnostic]:
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        hint = "write its content here"
        yield _finding("template-includes", f"{place}:{node.lineno}", "a template cannot include other files", hint)


def _finding(code: str, place: str, reason: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code, place, reason=reason, hint=hint)


def rendered(text: str, place: str, values: Mapping[str, Any]) -> bytes:
    """Return the template ``text`` filled in with ``values``; raises ``ProjectFileError`` with the reason."""
    parts: list[str] = []
    size = 0
    try:
        # In parts, so that a loop without an end is stopped at the limit instead of filling the memory.
        for part in _environment().from_string(text).generate(**values):
            parts.append(part)
            size += len(part)
            if size > LARGEST_FILE:
                raise UndefinedError(f"it is larger than {LARGEST_FILE >> 20} MiB")
        return "".join(parts).encode()
    # For ``within_limits``, which reports it as a limit of the work and not as a mistake in the text.
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a stranger's template; Python also limits nested loops and surrogates
        reason = f"cannot be rendered: {str(error) or type(error).__name__}"
        raise ProjectFileError([_finding("template-not-rendered", place, reason, "correct the template")]) from None
