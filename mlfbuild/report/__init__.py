"""What is in a firmware image, and whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.report.compare import (
        Comparison as Comparison,
        compare_reports as compare_reports,
        comparison_json as comparison_json,
    )
    from mlfbuild.report.compare_text import comparison_text as comparison_text
    from mlfbuild.report.image_networks import networks_of as networks_of
    from mlfbuild.report.image_runs import check_boards as check_boards, profiled as profiled
    from mlfbuild.report.instructions import ModelRun as ModelRun
    from mlfbuild.report.network import NetworkSizes as NetworkSizes, network_json as network_json
    from mlfbuild.report.operators_text import all_operators as all_operators
    from mlfbuild.report.presented import (
        ReportDocument as ReportDocument,
        check_report_output as check_report_output,
        compared_with as compared_with,
        form_of as form_of,
        saved_report as saved_report,
    )
    from mlfbuild.report.read import (
        Report as Report,
        networks_in as networks_in,
        read_report as read_report,
        runs_in as runs_in,
        sizes_in as sizes_in,
        title_of as title_of,
    )
    from mlfbuild.report.runs import profiles as profiles, run_text as run_text
    from mlfbuild.report.runs_text import all_runs as all_runs
    from mlfbuild.report.schema import FORMAT as FORMAT, report_schema as report_schema
    from mlfbuild.report.sizes import Owner as Owner
    from mlfbuild.report.text import kinds_of as kinds_of, sizes_text as sizes_text
else:
    __getattr__ = lazy_attributes(__name__)
