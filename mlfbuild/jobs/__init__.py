"""Build the files of a project that firmware is compiled from: archives, unpacked trees and fragments.

    for target in target_jobs(load(Path("mlfbuild.yml"))):
        for job in target.models:
            compile_if_needed(job)
            unpack_job(job)
        finish_target(target, target_dependencies(target))

**What.** A *job* is a frozen value that says what to make and from what: ``CompileJob`` the archive and tree of one
model for one target, ``TargetJob`` the folder of a target with fragments over all its models, ``FirmwareJob`` a cross
build, ``ProfileJob`` a counted run. Jobs can be sent to other processes, and have absolute paths. ``project_checks``
loads a project file, ``project_jobs`` turns it into jobs (``model_job``), and drivers (SCons, CMake's ``generate``,
``mlfbuild build``) run the same functions, so that all of them make the same bytes.

**What makes each up to date.** Nothing depends on times of files; a clock that jumps or a fresh checkout builds
nothing.

    task                     is current if                                                      kept in
    archive                  the hash of its inputs (``compile_action``) and of itself are kept    .<model>.tar.key
    tree of a model          each file has the content to write                                 the files themselves
    folder of a target       the same                                                           the files themselves
    CMake's configuration    the arguments are those of the last one                            .mlfbuild-configured
    objects and link         Ninja's and CMake's own rules                                      the build folder

The inputs of an archive are its settings, the model file (by content), mlfbuild's own files (``package_fingerprint``),
libraries that it bundles and, for an external compiler, its version and its ``inputs``. That mlfbuild itself counts is
why an update rebuilds all archives, and why the same checkout never mixes two versions of generated code.

**Order.** Archives first, in parallel in ``workers``; jobs with the same ``sharing_key`` make one archive, which the
others copy (``configure_time``). It is compiled on the job with the least RAM: if it fits there, the copies fit the
others (``compile_once``). A target's folder is finished after its trees, because packages list their files.
``locks`` keeps two builds apart: one lock for the build folder, one for each tree, and one for the common files of each
target. Those of trees and targets are taken in the order of their paths, or two processes would wait for each other,
and are released before Ninja starts, because its steps take them.

**Example.** ``kws`` for ``m4`` and ``m7`` with the same CPU features: one compilation, one copied archive, two trees.
After an edit of the vectors nothing is made; after an edit of ``optimize`` only the trees; after one of the model all.

**Safe to stop.** Files are replaced at once (``write_atomic``). A tree that is being changed is marked as incomplete,
and an archive without its key is made again, so the next build completes what a kill left (``tree``).

**What it does not do.** Nothing here prints: drivers get reports through ``progress``. It does not choose boards or run
firmware (``verify``), compare budgets of images (``report``) or fetch requirements (``requirements``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.jobs.actions import (
        COMPILED, COPIED, LINKED, Action, ActionRecord, InputChange, differences, flat, hash_of, record_action,
    )
    from mlfbuild.jobs.budgets import BUDGETS_FILE, TargetBudgets, budgets_of, read_budgets
    from mlfbuild.jobs.committed_tree import committed
    from mlfbuild.jobs.compilation import Compiled, compile_model, compiled_library, sizes
    from mlfbuild.jobs.configure_time import SharedArchive, make_archives, shared_archives
    from mlfbuild.jobs.conflicts import (
        COMPARED, check_image, check_libraries, check_models, check_module_names, check_target, modules_of,
    )
    from mlfbuild.jobs.explored import changes_of, explore_mistakes, explored_inputs, goal_changes
    from mlfbuild.jobs.farm_work import FarmWork, run_on_farm
    from mlfbuild.jobs.file_plan import Outline, tree_outline
    from mlfbuild.jobs.firmware_build import (
        check_compiler, check_flags, cross_build, did_something, path_problem, start_up_problem,
    )
    from mlfbuild.jobs.inputs import inputs_hash, read_files, trust_files, watched_inputs
    from mlfbuild.jobs.libraries import (
        bundle_key, copied_files, dependency_settings, original_files, original_folders, target_dependencies,
        write_target_dependencies,
    )
    from mlfbuild.jobs.link_travel import staying
    from mlfbuild.jobs.links import inputs_now, link_record
    from mlfbuild.jobs.links_on_farm import link_on_farm
    from mlfbuild.jobs.locks import LOCKED_VARIABLE, folder_locked, tree_locked, trees_locked
    from mlfbuild.jobs.model_builds import (
        archive_record, budgets_text, compile_action, compile_if_needed, compile_once, compiled_of, copy_archive,
        finish_target, generated_files, is_current, key_file, outline_of, program_version, prune_folders,
        record_archive, restore_archive, stray_files, tree_is_whole, unpack_archive, unpack_job, with_modules,
    )
    from mlfbuild.jobs.model_job import (
        CompileJob, FirmwareJob, ProfileJob, TargetJob, image_title, run_budgets_on, run_limits,
    )
    from mlfbuild.jobs.on_farm import board_resource, make_on_farm, make_tree, programs_of, tree_files
    from mlfbuild.jobs.opening import chosen_modules, is_model, kinds_named, open_beside, open_if_archive, open_model
    from mlfbuild.jobs.outputs import check_arrays_output, check_output, check_replaced
    from mlfbuild.jobs.pins import locked, locked_pins, pinned, with_pins
    from mlfbuild.jobs.placement import ParamsBinary, check_placed, placement_of, write_params_binary
    from mlfbuild.jobs.progress import UP_TO_DATE, Progress, Task, raise_first, watched
    from mlfbuild.jobs.project_checks import load, project_mistakes, read_project
    from mlfbuild.jobs.project_jobs import (
        BUILD_FOLDER, chosen_names, compile_job, default_compiler, default_name, firmware_called, firmware_jobs, npu_of,
        profile_jobs, target_jobs, toolchain_of, vectors_of,
    )
    from mlfbuild.jobs.quantize_step import QuantizeStep
    from mlfbuild.jobs.quantized_files import (
        is_quantized, make_quantized, quantize_action, quantize_inputs_hash, quantize_record,
    )
    from mlfbuild.jobs.runs_on_boards import modelled_sections, run_placement, run_sections
    from mlfbuild.jobs.selection import Selection, affected, share, store_durations
    from mlfbuild.jobs.toolchains import locked_toolchain
    from mlfbuild.jobs.travel import stays
    from mlfbuild.jobs.tree.blobs import BlobSources
    from mlfbuild.jobs.tree.build_text import FRAGMENT
    from mlfbuild.jobs.tree.devices import DevicePart
    from mlfbuild.jobs.tree.parts import Part
    from mlfbuild.jobs.tree.record import RECORD
    from mlfbuild.jobs.workers import in_worker, map_in_workers
else:
    __getattr__ = lazy_attributes(__name__)
