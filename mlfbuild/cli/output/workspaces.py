"""Run a verb for each project of a workspace, and print the results one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlfbuild.cli.options import SharedOptions
from mlfbuild.cli.output.printing import collecting_json, report_error, show, show_json
from mlfbuild.core import MlfError, UsageError, listed


def run_in_projects(
    options: SharedOptions, verb: str, projects: Mapping[str, Path], run: Callable[[SharedOptions], None]
) -> None:
    """Call ``run`` with the options for each of ``projects`` (prefix -> file), as ``for_each_project`` describes.

    ``--target`` and ``--model`` name a project by ``prefix/name``, and only such projects run. Raises ``UsageError``
    for a name without a prefix of ``projects``.
    """
    chosen = _chosen(options, projects)
    errors: list[MlfError] = []
    results: dict[str, Any] = {}
    for prefix, own in chosen.items():
        if options.format == "text" and not options.quiet:
            show(f"{prefix} ({projects[prefix]}):")
        try:
            with collecting_json() as printed:
                run(own)
        except MlfError as error:
            errors.append(error)
            if len(errors) > 1:
                report_error(error, options.format)
        if printed:
            results[prefix] = printed[-1]
    if options.json:
        show_json({"verb": verb, "projects": results})
    if errors:
        raise errors[0]


def _chosen(options: SharedOptions, projects: Mapping[str, Path]) -> dict[str, SharedOptions]:
    """Return prefix -> options of each project that runs."""
    named: dict[str, dict[str, list[str]]] = {prefix: {"target": [], "model": []} for prefix in projects}
    for kind in ("target", "model"):
        for word in getattr(options, kind):
            prefix, _, name = word.rpartition("/")
            if prefix not in projects:
                raise UsageError(
                    "project-of-workspace-missing",
                    place=f"--{kind} {word}",
                    reason="the project file is a workspace",
                    hint=f"write the project before the name: {listed([f'{each}/{name}' for each in projects])}",
                )
            named[prefix][kind].append(name)
    any_named = any(words for kinds in named.values() for words in kinds.values())
    return {
        prefix: replace(
            options, named_file=projects[prefix], target=tuple(kinds["target"]), model=tuple(kinds["model"])
        )
        for prefix, kinds in named.items()
        if not any_named or any(kinds.values())
    }
