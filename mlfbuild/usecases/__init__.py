"""One module for each verb of the command; the drivers ``cli`` and ``scons`` call these functions.

A verb's function takes values, returns a value, and prints nothing. The longest verbs are folders: ``init`` writes new
projects, ``add`` a model into one, ``doctor`` checks the machine, ``compile`` also has the archives of scripts and
notebooks, ``lock`` the builds that must match ``mlfbuild.lock``, ``update`` compares two versions of a model, and
``vectors`` computes its test data.

    mlfbuild.yml -> [compile] -> kws.tar -> [unpack] -> build/mlf/<target>/kws/ -> [build] -> app.elf -> [verify]

Code that several verbs share is in other rooms, such as ``build``, ``verify`` and ``report``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.add.adding import AddedModel, add_model
    from mlfbuild.usecases.boards import KnownTarget, known_targets
    from mlfbuild.usecases.build import ModelResult, build_firmware, build_project
    from mlfbuild.usecases.bundle import (
        ReceivedImage, WrittenBundle, bundle_archives, bundle_project, received_image, verify_received,
    )
    from mlfbuild.usecases.cache import cache_settings, clear_local_cache, local_cache_content, verify_local_cache
    from mlfbuild.usecases.calibrate import CalibratedTarget, calibrate_target
    from mlfbuild.usecases.check.before_building import Foreseen, foreseen, missing_tools
    from mlfbuild.usecases.check.requirements import (
        assumed_places, check_dependencies, unchecked_budgets, unused_devices,
    )
    from mlfbuild.usecases.clashes import compare_linked
    from mlfbuild.usecases.compare import compare_archives, compare_runs, file_losses, is_float_with_quantized
    from mlfbuild.usecases.compile.archive import Archive, Table, compiled_archive
    from mlfbuild.usecases.compile.file import compile_file, file_job
    from mlfbuild.usecases.convert import Conversion, convert_archive
    from mlfbuild.usecases.doctor.diagnosis import Diagnosis, TargetState, diagnose
    from mlfbuild.usecases.evaluate import (
        EvaluateJob, EvaluateResult, EvaluationReport, check_test_data, evaluate_job, evaluate_jobs, evaluate_project,
        evaluated, evaluated_files, evaluated_state, evaluation_failed, missed_limits,
    )
    from mlfbuild.usecases.explore import ExploreResult, explore_model, renew_lock, write_settings, write_values
    from mlfbuild.usecases.fetch import Fetched, fetch_dependencies, what
    from mlfbuild.usecases.flash import flash_firmware
    from mlfbuild.usecases.fleet import check_readable, fleet_report
    from mlfbuild.usecases.generate import chosen_model, generate_model
    from mlfbuild.usecases.inspect import archive_text, inspect_archive, models_in_image
    from mlfbuild.usecases.lock.frozen import check_lock, freeze_beforehand
    from mlfbuild.usecases.lock.locking import lock_project
    from mlfbuild.usecases.merge import merge_archives
    from mlfbuild.usecases.parameters import MadeParameters, NewParameters, make_parameters
    from mlfbuild.usecases.plan import complete_archives, plan_build, plan_lines, plan_text
    from mlfbuild.usecases.profile import SECONDS_AN_IMAGE, not_profiled, profile_in, profile_models
    from mlfbuild.usecases.provenance import image_provenance, write_provenance
    from mlfbuild.usecases.quantize import ImproveResult, ImproveStep, improve_file, improve_model, quantize_file
    from mlfbuild.usecases.report import (
        LinkReport, ProjectReport, accept_sizes, models_not_in_images, report_image, report_link, report_project,
        reporting_excess, target_budgets, write_report,
    )
    from mlfbuild.usecases.run import ArchiveRun, DeviceTarget, RunInputs, device_target, load_on_device, run_archive
    from mlfbuild.usecases.run_firmware import ChosenImage, chosen_image, run_on_target
    from mlfbuild.usecases.sbom import bill_of_materials, check_complete
    from mlfbuild.usecases.show import FunctionText, ProgramPart, function_called, program_parts
    from mlfbuild.usecases.sign import sign_files
    from mlfbuild.usecases.split import SplitModule, split_archive
    from mlfbuild.usecases.unpack import unpack_file
    from mlfbuild.usecases.update.differences import ModelUpdate, OutputDifference, UpdatedFigure
    from mlfbuild.usecases.update.replacing import update_model
    from mlfbuild.usecases.validate import validate_archive
    from mlfbuild.usecases.vectors import RecomputedVectors, recompute_vectors
    from mlfbuild.usecases.verify import (
        LeftOut, VerifyJob, VerifyResult, budget_error, jobs_in_image, left_out, unchecked_in_runs, verification_failed,
        verified_state, verify_elf, verify_job, verify_jobs, verify_project, with_parameters, without_runners,
        wrong_outputs,
    )
    from mlfbuild.usecases.verify_signature import SignatureCheck, refused_signatures, verify_signatures
    from mlfbuild.usecases.watch import Stamps, image_size, project_inputs, stamps, wait_for_change
    from mlfbuild.usecases.why import Explanation, explanation_lines, explanations
else:
    __getattr__ = lazy_attributes(__name__)
