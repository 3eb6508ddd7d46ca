"""Write the server beside a project, and projects for archives, and read the project options of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mlfbuild.archive import open_archive
from mlfbuild.core import ConflictError, UsageError, holds, listed, quoted, suggestion, write_atomic
from mlfbuild.project import TemplateKeys
from mlfbuild.targets import BOARDS
from mlfbuild.usecases import init

PROJECT_TYPES: Mapping[str, str] = MappingProxyType(
    {"host_driven": init.PROJECT_API, "example_project": init.PROJECT_API_EXAMPLE}
)
"""Templates of ``mlfbuild init`` by project type; the first is the default."""


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
        f"Board that QEMU emulates; by default that of the archive, or {init.DEFAULT_BOARD}.",
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


__all__ = ["generate_project", "write_server"]


def write_server(folder: Path) -> Path:
    """Write the server to ``folder`` and return its path; nothing is written if it is there.

    Raises ``ConflictError`` if the file has another content, and ``StorageError``.
    """
    path, content = folder / init.PROJECT_API_SERVER, init.project_api_server().encode()
    if not holds(path, content):
        with init.staged(folder) as stage:
            write_atomic(stage / init.PROJECT_API_SERVER, content)
    return path


def generate_project(
    archive: Path,
    folder: Path,
    project_type: str | None,
    board: str | None,
    template: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Write a project around ``archive``, whose firmware TVM drives, to ``folder``, which must not have files yet.

    If the user's ``template`` is given, its files replace and add to those of the project type; ``settings`` are its
    variables. ``None`` selects the type or board that the archive records in its extensions, or the default. The
    project contains the archive and this server, and no path of this machine. Raises ``ConflictError`` if the folder
    has files, and as ``init_project``.
    """
    # Even hidden files count: the new project must not mix with another one.
    if folder.is_dir() and any(folder.iterdir()):
        raise ConflictError(
            "project-folder-not-empty", place=folder, reason="the folder has files", hint="choose a new folder"
        )
    # Of the request, of the archive, or the default, in this order.
    base = PROJECT_TYPES[project_type or _recorded_type(archive) or next(iter(PROJECT_TYPES))]
    if template is None:
        init.init_project(init.InitRequest(folder, base, board, archive=archive))
    else:
        request = init.InitRequest(folder, f"{template}/", board, archive=archive, settings=settings or {}, base=base)
        init.init_project(request)


def _recorded_type(archive: Path) -> str:
    found = [module.extensions.get("project_type") for module in open_archive(archive).modules]
    return next((str(each) for each in found if each in PROJECT_TYPES), "")
