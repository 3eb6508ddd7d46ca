"""Make archives and trees of models if they are not up to date."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild import archive as archives
from mlfbuild.compilers import EXTERNAL_COMPILERS, check_placement, compiler_called
from mlfbuild.core import (
    CheckFailedError,
    ConflictError,
    InputFileError,
    Trust,
    package_fingerprint,
    read_bytes,
    write_atomic,
)
from mlfbuild.jobs import tree as trees
from mlfbuild.jobs.actions import (
    COMPILED,
    COPIED,
    Action,
    ActionRecord,
    flat,
    hash_of,
    record_action,
    recorded_action,
)
from mlfbuild.jobs.budgets import TargetBudgets
from mlfbuild.jobs.compilation import Compiled, check_ram, compile_model, sizes
from mlfbuild.jobs.devices import check_device_objects
from mlfbuild.jobs.inputs import input_digests, trust_files
from mlfbuild.jobs.libraries import bundle_key
from mlfbuild.jobs.locks import Notify
from mlfbuild.jobs.model_job import CompileJob, TargetJob
from mlfbuild.jobs.quantized_files import make_quantized, quantized_digest
from mlfbuild.jobs.travel import ARCHIVE, REASON, compile_task, stays
from mlfbuild.jobs.tree import TreeSettings, UnpackResult, read_record, recorded_files, tree_damage
from mlfbuild.library import Library, ResolvedLibrary
from mlfbuild.native import SourceFiles

if TYPE_CHECKING:
    from mlfbuild.cache import ResultCache
    from mlfbuild.farm import FarmResult

_SHOWN = 12
"""Number of digits of a hash in messages."""


def compile_action(job: CompileJob) -> Action:
    """Return the action that makes the job's archive, with everything that it is made from.

    This is settings, model file, mlfbuild itself, and the libraries that the archive may bundle; for an external
    compiler, also its input files and its version. Raises as ``ExternalCompiler.version`` and ``bundle_key``.
    """
    source, step = job.request.source, job.quantize
    identity = SourceFiles(source).read().identity if step is None else quantized_digest(step)
    inputs = {f"model {source.name}": identity, **dict(flat(job.named_settings()))}
    if job.request.program is not None:
        inputs |= {"version": program_version(job), **input_digests(job.request.program)}
    # Also for a signature that is missing: what was made when there was one is out of date.
    inputs |= {name: hash_of(path) for name, path in trust_files(job).items()}
    bundled = bundle_key(job) if job.bundles else ""
    if bundled:
        inputs["bundled libraries"] = bundled
    return Action("compile", {**inputs, "mlfbuild": package_fingerprint()})


def program_version(job: CompileJob) -> str:
    """Return the version of the external program that compiles the job's model, which may be started for that."""
    return EXTERNAL_COMPILERS[job.compiler].version(job.request)


def key_file(job: CompileJob) -> Path:
    """Return the file next to the archive that records what it was made from."""
    return _key_of(job.archive)


def _key_of(archive: Path) -> Path:
    return archive.with_name(f".{archive.name}.key")


def compile_if_needed(job: CompileJob, notify: Notify = lambda _: None) -> ActionRecord | None:
    """Make the job's archive unless it is up to date; return how it was made, ``None`` if there was nothing to do.

    Up to date means that the hash of the archive's inputs (``compile_action``) and of the archive itself are those that
    were kept when it was made. Raises as ``compile_model``.
    """
    return compile_once([job], notify=notify).get(job.archive)


def compile_once(
    sharing: Sequence[CompileJob], lenders: Sequence[CompileJob] = (), notify: Notify = lambda _: None
) -> dict[Path, ActionRecord]:
    """Make the archives of jobs with the same sharing key; return archive -> how it was made, if it was out of date.

    At most one is compiled: that with the least RAM, so that its copies fit the other boards. The others get copies of
    an archive that is up to date, which may belong to one of ``lenders``, jobs with the same key that are not made
    here. If the cache has the archive, none is compiled. The file that they are compiled from is quantised first, if
    it is a product. ``notify`` gets a line if the cache or farm fails. Raises as ``compile_model`` and
    ``make_quantized``, and as ``farm.called`` for a project with a farm.
    """
    if sharing[0].quantize is not None:
        make_quantized(sharing[0].quantize, notify)
    action = compile_action(sharing[0])
    stale = [job for job in sharing if not _is_made_by(action, job)]
    if not stale:
        return {}
    records: dict[Path, ActionRecord] = {}
    current = (job for job in (*sharing, *lenders) if job not in stale and _is_made_by(action, job))
    made = next(current, None)
    if made is None:
        made = least_ram(stale)
        stale.remove(made)
        records[made.archive] = restore_archive(made, action, notify) or _compiled(made, action, notify)
    for job in stale:
        copy_archive(made.archive, job.archive)
        records[job.archive] = record_made(job, action, COPIED)
    return records


def restore_archive(job: CompileJob, action: Action, notify: Notify) -> ActionRecord | None:
    """Take the archive that ``action`` makes from the cache; return how it was made, ``None`` if it is not there."""
    cache = _cache_of(job, notify)
    found = None if cache is None else cache.fetch(action.key)
    if found is None or {*found.outputs} != {ARCHIVE}:
        return None
    write_atomic(job.archive, found.outputs[ARCHIVE])
    return record_made(job, action, found.where, found.seconds, found.worker)


def _compiled(job: CompileJob, action: Action, notify: Notify) -> ActionRecord:
    if job.jobs.address and not stays(job):
        from mlfbuild.farm import FarmSettings, called  # few projects have a farm

        result = called(FarmSettings(job.jobs.address), compile_task(job, action))
        if REASON not in result.outputs:
            return keep_archive(job, action, result, notify)
        notify(f"{job.title} is left to this machine: {result.outputs[REASON].decode(errors='replace')}")
    begin = time.monotonic()
    # The archive before its key: after a kill between the two, the key belongs to an older archive, and the archive is
    # made again.
    compile_model(job)
    seconds = round(time.monotonic() - begin, 3)
    _store(job, action, read_bytes(job.archive, "archive"), "", seconds, notify)
    return record_made(job, action, COMPILED, seconds)


def keep_archive(job: CompileJob, action: Action, result: FarmResult, notify: Notify = lambda _: None) -> ActionRecord:
    """Write the archive that a worker made, record it, and store it in the cache; raises ``StorageError``."""
    content = result.outputs[ARCHIVE]
    write_atomic(job.archive, content)
    _store(job, action, content, result.worker, result.seconds, notify)
    return record_made(job, action, COMPILED, result.seconds, result.worker)


def _store(job: CompileJob, action: Action, content: bytes, worker: str, seconds: float, notify: Notify) -> None:
    cache = _cache_of(job, notify)
    # An input that was edited while the model was compiled is not the one in the key: the next build finds that here,
    # but all who share the cache would get the other archive.
    if cache is not None and compile_action(job).key == action.key:
        cache.store(action.key, {ARCHIVE: content}, worker=worker, seconds=seconds)
        _cache_of(job, notify)  # for what it could not do just now


def _cache_of(job: CompileJob, notify: Notify) -> ResultCache | None:
    """Return the cache of the job; ``None`` for archives whose inputs are not all known, and those that are copies."""
    program = job.request.program
    if job.cache is None or job.compiler == "archive" or (program is not None and not program.inputs):
        return None
    from mlfbuild.cache import shared_cache  # builds with nothing to do need none

    return shared_cache(job.cache, notify)


def compiled_of(job: CompileJob) -> Compiled:
    """Return the sizes of the job's archive, and the remarks on its network and code; raises as ``open_archive``."""
    return sizes(archives.open_archive(job.archive), job.archive.stat().st_size)


def least_ram(jobs: Sequence[CompileJob]) -> CompileJob:
    """Return the one of ``jobs`` with the smallest board: an archive that fits it fits the others."""
    return min(jobs, key=lambda job: math.inf if job.ram_limit is None else job.ram_limit)


def archive_is_known(action: Action, jobs: Sequence[CompileJob]) -> bool:
    """Return whether one of ``jobs`` has the archive that ``action`` makes."""
    return any(_is_made_by(action, job) for job in jobs)


def copy_archive(archive: Path, copy: Path) -> None:
    """Write the archive's bytes to ``copy``; raises ``InputFileError`` and ``StorageError``."""
    write_atomic(copy, read_bytes(archive, "archive"))


def record_archive(job: CompileJob) -> None:
    """Record that the job's archive, which another build system keeps up to date, is made from the present inputs."""
    record_made(job, compile_action(job), COPIED)


def record_made(job: CompileJob, action: Action, origin: str, seconds: float = 0.0, worker: str = "") -> ActionRecord:
    """Record that the job's archive was made by ``action``, in ``seconds`` on ``worker``, and return the record."""
    return record_action(key_file(job), action, job.archive, origin, seconds, worker)


def archive_record(job: CompileJob) -> ActionRecord | None:
    """Return how the job's archive was made last; ``None`` if mlfbuild did not make it."""
    return recorded_action(key_file(job))


def is_current(job: CompileJob) -> bool:
    """Return whether the job's archive exists, is unchanged, and is up to date with its inputs.

    Raises as ``compile_action``: the version of an external compiler is part of the key, and the program may be
    missing.
    """
    return _is_made_by(compile_action(job), job)


def _is_made_by(action: Action, job: CompileJob) -> bool:
    # Times are not compared: git, tar and copies change them without changing a file, and a clock may be wrong. The
    # hash of the archive is compared as well, so that an archive that was edited or cut off is made again.
    record = archive_record(job)
    return record is not None and record.key == action.key and record.sha256 == hash_of(job.archive)


def outline_of(job: CompileJob) -> Library | None:
    """Return a library with the names of the modules and files of the job's archive, without compiling.

    ``None`` if they are only known from the archive, and it is missing or out of date.
    """
    known = compiler_called(job.compiler).outline(job.request)
    if known is not None:
        return known
    return archives.open_archive(job.archive) if is_current(job) else None


def unpack_archive(
    archive: Path, directory: Path, settings: TreeSettings | None = None, trust: Trust | None = None
) -> UnpackResult:
    """Unpack ``archive``, which ``trust`` must have signed, into the tree ``directory``.

    Raises as ``open_archive``, ``ConflictError`` (before anything is written), ``StorageError``, and ``UsageError`` if
    the placement has a section for data that the archive's own code defines, or as ``parts_of``.
    """
    library, archive_id = archives.open_archive_with_id(archive, trust)
    settings = settings or TreeSettings()
    if settings.placement is not None and settings.placement.sections:
        check_placement(library, settings.placement, settings.model or archive.name, str(archive))
    return trees.unpack(library, directory, archive_id=archive_id, settings=settings)


def tree_settings(job: CompileJob) -> TreeSettings:
    """Return what the tree of the job has besides the files of its archive."""
    return TreeSettings(job.model, job.request.placement, job.verified_on, job.optimize, job.devices)


def unpack_job(job: CompileJob) -> UnpackResult:
    """Unpack the job's archive into its tree.

    Raises as ``unpack_archive``. Before anything is written, raises ``UnsupportedModelError`` if the arena is larger
    than the board's RAM, because the archive may have been made for another board, and ``CheckFailedError`` if a frozen
    build locks another archive.
    """
    library, archive_id = archives.open_archive_with_id(job.archive)
    if job.locked is not None and archive_id != job.locked:
        reason = f"the lock file has {job.locked[:_SHOWN]}, but this build made {archive_id[:_SHOWN]}"
        hint = "undo the change, or accept it with `mlfbuild lock`"
        raise CheckFailedError("archive-not-as-locked", place=f"archive of {job.title}", reason=reason, hint=hint)
    check_ram(job, library)
    check_device_objects(library, job.devices, str(job.archive))
    return trees.unpack(library, job.tree, archive_id=archive_id, settings=tree_settings(job))


def finish_target(target: TargetJob, dependencies: Sequence[ResolvedLibrary] = ()) -> UnpackResult:
    """Write the target's aggregate fragment, its board's files and ``dependencies``, and remove trees of old models.

    ``dependencies`` is the result of ``target_dependencies``. Call it when the trees of all models exist: the fragment
    includes theirs, and packages of other build systems list their files. Raises as ``write_target_tree``.
    """
    return trees.write_target_tree(
        target.tree,
        target.in_fragment(),
        target.board,
        target.cpu,
        target.systems,
        target.placed,
        dependencies,
        target.version,
        budgets=budgets_text(target),
    )


def budgets_text(target: TargetJob) -> str:
    """Return the text of the target's ``budgets.json``; empty if it has no budgets."""
    return with_modules(target.budgets, target).to_json() if target.budgets else ""


def with_modules(budgets: TargetBudgets, target: TargetJob) -> TargetBudgets:
    """Return ``budgets`` with the modules of models from other compilers than the native one, if they are known."""
    modules: dict[str, str] = {}
    for job in (*target.models, *target.others):
        if job.model in budgets.models and job.compiler != "native":
            library = outline_of(job)
            modules |= dict.fromkeys((module.name for module in library.modules) if library else (), job.model)
    return replace(budgets, modules=modules)


def tree_is_whole(directory: Path) -> bool:
    """Return whether every file of the unpacked tree exists and is unchanged, by hash."""
    return not tree_damage(directory)


def generated_files(directory: Path) -> list[Path]:
    """Return the files in ``directory`` that mlfbuild wrote, its RECORD.json last; empty if there is no record."""
    return recorded_files(directory)


def stray_files(target: TargetJob) -> dict[str, list[Path]]:
    """Return name -> files that mlfbuild wrote next to the target's models, for models not in the project file.

    Such models were removed from the project file, or unpacked by hand. Archives are listed only if mlfbuild made them.
    Folders whose record cannot be read are skipped.
    """
    known = {job.model for job in (*target.models, *target.others)}
    folders = sorted(target.tree.iterdir()) if target.tree.is_dir() else []
    return {
        folder.name: [*_made_beside(folder), *generated_files(folder)]
        for folder in folders
        if folder.name not in known and _is_unpacked(folder)
    }


def _made_beside(tree: Path) -> list[Path]:
    """Return the archive of a tree and its key file, if both exist."""
    archive = tree.with_name(f"{tree.name}.tar")
    key = _key_of(archive)
    return [archive, key] if archive.is_file() and key.is_file() else []


def _is_unpacked(folder: Path) -> bool:
    try:
        record = read_record(folder)
    # A user's folder may have another RECORD.json, or one of a newer mlfbuild, which must not be removed.
    except (ConflictError, InputFileError):
        return False
    return record is not None and bool(record.archive)


def prune_folders(directory: Path) -> None:
    """Remove the empty folders under ``directory``, and ``directory`` itself if it is then empty."""
    # In reverse order, so that a folder comes after what is in it; one with files of the user is not empty and stays.
    for folder in sorted((path for path in directory.rglob("*") if path.is_dir()), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()
    with contextlib.suppress(OSError):
        directory.rmdir()
