"""Run a verb for each project of a workspace, and print the results one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from mlfbuild.cli.options import SharedOptions, Verb
from mlfbuild.cli.output.printing import collecting_json, report_error, show, show_json
from mlfbuild.core import MlfError, UsageError, listed

_changed: set[Verb] = set()


def run_for_each_project(verb: Verb) -> None:
    """Have ``verb`` run for each project of a workspace, even if one of them fails; a second call changes nothing.

    Results of projects follow each other under their prefix; with ``--format json``, they are the values of one object
    with a key for each prefix. ``--target`` and ``--model`` name a project by ``prefix/name``, and only such projects
    run. The error of the first project that fails is raised at the end.
    """
    run = verb.callback
    if verb in _changed or run is None:
        return
    _changed.add(verb)

    def run_all(*arguments: Any, **keywords: Any) -> None:
        from mlfbuild.project import workspace_projects

        context = click.get_current_context()
        options: SharedOptions = context.obj
        projects = workspace_projects(options.file)
        if projects:
            _run_in_projects(context, options, projects, lambda: run(*arguments, **keywords))
        else:
            run(*arguments, **keywords)

    verb.callback = run_all


def _run_in_projects(
    context: click.Context, options: SharedOptions, projects: Mapping[str, Path], run: Callable[[], None]
) -> None:
    errors: list[MlfError] = []
    results: dict[str, Any] = {}
    for prefix, own in _chosen(options, projects).items():
        if options.format == "text" and not options.quiet:
            show(f"{prefix} ({projects[prefix]}):")
        context.obj = own
        try:
            with collecting_json() as printed:
                run()
        except MlfError as error:
            errors.append(error)
            if len(errors) > 1:
                report_error(error, options.format)
        if printed:
            results[prefix] = printed[-1]
    if options.json:
        show_json({"projects": results})
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
