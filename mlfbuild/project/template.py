"""The file ``mlfbuild-template.yml`` of a template of ``mlfbuild init``: its keys, and the checks between them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mlfbuild.core import Mistake, ProjectFileError, in_quotes
from mlfbuild.core.keys import DERIVED, EXACT, Keys, Rule, named, not_blank, one_of
from mlfbuild.project import rules
from mlfbuild.project.problems import KeyPath, Position, Problem, in_file_order

if TYPE_CHECKING:
    from mlfbuild.project.document import Document

TEMPLATE_FILE = "mlfbuild-template.yml"
TEMPLATE_VERSION = 1
_VARIABLE = named("variable", r"[a-z][a-z0-9_]{0,62}", "a lower-case letter, then a-z, 0-9 and _, at most 63")
_PURPOSE = one_of("purpose", ("build", "run", "verify"))
_RELEASE = re.compile(r"\d+(\.\d+){0,2}")


def _version(value: int) -> Mistake | None:
    if value == TEMPLATE_VERSION:
        return None
    reason = f"this mlfbuild reads templates of version {TEMPLATE_VERSION}, not {value}"
    return Mistake(
        "template-version", reason=reason, hint="install a newer mlfbuild, or use a version that this one reads"
    )


def _release(value: str) -> Mistake | None:
    if _RELEASE.fullmatch(value):
        return None
    return Mistake("invalid-release", reason=f"{in_quotes(value)} is not a release", hint="write it like 0.1 or 1.2.3")


def _pattern(value: str) -> Mistake | None:
    try:
        # RecursionError and OverflowError: deep nesting and huge repetitions in a hostile pattern.
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        return Mistake("invalid-pattern", reason=f"{in_quotes(value)} is not a regular expression: {error}")
    return None


def _inside(value: str) -> Mistake | None:
    # A template may come from someone else: it must not make `init` touch files outside of the new project.
    parts = value.split("/")
    if value and not value.startswith("/") and "\\" not in value and not {"", ".", ".."} & set(parts):
        return None
    reason = f"{in_quotes(value)} is not a path inside the project"
    return Mistake("path-leads-out", reason=reason, hint="write it like src/main.c")


@dataclass(frozen=True)
class VariableKeys(Keys):
    """A value that `--set` gives, and that rendered files contain."""

    TITLE = "variable"

    help: str = ""
    """One sentence about it, for messages."""
    default: str | None = None
    """Its value without `--set`. Default: none, `--set` is needed."""
    choices: tuple[str, ...] = ()
    """The values that it may have. Default: any."""
    pattern: Annotated[str, Rule(_pattern)] | None = None
    """Regular expression that the whole value matches. Default: any text."""

    def problem(self, value: str) -> Mistake | None:
        """Return why the variable cannot be ``value``.

        ``None`` if it can. The pattern must match the whole value.
        """
        if self.choices and value not in self.choices:
            hint = f"choose {', '.join(self.choices)}"
            return Mistake("value-not-a-choice", reason=f"{in_quotes(value)} is not one of the choices", hint=hint)
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return Mistake("value-not-matching", reason=f"{in_quotes(value)} does not match the pattern {self.pattern}")
        return None


@dataclass(frozen=True)
class TemplateKeys(Keys):
    """The parts of a template besides its files."""

    TITLE = TEMPLATE_FILE

    mlfbuild_template: Annotated[int, EXACT, Rule(_version)]
    """Version of this format."""
    description: str = ""
    """One sentence about the projects."""
    mlfbuild: Annotated[str, Rule(_release)] = "0"
    """The oldest release of mlfbuild that the template works with: 0.1"""
    board: Annotated[str, rules.BOARD] = "mps2-an386"
    """Emulated board of the default project file, whose core the model is checked for; `--board` selects another."""
    variables: Mapping[Annotated[str, _VARIABLE], VariableKeys] = field(default_factory=dict)
    """Values that rendered files contain, by name."""
    omit: tuple[Annotated[str, Rule(_inside)], ...] = ()
    """Files of every project that this one does not get: src/main.c"""
    commands: Mapping[Annotated[str, _PURPOSE], Annotated[str, Rule(not_blank("a command"))]] = field(
        default_factory=dict
    )
    """Commands that init prints at its end, by purpose: build, run, verify."""
    positions: Mapping[KeyPath, Position] = field(default_factory=dict, compare=False, repr=False, metadata=DERIVED)


def load_template(path: Path, builtin: frozenset[str]) -> TemplateKeys:
    """Read and check the file at ``path``; variables cannot have the names ``builtin``.

    Raises ``ProjectFileError`` with every mistake in it, in file order.
    """
    from mlfbuild.project.document import read_document
    from mlfbuild.project.validate import validate

    document = read_document(path)
    keys = validate(document, path.parent, TemplateKeys)
    _check(document, keys, builtin)
    if keys is None or document.problems:
        raise ProjectFileError(in_file_order(path, document.problems))
    return replace(keys, positions=dict(document.values))


def _check(document: Document, keys: TemplateKeys | None, builtin: frozenset[str]) -> None:
    # By the document and not the keys, so that these mistakes are found even if another one prevents reading the keys.
    for name, _ in document.entries("variables"):
        if name in builtin:
            reason = f"{in_quotes(name)} is a value that every template has"
            document.report(("variables", name), "variable-name-taken", reason, "choose another name", at_key=True)
    for name, variable in ({} if keys is None else keys.variables).items():
        problem = None if variable.default is None else variable.problem(variable.default)
        if problem is not None:
            document.add(("variables", name, "default"), problem)


def template_error(path: Path, keys: TemplateKeys, way: KeyPath, mistake: Mistake) -> ProjectFileError:
    """Return the error for a mistake at the key ``way`` of the template file ``path``.

    For mistakes that are found later, when ``init`` renders the template; the place is that of the key, or the
    beginning of the file.
    """
    return ProjectFileError([Problem(keys.positions.get(way, Position(1, 1)), way, mistake).in_file(path)])
