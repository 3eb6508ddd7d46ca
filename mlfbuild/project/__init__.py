"""mlfbuild.yml -> Project: every check and every line number.

    text -> nodes -> document -> keys -> Project

``nodes`` composes YAML and keeps positions; ``document`` turns nodes into plain values and refuses what YAML's
versions read differently (``scalars``); ``keys`` declares every key once, with the ``rules`` for texts, and
``validate`` retells pydantic's findings; ``references`` checks what needs two values. All of them add to one list of
problems, which is shown whole and in file order:

    mlfbuild.yml:4:16: targets.m4.cpu: unknown cpu "cortex-m44" (did you mean "cortex-m4"?)
    mlfbuild.yml:12:5: models.kws.optoins: unknown key (did you mean "options"?)

Words: a *path* is the way to a value (``("models", "kws", "targets", 0)``, shown as ``models.kws.targets[0]``), a
*position* is its line and column, a *problem* is a position, a path and a reason. pydantic and yaml are imported when
a project file is read, not before: verbs that need none start quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.project.addresses import (
        archive_problem as archive_problem,
        git_problem as git_problem,
        is_local_path as is_local_path,
    )
    from mlfbuild.project.keys import json_schema as json_schema
    from mlfbuild.project.names import NAME as NAME, short_name as short_name
    from mlfbuild.project.placement import (
        CONSTANT_CLASSES as CONSTANT_CLASSES,
        MEMORY_CLASSES as MEMORY_CLASSES,
        PARAMS as PARAMS,
        SECTION_NAME as SECTION_NAME,
        Placement as Placement,
        symbol_stem as symbol_stem,
    )
    from mlfbuild.project.problems import KeyPath as KeyPath, quoted as quoted, suggestion as suggestion
    from mlfbuild.project.program import Program as Program, asked_for as asked_for, filled as filled
    from mlfbuild.project.reader import load_project as load_project
    from mlfbuild.project.sources import SOURCES as SOURCES, source_suffix as source_suffix
    from mlfbuild.project.types import (
        Budget as Budget,
        BudgetFile as BudgetFile,
        FirmwareSpec as FirmwareSpec,
        ModelSpec as ModelSpec,
        OptionValue as OptionValue,
        Project as Project,
        Provider as Provider,
        Target as Target,
    )
    from mlfbuild.project.units import size_text as size_text
else:
    __getattr__ = lazy_attributes(__name__)
