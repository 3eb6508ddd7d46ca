"""The code and the words of every error, read from the source."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mlfbuild
from mlfbuild.core import errors

PACKAGE = Path(mlfbuild.__file__).parent
CLASSES = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
MADE = {*CLASSES, "Diagnostic", "Mistake"} - {"ProjectFileError", "OverBudgetError", "LinkFaultsError"}
"""The problems of the excluded classes are diagnostics, which are found where they are created."""
FIELDS = ("place", "reason", "hint")
HELPERS = {"error", "member_error", "refused", "_refuse", "_failed", "report"}
"""Methods that create an error from a code and a reason, in this order or by name, and add the place."""
OPTION_ERRORS = {
    "needs_another": "option-needs-another",
    "not_applicable": "option-not-applicable",
    "exclusive": "options-exclude-each-other",
}
"""Class methods of ``UsageError``, which take the option, the reason and the hint, and the code of each."""
GRAPH_ERRORS = {
    "GraphError": "InputFileError", "DamagedFileError": "InputFileError", "OperatorError": "UnsupportedModelError",
}  # fmt: skip
"""The final class of the errors of a graph, which get their code when a front end adds the file."""
CODE = re.compile(r"[a-z]+(-[a-z]+)+")
_CALLS = re.compile(rf"\b({'|'.join((*MADE, *HELPERS, *OPTION_ERRORS, *GRAPH_ERRORS))}|wrong|unsupported|of)\(")
"""What creates an error: a function without it need not be walked."""


@dataclass(frozen=True)
class Wording:
    """One place in the source that creates an error or a diagnostic."""

    file: str
    line: int
    kind: str
    code: str
    words: dict[str, str]

    @property
    def has_fields(self) -> bool:
        return "reason" in self.words


@cache
def wordings() -> tuple[Wording, ...]:
    """Return every wording in the package, in the order of files and lines."""
    return tuple(_wordings())


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    """Yield the modules, without the functions that create no error."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if not _CALLS.search(text):
            continue
        tree, lines = ast.parse(text), text.splitlines()
        for each in [tree, *(each for each in tree.body if isinstance(each, ast.ClassDef))]:
            each.body = [one for one in each.body if _CALLS.search("\n".join(lines[one.lineno - 1 : one.end_lineno]))]
        _fill_in_variables(tree)
        yield path, tree


def _wordings() -> Iterator[Wording]:
    for path, tree in _trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name) and node.func.id in MADE:
                found = _wording(path, node, node.func.id)
                # A copy of the fields of another error, or those that `ProjectFileError.of` is called with.
                if found.code not in {"{self.code}", "{mistake.code}"} and found.file != "core/errors.py":
                    yield found
            elif isinstance(node.func, ast.Name) and node.func.id in GRAPH_ERRORS:
                yield _graph_error(path, node, node.func.id, *map(template, node.args))
            elif isinstance(node.func, ast.Attribute) and node.func.attr == "wrong":
                yield _graph_error(path, node, "OperatorError", "{self.place}", template(node.args[0]))
            elif isinstance(node.func, ast.Attribute) and node.func.attr in OPTION_ERRORS:
                words = dict(zip(FIELDS, map(template, node.args), strict=True))
                file = path.relative_to(PACKAGE).as_posix()
                yield Wording(file, node.lineno, "UsageError", OPTION_ERRORS[node.func.attr], words)
            elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "ProjectFileError.of":
                yield _wording(path, node, "Diagnostic")
            elif isinstance(node.func, ast.Attribute) and node.func.attr in HELPERS:
                yield from _from_helper(path, node)
            elif isinstance(node.func, ast.Attribute) and node.func.attr == "unsupported":
                yield _refusal(path, node)


def _fill_in_variables(node: ast.AST, known: dict[str, ast.expr] | None = None) -> None:
    """Replace a variable that is a field of an error by the value that its block, or a block around it, assigned."""
    known = {} if known is None or isinstance(node, ast.FunctionDef) else dict(known)
    for child in ast.iter_child_nodes(node):
        _fill_in_variables(child, known)
        if isinstance(child, ast.keyword) and child.arg in FIELDS and isinstance(child.value, ast.Name):
            child.value = known.get(child.value.id, child.value)
        if isinstance(child, ast.Call):
            child.args = [
                known.get(each.id, each) if isinstance(each, ast.Name) and each.id in FIELDS else each
                for each in child.args
            ]
        # Of statements, which contain all others: a walk from each expression took seconds.
        names = [each for each in ast.walk(child) if isinstance(each, ast.Name)] if isinstance(child, ast.stmt) else []
        for each in (each for each in names if isinstance(each.ctx, ast.Store)):
            known.pop(each.id, None)
        if isinstance(child, ast.Assign):
            target, value = child.targets[0], child.value
            if isinstance(target, ast.Name):
                known[target.id] = value
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                known |= {ast.unparse(name): each for name, each in zip(target.elts, value.elts, strict=True)}


def _wording(path: Path, node: ast.Call, kind: str) -> Wording:
    words = {word.arg: template(word.value) for word in node.keywords if word.arg in FIELDS}
    code = template(node.args[0]) if node.args else ""
    return Wording(path.relative_to(PACKAGE).as_posix(), node.lineno, kind, code, words)


def _graph_error(path: Path, node: ast.Call, name: str, place: str, reason: str) -> Wording:
    file = path.relative_to(PACKAGE).as_posix()
    code = "operator-invalid" if name == "OperatorError" else "{malformed}"
    if name in {"GraphError", "DamagedFileError"} and file.startswith("native/frontends/"):
        code = f"{file.split('/')[2]}-malformed"
    return Wording(file, node.lineno, GRAPH_ERRORS[name], code, {"place": place, "reason": reason})


def _from_helper(path: Path, node: ast.Call) -> Iterator[Wording]:
    words = {word.arg: word.value for word in node.keywords}
    codes = [at for at, value in enumerate(node.args) if CODE.fullmatch(template(value))]
    if codes:
        words["code"], *rest = node.args[codes[0] :]
        words |= dict(zip(("reason", "hint"), rest, strict=False))
    elif "code" in words and node.args:
        words.setdefault("reason", node.args[-1])
    if "code" in words and "reason" in words:
        found = {name: template(words[name]) for name in FIELDS if name in words}
        yield Wording(path.relative_to(PACKAGE).as_posix(), node.lineno, "Diagnostic", template(words["code"]), found)


def _refusal(path: Path, node: ast.Call) -> Wording:
    """Return the words of ``site.unsupported(reason, hint, code)``, a method of both frontends."""
    words = dict(zip(FIELDS[1:], map(template, node.args), strict=False))
    code = next((template(word.value) for word in node.keywords if word.arg == "code"), "operator-variant-unsupported")
    code = template(node.args[2]) if len(node.args) > 2 else code
    return Wording(path.relative_to(PACKAGE).as_posix(), node.lineno, "UnsupportedModelError", code, words)


def template(node: ast.expr) -> str:
    """Return an expression as text, with ``{name}`` for values that are only known at run time."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        node = node.value
    # Python 3.12 and later put other quotes around strings within an f-string.
    return "{" + ast.unparse(node).replace('"', "'") + "}"
