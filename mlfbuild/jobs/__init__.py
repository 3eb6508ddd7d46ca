"""Build the files of a project that firmware is compiled from: archives, unpacked trees and fragments.

    for target in target_jobs(load(Path("mlfbuild.yml"))):
        for job in target.models:
            compile_if_needed(job)
            unpack_job(job)
        finish_target(target, target_dependencies(target))

``project_checks`` loads a project file and ``project_jobs`` turns it into jobs (``model_job``). ``model_builds`` and
``compilation`` make archives and decide what is up to date; ``tree`` unpacks them. ``shared_archives`` groups jobs with
equal archives, and ``workers`` runs jobs in parallel. ``firmware_build`` runs CMake and Ninja, which decide themselves
what is up to date. Nothing here prints: drivers get reports through ``progress``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.jobs.budgets import (
        BUDGETS_FILE as BUDGETS_FILE,
        TargetBudgets as TargetBudgets,
        budgets_of as budgets_of,
        read_budgets as read_budgets,
    )
    from mlfbuild.jobs.bundling import bundle_key as bundle_key
    from mlfbuild.jobs.committed_tree import committed as committed
    from mlfbuild.jobs.compilation import (
        Compiled as Compiled,
        compile_model as compile_model,
        compiled_library as compiled_library,
        sizes as sizes,
    )
    from mlfbuild.jobs.configure_time import make_archives as make_archives
    from mlfbuild.jobs.conflicts import (
        COMPARED as COMPARED,
        check_image as check_image,
        check_libraries as check_libraries,
        check_models as check_models,
        check_module_names as check_module_names,
        check_target as check_target,
        modules_of as modules_of,
    )
    from mlfbuild.jobs.file_plan import (
        Outline as Outline,
        tree_outline as tree_outline,
    )
    from mlfbuild.jobs.firmware_build import (
        cross_build as cross_build,
        did_something as did_something,
        path_problem as path_problem,
        start_up_problem as start_up_problem,
    )
    from mlfbuild.jobs.flags import check_compiler as check_compiler, check_flags as check_flags
    from mlfbuild.jobs.inputs import (
        inputs_hash as inputs_hash,
        read_files as read_files,
        watched_inputs as watched_inputs,
    )
    from mlfbuild.jobs.libraries import (
        copied_files as copied_files,
        dependency_settings as dependency_settings,
        original_files as original_files,
        original_folders as original_folders,
        target_dependencies as target_dependencies,
        write_target_dependencies as write_target_dependencies,
    )
    from mlfbuild.jobs.locks import (
        LOCKED_VARIABLE as LOCKED_VARIABLE,
        folder_locked as folder_locked,
        tree_locked as tree_locked,
        trees_locked as trees_locked,
    )
    from mlfbuild.jobs.model_builds import (
        budgets_text as budgets_text,
        compile_if_needed as compile_if_needed,
        compile_once as compile_once,
        copy_archive as copy_archive,
        finish_target as finish_target,
        generated_files as generated_files,
        is_current as is_current,
        key_file as key_file,
        notes_of as notes_of,
        outline_of as outline_of,
        program_version as program_version,
        prune_folders as prune_folders,
        record_archive as record_archive,
        stray_files as stray_files,
        tree_is_whole as tree_is_whole,
        unpack_archive as unpack_archive,
        unpack_job as unpack_job,
        with_modules as with_modules,
    )
    from mlfbuild.jobs.model_job import (
        CompileJob as CompileJob,
        FirmwareJob as FirmwareJob,
        ProfileJob as ProfileJob,
        TargetJob as TargetJob,
        image_title as image_title,
        run_budgets_on as run_budgets_on,
        run_limits as run_limits,
    )
    from mlfbuild.jobs.opening import (
        chosen_modules as chosen_modules,
        is_model as is_model,
        open_beside as open_beside,
        open_model as open_model,
    )
    from mlfbuild.jobs.outputs import (
        check_arrays_output as check_arrays_output,
        check_output as check_output,
        check_replaced as check_replaced,
    )
    from mlfbuild.jobs.pins import (
        locked as locked,
        locked_pins as locked_pins,
        pinned as pinned,
        with_pins as with_pins,
    )
    from mlfbuild.jobs.placement import (
        ParamsBinary as ParamsBinary,
        check_placed as check_placed,
        placement_of as placement_of,
        write_params_binary as write_params_binary,
    )
    from mlfbuild.jobs.progress import (
        UP_TO_DATE as UP_TO_DATE,
        Progress as Progress,
        Silent as Silent,
        Task as Task,
        raise_first as raise_first,
        watched as watched,
    )
    from mlfbuild.jobs.project_checks import (
        load as load,
        project_mistakes as project_mistakes,
        read_project as read_project,
    )
    from mlfbuild.jobs.project_jobs import (
        BUILD_FOLDER as BUILD_FOLDER,
        chosen_names as chosen_names,
        compile_job as compile_job,
        default_compiler as default_compiler,
        default_name as default_name,
        firmware_called as firmware_called,
        firmware_jobs as firmware_jobs,
        profile_jobs as profile_jobs,
        target_jobs as target_jobs,
        toolchain_of as toolchain_of,
        vectors_of as vectors_of,
    )
    from mlfbuild.jobs.runs_on_boards import (
        modelled_sections as modelled_sections,
        run_placement as run_placement,
        run_sections as run_sections,
    )
    from mlfbuild.jobs.shared_archives import Twins as Twins, twins as twins
    from mlfbuild.jobs.toolchains import locked_toolchain as locked_toolchain
    from mlfbuild.jobs.tree.blobs import BlobSources as BlobSources
    from mlfbuild.jobs.tree.cmake import FRAGMENT as FRAGMENT
    from mlfbuild.jobs.tree.devices import DevicePart as DevicePart
    from mlfbuild.jobs.tree.parts import Part as Part
    from mlfbuild.jobs.tree.record import RECORD as RECORD
    from mlfbuild.jobs.workers import in_worker as in_worker, map_in_workers as map_in_workers
else:
    __getattr__ = lazy_attributes(__name__)
