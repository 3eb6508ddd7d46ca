"""Check programs that SCons links itself: before the link for symbols that models share, after it for budgets."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from SCons.Action import Action

from mlfbuild.core import MlfError, terminal_text
from mlfbuild.jobs import TargetBudgets, TargetJob, with_modules
from mlfbuild.scons.actions import action, show

_checking: list[Any] = []
"""The builders that compare symbols."""
_owners: dict[Any, str] = {}
"""Name of the model in messages, by the library's node."""
_models: dict[Any, tuple[TargetJob, str]] = {}
"""The target and the name of the model, by the library's node."""

_BUDGETS = "_MLFBUDGETS"
"""Construction variable: the budgets of the models in a program, part of the signature of its link."""
_DRIVER = re.compile(r"(.*-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(-[0-9.]+)?(\.exe)?")
"""Compilers that pass ``-Wl,`` to the linker."""
_MAP = re.compile(r".*[ ,]--?Map[=, ](?:-Xlinker )?([^ ,]+)", re.DOTALL)
"""The last option that names a linker map."""
_SCRIPT = re.compile(r"(?:^|[ ,])(?:-T[ ,]?|--script[=, ])(?:-Xlinker )?([^ ,]+)")
"""Options that name a linker script; also ``-Ttext=0``, which names no file."""


def remember_owner(library: Any, owner: str, target: TargetJob, model: str) -> None:
    """Count ``library`` as code of ``model`` for ``target``, which messages call ``owner``."""
    _owners[library] = owner
    _models[library] = target, model


def check_programs(env: Any, target: TargetJob) -> None:
    """Let ``Program`` of ``env`` check the models in ``LIBS`` and among its sources, which are for ``target``.

    If two share a symbol, the build fails with their names and the symbol, and nothing is linked. If the program, or a
    model in it, is over a budget, the build fails after the link. For that, the link also writes ``<program>.map``,
    unless its flags name another map. The program is checked only if it is linked again, which it is if budgets change.
    """
    if target.budgets is not None and _BUDGETS not in env:
        env[_BUDGETS] = _value_of_budgets
        env["_MLFMAP"] = _map_flag
        env.Append(_LIBFLAGS=" $_MLFMAP")  # every link uses this variable, and few builds replace it
        env.Append(PROGEMITTER=[_depend_on_scripts])
    program = env["BUILDERS"].get("Program")
    # A clone of an environment shares its builders, so the check must not be added a second time.
    if program is None or any(program is builder for builder in _checking):
        return
    # A copy per environment: the builder of SCons belongs to all environments, also to those without models.
    checking = copy.copy(program)
    checking.action = Action([_CHECK, program.action, _CHECK_BUDGETS])
    _checking.append(checking)
    env.Append(BUILDERS={"Program": checking})


def _depend_on_scripts(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    """Let a program depend on the linker scripts in its flags, or it would keep the places of an older script."""
    for name in _SCRIPT.findall(env.subst("$LINKFLAGS", target=target, source=source)):
        script = env.fs.Entry(name, env.fs.Top)
        if script.isfile() or script.has_builder():
            env.Depends(target, script)
    return target, source


def _check(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.jobs import COMPARED, check_models  # reads objects: not needed if nothing is linked

    compiled: dict[str, list[Path]] = {}
    firmware = []
    for node in _linked(source, env):
        path = Path(node.get_abspath())
        if node in _owners:
            compiled.setdefault(_owners[node], []).append(path)
        # Other nodes, such as linker scripts, have no symbols.
        elif path.suffix in COMPARED:
            firmware.append(path)
    check_models(compiled, str(target[0]), firmware)


_CHECK = action(_check, None)


def _linked(source: list[Any], env: Any) -> Iterator[Any]:
    """Yield the nodes that a program is linked from, each once."""
    yield from (node for node in dict.fromkeys(env.Flatten([source, env.get("LIBS", [])])) if not isinstance(node, str))


def _value_of_budgets(target: list[Any], source: list[Any], env: Any, for_signature: bool) -> str:  # noqa: ARG001
    """Return the budgets of the models that a program is linked from; SCons calls it for ``$_MLFBUDGETS``."""
    return "".join(with_modules(budgets, job).to_json() for job, budgets, _ in _budgeted(source, env))


def _budgeted(source: list[Any], env: Any) -> list[tuple[TargetJob, TargetBudgets, list[str]]]:
    """Return the targets with budgets of the models that a program is linked from, each with these models."""
    # By identity: each target has one job, and comparing jobs would compare all of their models.
    found: dict[int, tuple[TargetJob, TargetBudgets, list[str]]] = {}
    for node in _linked(source, env):
        job, model = _models.get(node, (None, ""))
        if job is not None and job.budgets is not None:
            models = found.setdefault(id(job), (job, job.budgets, []))[2]
            if model not in models:
                models.append(model)
    return [*found.values()]


def _map_flag(target: list[Any], source: list[Any], env: Any, for_signature: bool) -> str:
    """Return the option that writes a map of the program ``target``; empty if it has no models, or another map."""
    # Other linkers have other options for a map; without one, only what the ELF file shows is checked.
    link = (env.subst("$LINK").split() or [""])[0]
    if not _value_of_budgets(target, source, env, for_signature) or not _DRIVER.fullmatch(Path(link).name):
        return ""
    library = str(target[0]).endswith(env.subst("$SHLIBSUFFIX"))  # its command also has _LIBFLAGS
    return "" if library or _MAP.match(f" {env.subst('$LINKFLAGS')}") else f"-Wl,-Map={target[0]}.map"


def _check_budgets(target: list[Any], source: list[Any], env: Any) -> None:
    image = Path(target[0].get_abspath())
    named = _MAP.match(f" {env.subst('$LINKFLAGS', target=target, source=source)}")
    linker_map = Path(named[1].replace("%", str(target[0]))) if named else image.with_name(f"{image.name}.map")
    for job, budgets, models in _budgeted(source, env):
        _check_target(image, linker_map, with_modules(budgets, job), models)


def _check_target(image: Path, linker_map: Path, budgets: TargetBudgets, models: list[str]) -> None:
    """Compare ``image`` with the ``budgets`` of ``models``, which are for one target."""
    from mlfbuild.usecases import report_link  # reads ELF files: not needed if nothing is linked

    try:
        result = report_link(image, linker_map, budgets, models=models)
        for line in result.unchecked:
            show(f"mlfbuild: {image.name}: not checked: {line}")
        # All of them, because an action can raise only one.
        for error in result.errors[:-1]:
            sys.stderr.write(f"{terminal_text(str(error))}\n")
        if result.errors:
            raise result.errors[-1]
    except MlfError:
        # Without the renaming, SCons would take the image for that of the last successful build if a change is undone.
        image.replace(image.with_name(f"{image.stem}.failed{image.suffix}"))
        raise


_CHECK_BUDGETS = action(_check_budgets, None, varlist=[_BUDGETS])
