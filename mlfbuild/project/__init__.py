"""Read mlfbuild.yml and check all of it: text in, ``Project`` out.

    text -> nodes -> document -> Project

``nodes`` composes YAML and keeps positions. ``document`` turns nodes into plain values and refuses scalars that YAML's
versions read differently (``scalars``). ``specification``, ``library.keys``, ``runner`` and ``provider`` declare every
key once, as fields of frozen dataclasses (``keys``); ``validate`` has pydantic check the values and build the
dataclasses; ``references``, ``sections`` and ``budgets`` check what needs two values. All of them add to one list of
problems, which is reported in file order:

    mlfbuild.yml:4:16: targets.m4.cpu: unknown cpu "cortex-m44" (did you mean "cortex-m4"?)
    mlfbuild.yml:12:5: models.kws.optoins: unknown key (did you mean "options"?)

Each is a ``Diagnostic`` with a code (``unknown-cpu``), a place, a reason and a hint. A *path* is the way to a value
(``("models", "kws", "targets", 0)``, shown as ``models.kws.targets[0]``), a *position* its line and column, a
*mistake* a code, a reason and a hint without a place, a *problem* a mistake with path and position. Rooms that find
mistakes later (a file that is missing, an option that a compiler refuses) report them at the same keys::

    mistake = Mistake("no-such-file", reason=f"{path}: no such file", hint="correct the path")
    raise ProjectFileError(project.problems([(("models", "kws", "source"), mistake)]))

The room does not read the files that a project names, and a ``Project`` does not know YAML. pydantic and yaml are
imported when a project file is read, not before: other commands, and processes that are sent parts of a project, start
without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.project.addresses import archive_problem, git_problem, is_local_path
    from mlfbuild.project.described_mcu import mcu_of, memory_of_region
    from mlfbuild.project.device import DeviceKeys
    from mlfbuild.project.levels import DEFAULT_LEVEL, INHERIT, LEVELS
    from mlfbuild.project.problems import KeyPath
    from mlfbuild.project.program import EXTERNAL_COMPILERS, asked_for, filled
    from mlfbuild.project.provider import Provider
    from mlfbuild.project.reader import load_project
    from mlfbuild.project.rules import COMPILER_WORD
    from mlfbuild.project.runner import CYCLE_COUNTERS, TRANSPORTS, RunnerKeys
    from mlfbuild.project.schema import json_schema
    from mlfbuild.project.sources import SOURCES, source_suffix
    from mlfbuild.project.specification import (
        Budget, BudgetFile, FirmwareSpec, ModelSpec, Project, TargetSpec, run_budgets,
    )
    from mlfbuild.project.template import TEMPLATE_FILE, TemplateKeys, VariableKeys, load_template, template_error
else:
    __getattr__ = lazy_attributes(__name__)
