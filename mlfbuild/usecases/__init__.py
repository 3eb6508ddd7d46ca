"""One module for each verb of the command; the drivers ``cli`` and ``scons`` call these functions.

A verb's function takes values, returns a value, and prints nothing. The longest verbs are folders: ``init`` writes new
projects, ``doctor`` checks the machine, ``compile`` also has the archives of scripts and notebooks, ``lock`` the builds
that must match ``mlfbuild.lock``, ``update`` compares two versions of a model, and ``vectors`` computes its test data.

    mlfbuild.yml -> [compile] -> kws.tar -> [unpack] -> build/mlf/<target>/kws/ -> [build] -> app.elf -> [verify]

Code that several verbs share is in other rooms, such as ``build``, ``verify`` and ``report``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.usecases.build import (
        ModelResult as ModelResult,
        build_firmware as build_firmware,
        build_project as build_project,
    )
    from mlfbuild.usecases.bundle import (
        ReceivedImage as ReceivedImage,
        WrittenBundle as WrittenBundle,
        bundle_archives as bundle_archives,
        bundle_project as bundle_project,
        received_image as received_image,
        verify_received as verify_received,
    )
    from mlfbuild.usecases.calibrate import CalibratedTarget as CalibratedTarget, calibrate_target as calibrate_target
    from mlfbuild.usecases.check import (
        Foreseen as Foreseen,
        assumed_places as assumed_places,
        check_dependencies as check_dependencies,
        foreseen as foreseen,
        missing_tools as missing_tools,
        unchecked_budgets as unchecked_budgets,
        unused_devices as unused_devices,
    )
    from mlfbuild.usecases.clashes import compare_linked as compare_linked
    from mlfbuild.usecases.cmake_dir import cmake_package_folder as cmake_package_folder
    from mlfbuild.usecases.compare import compare_archives as compare_archives, compare_runs as compare_runs
    from mlfbuild.usecases.compile.archive import Archive as Archive, compiled_archive as compiled_archive
    from mlfbuild.usecases.compile.file import compile_file as compile_file, file_job as file_job
    from mlfbuild.usecases.compile.table import Table as Table
    from mlfbuild.usecases.completion import completion_script as completion_script
    from mlfbuild.usecases.convert import Conversion as Conversion, convert_archive as convert_archive
    from mlfbuild.usecases.doctor.diagnosis import (
        Diagnosis as Diagnosis,
        TargetState as TargetState,
        diagnose as diagnose,
    )
    from mlfbuild.usecases.fetch import (
        Fetched as Fetched,
        fetch_dependencies as fetch_dependencies,
        read_project as read_project,
        what as what,
    )
    from mlfbuild.usecases.flash import flash_firmware as flash_firmware
    from mlfbuild.usecases.generate import chosen_model as chosen_model, generate_model as generate_model
    from mlfbuild.usecases.inspect import (
        archive_text as archive_text,
        inspect_archive as inspect_archive,
        models_in_image as models_in_image,
    )
    from mlfbuild.usecases.lock.frozen import check_lock as check_lock, freeze_beforehand as freeze_beforehand
    from mlfbuild.usecases.lock.locking import lock_project as lock_project
    from mlfbuild.usecases.merge import merge_archives as merge_archives
    from mlfbuild.usecases.params import write_params as write_params
    from mlfbuild.usecases.plan import (
        complete_archives as complete_archives,
        plan_build as plan_build,
        plan_lines as plan_lines,
        plan_text as plan_text,
    )
    from mlfbuild.usecases.profile import not_profiled as not_profiled, profile_models as profile_models
    from mlfbuild.usecases.report import (
        LinkReport as LinkReport,
        ProjectReport as ProjectReport,
        accept_sizes as accept_sizes,
        models_not_in_images as models_not_in_images,
        report_image as report_image,
        report_link as report_link,
        report_project as report_project,
        reporting_excess as reporting_excess,
        target_budgets as target_budgets,
        write_report as write_report,
    )
    from mlfbuild.usecases.run import (
        DeviceTarget as DeviceTarget,
        device_target as device_target,
        load_on_device as load_on_device,
        run_archive as run_archive,
    )
    from mlfbuild.usecases.run_firmware import (
        ChosenImage as ChosenImage,
        chosen_image as chosen_image,
        run_on_target as run_on_target,
    )
    from mlfbuild.usecases.sbom import bill_of_materials as bill_of_materials, check_complete as check_complete
    from mlfbuild.usecases.schema import project_schema as project_schema, report_schema as report_schema
    from mlfbuild.usecases.show import (
        FunctionText as FunctionText,
        ProgramPart as ProgramPart,
        function_called as function_called,
        program_parts as program_parts,
    )
    from mlfbuild.usecases.split import SplitModule as SplitModule, split_archive as split_archive
    from mlfbuild.usecases.unpack import unpack_file as unpack_file
    from mlfbuild.usecases.update.model_update import (
        ModelUpdate as ModelUpdate,
        OutputDifference as OutputDifference,
        UpdatedFigure as UpdatedFigure,
    )
    from mlfbuild.usecases.update.replacing import update_model as update_model
    from mlfbuild.usecases.validate import validate_archive as validate_archive
    from mlfbuild.usecases.vectors import (
        RecomputedVectors as RecomputedVectors,
        recompute_vectors as recompute_vectors,
    )
    from mlfbuild.usecases.verify import (
        VerifyJob as VerifyJob,
        VerifyResult as VerifyResult,
        budget_error as budget_error,
        jobs_in_image as jobs_in_image,
        left_out as left_out,
        unchecked_in_runs as unchecked_in_runs,
        verification_failed as verification_failed,
        verified_state as verified_state,
        verify_elf as verify_elf,
        verify_job as verify_job,
        verify_jobs as verify_jobs,
        verify_project as verify_project,
        without_runners as without_runners,
        wrong_outputs as wrong_outputs,
    )
    from mlfbuild.usecases.watch import (
        Stamps as Stamps,
        image_size as image_size,
        project_inputs as project_inputs,
        stamps as stamps,
        wait_for_change as wait_for_change,
    )
else:
    __getattr__ = lazy_attributes(__name__)
