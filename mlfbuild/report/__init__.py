"""Reports of firmware images: flash, RAM, stack, instructions and cycles by model, operator and library.

A report goes through these rooms:

- ``sizes`` reads the ELF file and its linker map, and adds up bytes by owner; ``stack`` finds the worst-case stack;
  ``operators`` divides models by operator, and counts instructions and cycles of runs.
- ``document`` is the JSON form: its schema, reading it again, and comparing two reports. ``text`` and ``html`` show it.
- ``budgets`` checks limits and growth after a link, ``link`` where the linker put models; ``sbom`` writes the bill of
  materials.

Example: the flash of each model in any ELF image with a map of GNU ld::

    found = any_image_sizes(Path("app.elf"))
    {owner.name: owner.flash for owner in found.sizes.models}

It does not build images, and it reads only maps of GNU ld.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.report.document.compare import (
        ReportComparison as ReportComparison,
        compare_reports as compare_reports,
        comparison_json as comparison_json,
    )
    from mlfbuild.report.document.read import (
        Report as Report,
        networks_in as networks_in,
        read_report as read_report,
        runs_in as runs_in,
        sizes_in as sizes_in,
        title_of as title_of,
    )
    from mlfbuild.report.document.report_files import (
        ReportDocument as ReportDocument,
        check_report_output as check_report_output,
        compared_with as compared_with,
        form_of as form_of,
        saved_report as saved_report,
    )
    from mlfbuild.report.document.schema import FORMAT as FORMAT, report_schema as report_schema
    from mlfbuild.report.operators.image_networks import networks_of as networks_of
    from mlfbuild.report.operators.image_runs import check_boards as check_boards, profiled as profiled
    from mlfbuild.report.operators.model_run import ModelRun as ModelRun, figures_of as figures_of
    from mlfbuild.report.operators.network_sizes import (
        NetworkSizes as NetworkSizes,
        cycles_json as cycles_json,
        measured_json as measured_json,
        modelled_json as modelled_json,
        network_json as network_json,
        spread_json as spread_json,
    )
    from mlfbuild.report.operators.operator_runs import OperatorRun as OperatorRun
    from mlfbuild.report.operators.runs import (
        MEASURED_RUNS as MEASURED_RUNS,
        profiles as profiles,
        watched_runs as watched_runs,
    )
    from mlfbuild.report.operators.source import SourceFacts as SourceFacts, source_facts as source_facts
    from mlfbuild.report.sizes.image import read_image as read_image
    from mlfbuild.report.sizes.images import (
        ImageSizes as ImageSizes,
        any_image_sizes as any_image_sizes,
        image_sizes as image_sizes,
    )
    from mlfbuild.report.sizes.owners import Owner as Owner
    from mlfbuild.report.text.comparison import comparison_text as comparison_text
    from mlfbuild.report.text.operators import all_operators as all_operators
    from mlfbuild.report.text.runs import all_runs as all_runs, run_text as run_text
    from mlfbuild.report.text.sizes import kinds_of as kinds_of, sizes_text as sizes_text
else:
    __getattr__ = lazy_attributes(__name__)
