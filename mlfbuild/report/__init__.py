"""Reports of firmware images: flash, RAM, stack, instructions and cycles by model, operator and library.

A report goes through these rooms:

- ``sizes`` reads the ELF file and its linker map, and adds up bytes by owner; ``stack`` finds the worst-case stack;
  ``operators`` divides models by operator, and counts instructions and cycles of runs.
- ``document`` is the JSON form: its schema, reading it again, and comparing two reports. ``text`` and ``html`` show it.
- ``budgets`` checks limits and growth after a link, ``link`` where the linker put models; ``sbom`` writes the bill of
  materials; ``fleet`` collects reports of many images and commits.

Example: the flash of each model in any ELF image with a map of GNU ld::

    found = any_image_sizes(Path("app.elf"))
    {owner.name: owner.flash for owner in found.sizes.models}

It does not build images, and it reads only maps of GNU ld.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.report.capacity import Usage, UsageLimit, usages
    from mlfbuild.report.document.compare import ReportComparison, compare_reports, comparison_json
    from mlfbuild.report.document.read import (
        FORMAT, Report, networks_in, read_report, report_schema, runs_in, sizes_in, title_of,
    )
    from mlfbuild.report.document.report_files import (
        ReportDocument, check_report_output, compared_with, form_of, saved_report,
    )
    from mlfbuild.report.operators.image_networks import check_boards, networks_of, planned_models, profiled
    from mlfbuild.report.operators.image_profile import ImageProfile, profile_image
    from mlfbuild.report.operators.network_sizes import (
        NetworkSizes, SourceFacts, cycles_json, measured_json, modelled_json, network_json, source_facts, spread_json,
    )
    from mlfbuild.report.operators.operator_runs import ModelRun, OperatorRun, figures_of
    from mlfbuild.report.operators.runs import (
        MEASURED_RUNS, nothing_to_profile, placed_extents, profiles, runs_of, watched_runs,
    )
    from mlfbuild.report.provenance import Artifact, ClaimedProvenance, Provenance, is_statement, read_provenance
    from mlfbuild.report.sizes.devices import parts_by_device
    from mlfbuild.report.sizes.image import read_image
    from mlfbuild.report.sizes.images import ImageSizes, any_image_sizes, image_sizes
    from mlfbuild.report.sizes.memories import MemoryUse
    from mlfbuild.report.sizes.owners import ARENA, STATE, Owner
    from mlfbuild.report.text.arenas import all_arenas
    from mlfbuild.report.text.comparison import comparison_text
    from mlfbuild.report.text.memories import memories_text, memory_json
    from mlfbuild.report.text.npu import npu_text
    from mlfbuild.report.text.operators import all_operators
    from mlfbuild.report.text.runs import all_runs, image_text, run_text
    from mlfbuild.report.text.sizes import kinds_of, sizes_text
else:
    __getattr__ = lazy_attributes(__name__)
