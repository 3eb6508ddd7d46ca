"""The project options that the server offers to TVM, and their values in a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlfbuild.core import UsageError, listed, quoted, suggestion
from mlfbuild.project import TemplateKeys
from mlfbuild.targets import BOARDS
from mlfbuild.usecases.init import DEFAULT_BOARD
from mlfbuild.usecases.project_api.project_types import PROJECT_TYPES


@dataclass(frozen=True)
class ProjectOption:
    """One option, with the keys that the Project API gives it."""

    name: str
    choices: tuple[str, ...] | None
    default: Any
    type: str
    required: tuple[str, ...] | None
    """Methods that need it."""
    optional: tuple[str, ...] | None
    """Methods that take it."""
    help: str


_RUNS = ("build", "flash", "open_transport")
OPTIONS: tuple[ProjectOption, ...] = (
    ProjectOption(
        "project_type", tuple(PROJECT_TYPES), None, "str", None, ("generate_project",),
        "Type of project: host_driven answers TVM's sessions, example_project runs the model once; by default that of "
        "the archive, or host_driven.",
    ),
    ProjectOption(
        "board", tuple(BOARDS), None, "str", None, ("generate_project",),
        f"Board that QEMU emulates; by default that of the archive, or {DEFAULT_BOARD}.",
    ),
    ProjectOption("verbose", None, False, "bool", None, ("build",), "Print the steps of the build."),
    ProjectOption(
        "firmware", None, None, "str", None, _RUNS, "Firmware of mlfbuild.yml; needed if there are several.",
    ),
    ProjectOption("target", None, None, "str", None, _RUNS, "Target of mlfbuild.yml; needed if there are several."),
)  # fmt: skip


def template_options(keys: TemplateKeys, place: object) -> tuple[ProjectOption, ...]:
    """Return the variables of a user's template as options; raises ``UsageError`` for the name of another option."""
    taken = sorted({option.name for option in OPTIONS} & keys.variables.keys())
    if taken:
        reason = f"a project option of the server has this name: {', '.join(taken)}"
        raise UsageError("variable-is-option", place=place, reason=reason, hint="rename the variable")
    method = ("generate_project",)
    return tuple(
        ProjectOption(
            name, each.choices or None, each.default, "str",
            method if each.default is None else None, None if each.default is None else method,
            each.help or f"Variable {name} of the template.",
        )
        for name, each in keys.variables.items()
    )  # fmt: skip


def options_json(options: Sequence[ProjectOption]) -> list[dict[str, Any]]:
    """Return ``options`` as the reply to ``server_info_query`` has them."""
    return [asdict(option) for option in options]


def option_values(given: Mapping[str, Any], options: Sequence[ProjectOption] = OPTIONS) -> dict[str, str | bool | None]:
    """Return the value of each of ``options``: that of ``given``, or its default.

    TVM's client sends all options with each request, and its command line sends all values as text. Raises
    ``UsageError`` for an unknown option and for a value of the wrong type or that is not a choice.
    """
    known = {option.name: option for option in options}
    for name, value in given.items():
        if name not in known and value is not None:
            raise UsageError(
                "unknown-project-option",
                place=f"option {quoted(name)}",
                reason=f"unknown project option{suggestion(name, known)}",
                hint=f"use {listed(list(known))}",
            )
    return {name: _value(option, given.get(name)) for name, option in known.items()}


def _value(option: ProjectOption, value: Any) -> str | bool | None:
    if value is None or value == "":
        return option.default  # type: ignore[no-any-return]
    if option.type == "bool":
        words = {"true": True, "false": False}
        if not isinstance(value, bool) and str(value).lower() not in words:
            raise _invalid(option, value, "true or false")
        return value if isinstance(value, bool) else words[str(value).lower()]
    if not isinstance(value, str) or (option.choices is not None and value not in option.choices):
        raise _invalid(option, value, "a text" if option.choices is None else listed(option.choices))
    return value


def _invalid(option: ProjectOption, value: Any, wanted: str) -> UsageError:
    return UsageError(
        "project-option-invalid",
        place=f"option {quoted(option.name)}",
        reason=f"{quoted(str(value))} is not one of its values",
        hint=f"use {wanted}",
    )
