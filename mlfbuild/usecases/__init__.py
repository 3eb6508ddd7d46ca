"""One function for each step from a project file to a checked image; the drivers call nothing else.

    mlfbuild.yml -> [compile] -> kws.tar -> [unpack] -> build/mlf/<target>/kws/ -> [firmware] -> app.elf -> [verify]

``project`` loads and checks the project file and turns it into jobs; ``models`` compiles, packs and unpacks them;
``firmware`` drives the cross build; ``verify`` proves the numbers; ``build`` composes them all. Import the module you
need: a driver that only compiles a model must not pay for reading project files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.usecases.archives import (
        Identity as Identity,
        compare_archives as compare_archives,
        comparison_text as comparison_text,
        convert_archive as convert_archive,
        inspect as inspect,
        inspect_text as inspect_text,
        merge_archives as merge_archives,
        models_in_image as models_in_image,
        validate_archive as validate_archive,
    )
    from mlfbuild.usecases.build import ModelResult as ModelResult, build_project as build_project
    from mlfbuild.usecases.check import check_dependencies as check_dependencies
    from mlfbuild.usecases.clashes import compare_linked as compare_linked
    from mlfbuild.usecases.compare import compare_runs as compare_runs
    from mlfbuild.usecases.doctor import (
        Diagnosis as Diagnosis,
        Program as Program,
        TargetState as TargetState,
        diagnose as diagnose,
    )
    from mlfbuild.usecases.fetch import (
        Fetched as Fetched,
        fetch_dependencies as fetch_dependencies,
        read_project as read_project,
        what as what,
    )
    from mlfbuild.usecases.firmware import build_firmware as build_firmware, run_image as run_image
    from mlfbuild.usecases.frozen import (
        check_lock as check_lock,
        freeze as freeze,
        freeze_beforehand as freeze_beforehand,
    )
    from mlfbuild.usecases.generate import generate_model as generate_model
    from mlfbuild.usecases.lock import lock_path as lock_path, lock_project as lock_project
    from mlfbuild.usecases.over_budget import reporting_excess as reporting_excess
    from mlfbuild.usecases.plan import (
        plan_build as plan_build,
        plan_lines as plan_lines,
        plan_text as plan_text,
    )
    from mlfbuild.usecases.report import (
        accept as accept,
        presented as presented,
        report_images as report_images,
        write_report as write_report,
    )
    from mlfbuild.usecases.report_files import (
        Presented as Presented,
        check_report_output as check_report_output,
        compared_with as compared_with,
        form_of as form_of,
        older as older,
        saved as saved,
    )
    from mlfbuild.usecases.run import run_archive as run_archive
    from mlfbuild.usecases.sbom import bill_of_materials as bill_of_materials, check_complete as check_complete
    from mlfbuild.usecases.schema import (
        cmake_dir as cmake_dir,
        project_schema as project_schema,
        report_schema as report_schema,
    )
    from mlfbuild.usecases.verify import (
        VerifyJob as VerifyJob,
        VerifyReport as VerifyReport,
        left_out as left_out,
        verify_elf as verify_elf,
        verify_job as verify_job,
        verify_jobs as verify_jobs,
    )
else:
    __getattr__ = lazy_attributes(__name__)
