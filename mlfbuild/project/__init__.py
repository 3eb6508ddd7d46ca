"""Read mlfbuild.yml and check all of it: text in, ``Project`` out.

    text -> nodes -> document -> Project

**Stages.** Each has one input and one output, and adds the mistakes it finds to one list instead of stopping:

1. ``nodes`` composes YAML and keeps the line and column of every key and value.
2. ``document`` turns nodes into plain values, and limits what aliases expand to, because the file may be foreign.
3. ``validate`` has pydantic check the values, and builds frozen dataclasses. A ``Project`` can be sent to other
   processes and compared; a value that is not in the file has its default, which is declared beside its type.
   Before that, ``short_forms`` writes ``targets: [cortex-m4]`` and other short forms of the document in full.
4. ``references``, ``sections`` and ``budgets`` check what needs two values, such as a model's list of targets.
5. ``reader`` completes entries that depend on others: ``targets: all`` becomes the names, paths become absolute.

``specification``, ``library.keys``, ``runner``, ``device`` and ``provider`` declare every key once, as fields of frozen
dataclasses (``core.keys``). The stages add to one list of problems, which is reported in file order::

    mlfbuild.yml:4:16: targets.m4.cpu: unknown cpu "cortex-m44" (did you mean "cortex-m4"?)
    mlfbuild.yml:12:5: models.kws.optoins: unknown key (did you mean "options"?)

Each is a ``Diagnostic`` with a code (``unknown-cpu``), a place, a reason and a hint. A *path* is the way to a value
(``("models", "kws", "targets", 0)``, shown as ``models.kws.targets[0]``), a *position* its line and column, a
*mistake* a code, a reason and a hint without a place, a *problem* a mistake with path and position. Rooms that find
mistakes later (a file that is missing, an option that a compiler refuses) report them at the same keys::

    mistake = Mistake("no-such-file", reason=f"{path}: no such file", hint="correct the path")
    raise ProjectFileError(project.problems([(("models", "kws", "source"), mistake)]))

The room does not read the files that a project names, although patterns depend on which ones there are, and a
``Project`` does not know YAML. pydantic and yaml are imported when a project file is read, not before: other commands,
and processes that are sent parts of a project, start without them.

**Example.** ``targets: {m4: {cpu: cortex-m44}}`` is composed with the position 4:16 of the value; the document holds
the text; ``validate`` finds that no CPU has the name and adds the mistake above. All other entries are checked too, and
the models and targets without mistakes form a project on which ``load_project`` looks for missing files, so that one
run reports every mistake that the file has.

**What it does not do.** There are no defaults of a user or a machine, no includes and no variables: the same file means
the same build everywhere. A file of a later format is refused as such, and an unknown key is a mistake, never ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.project.addresses import archive_problem, git_problem, is_local_path
    from mlfbuild.project.budget import Budget, BudgetFile, run_budgets
    from mlfbuild.project.described_mcu import mcu_of, memory_of_region
    from mlfbuild.project.device import DeviceKeys
    from mlfbuild.project.engines import DASK, ENGINES
    from mlfbuild.project.levels import DEFAULT_LEVEL, INHERIT, LEVELS
    from mlfbuild.project.memories import (
        TargetMemory, arena_memories, chosen_memories, fast_weights, memories_of, only_memory, ranked_by_order,
    )
    from mlfbuild.project.memory_shares import contested, share_problems, shares_of, weight_problems
    from mlfbuild.project.problems import KeyPath
    from mlfbuild.project.program import EXTERNAL_COMPILERS, asked_for, filled
    from mlfbuild.project.provider import Provider
    from mlfbuild.project.reader import Changes, load_project
    from mlfbuild.project.rules import COMPILER_WORD, MODEL_NAME, device_problem
    from mlfbuild.project.runner import CYCLE_COUNTERS, TRANSPORTS, RunnerKeys
    from mlfbuild.project.services import JobsKeys, ResultCacheKeys
    from mlfbuild.project.sharing import sharing_groups
    from mlfbuild.project.sources import SOURCES, model_name, source_problem, source_suffix
    from mlfbuild.project.specification import VECTORS_FOLDER, FirmwareSpec, ModelSpec, Project, TargetSpec
    from mlfbuild.project.template import TEMPLATE_FILE, TemplateKeys, VariableKeys, load_template, template_error
    from mlfbuild.project.validate import json_schema
    from mlfbuild.project.workspace import workspace_projects
else:
    __getattr__ = lazy_attributes(__name__)
