"""Generate the reference of the SCons tool from the docstrings of its methods, builders and variables."""

from __future__ import annotations

import inspect
import re
from typing import Any

import mlfbuild.scons as tool
from mlfbuild.scons.model_nodes import ModelNodes
from mlfbuild_reference.markdown import code, fence, paragraphs, prose, table

_VARIABLE = re.compile(r"^ {4}``(\w+)``\n((?: {8}.*\n)+)", re.MULTILINE)
_BUILDER = re.compile(r"Return ``\w+``: ``(?P<call>[^`]+)``(?:[;,.] ?(?P<rest>.*))?", re.DOTALL)


class _Recorder(dict[str, Any]):
    """Replacement for an SCons environment that records the additions of the tool."""

    def __init__(self) -> None:
        super().__init__()
        self.methods: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        self.builders: list[str] = []

    def SetDefault(self, **values: Any) -> None:  # noqa: N802  # SCons' name
        self.defaults.update(values)

    def Append(self, *, BUILDERS: dict[str, Any]) -> None:  # noqa: N802, N803  # SCons' names
        self.builders += BUILDERS

    def AddMethod(self, function: Any, name: str) -> None:  # noqa: N802  # SCons' name
        self.methods[name] = function


def scons_reference() -> str:
    """Return the part of ``docs/scons.md`` that lists methods, builders and construction variables."""
    env = _Recorder()
    tool.generate(env)
    methods = [_method(f"env.{name}", function) for name, function in env.methods.items()]
    nodes = [_method(f"models.{name}", getattr(ModelNodes, name)) for name in ("apply", "place")]
    return "\n\n".join(
        (
            "## Methods",
            *methods,
            "The object that `MlfModels` returns has these methods:",
            *nodes,
            "## Builders",
            *(_builder(name) for name in sorted(env.builders)),
            "## Construction variables",
            "The tool sets them with `SetDefault`, so a value that you set before is kept.",
            _variables(env.defaults),
        )
    )


def _method(name: str, function: Any) -> str:
    parameters = list(inspect.signature(function).parameters.values())
    shown = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    if shown[0].name in {"env", "_env", "self"}:
        del shown[0]
    call = f"{name}({', '.join(map(str, shown))})".replace("'", '"')
    return f"### `{name}`\n\n{fence('python', call)}\n\n{paragraphs(function.__doc__)}"


def _builder(name: str) -> str:
    """Return the section of a builder; its maker's docstring begins with ``Return ``<name>``: ``<call>``. ...``."""
    makers = [value for key, value in vars(tool).items() if key.endswith("_builder")]
    (maker,) = [maker for maker in makers if maker.__doc__.startswith(f"Return ``{name}``")]
    found = _BUILDER.match(inspect.cleandoc(maker.__doc__))
    if found is None:
        raise ValueError(f"{maker.__name__}: its docstring must begin with: Return ``{name}``: ``env.{name}(...)``")
    rest = (found["rest"] or "").strip()
    return f"### `env.{name}`\n\n{fence('python', found['call'])}\n\n{paragraphs(rest[:1].upper() + rest[1:])}".rstrip()


def _variables(defaults: dict[str, Any]) -> str:
    meanings = {name: " ".join(text.split()) for name, text in _VARIABLE.findall(tool.__doc__ or "")}
    missing = sorted(name for name in defaults if name not in meanings)
    if missing:
        raise ValueError(f"mlfbuild/scons/__init__.py: the docstring does not describe {', '.join(missing)}")
    lines = [name for name in meanings if name.endswith("COMSTR")]
    rows = [[code(name), _default(defaults, name), prose(text)] for name, text in meanings.items() if name not in lines]
    rows.append(
        [", ".join(map(code, lines)), _default(defaults, lines[0]) + " and so on", "The line that each step prints."]
    )
    return table(["variable", "default", "meaning"], rows)


def _default(defaults: dict[str, Any], name: str) -> str:
    value = defaults.get(name, "")
    return "" if value == "" else code(value if isinstance(value, str) else repr(value))
