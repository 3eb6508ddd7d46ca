"""Builders of single steps: compile a model, merge or copy archives, unpack an archive."""

from __future__ import annotations

import atexit
import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from SCons.Builder import Builder
from SCons.Node.FS import get_default_fs
from SCons.Script import GetOption

from mlfbuild import jobs
from mlfbuild.core import InputFileError, Trust, package_fingerprint, signature_path
from mlfbuild.native import SourceFiles
from mlfbuild.scons.actions import Begin, action, as_user_error, checked_action, show

A = TypeVar("A")
R = TypeVar("R")

_jobs: dict[Any, jobs.CompileJob] = {}
"""The jobs of project files, by the nodes of their archives and of their trees' folders."""
_outlines: dict[Any, jobs.Outline] = {}
"""Outlines, by the same folders. As construction variables, both would require an environment for each node."""


def archive_builder() -> Any:
    """Return ``MlfArchive``: ``env.MlfArchive("kws.tar", "kws.tflite", MLFCPU="cortex-m55")``.

    Compiles one model file, without a project file. The model is named after the archive unless ``MLFNAME`` is set.
    """
    return Builder(
        action=checked_action(_compile, "$MLFARCHIVECOMSTR"),
        suffix=".tar",
        single_source=True,
        emitter=_archive_emitter,
    )


def job_archive(env: Any, job: jobs.CompileJob) -> Any:
    """Return the node of the archive that ``job`` compiles."""
    target = env.File(str(job.archive))
    _jobs[target] = job
    source = env.File(str(job.request.source)) if job.quantize is None else _quantized(env, job.quantize)
    return env.MlfArchive(target, source)


def _quantized(env: Any, step: jobs.QuantizeStep) -> Any:
    """Return the node of the file that ``step`` makes, which is one for all targets."""
    node = env.File(str(step.made))
    if node.has_builder():
        return node
    idle = GetOption("clean") or GetOption("help")
    reads = [] if idle else [env.File(str(path)) for path in as_user_error(lambda: step.reads)()]
    made = env.Command(node, reads, checked_action(_quantize, "$MLFQUANTIZECOMSTR"), MLFQUANTIZESTEP=step)
    env.Depends(made, [env.Value(json.dumps(step.settings(), sort_keys=True)), env.Value(package_fingerprint())])
    env.Precious(made)
    env.NoCache(made)
    env.Clean(made, env.File(str(step.record)))
    # SCons sees neither versions of the engine nor edits of what it has built.
    if not idle and not as_user_error(jobs.is_quantized)(step):
        env.AlwaysBuild(made)
    return made


def _quantize(_target: list[Any], _source: list[Any], env: Any, begin: Begin) -> None:
    step = env["MLFQUANTIZESTEP"]
    if not jobs.is_quantized(step):
        begin()
        jobs.make_quantized(step, lambda text: show(f"note: {text}"))


def job_copy(env: Any, job: jobs.CompileJob, archive: Any) -> Any:
    """Return the node of the archive of ``job``, a copy of ``archive``, which is equal."""
    target = env.File(str(job.archive))
    _jobs[target] = job
    copy = env.MlfCopy(target, archive)
    # SCons would remove the copy before it runs the action, which may find that it is up to date.
    env.Precious(copy)
    env.NoCache(copy)
    return copy


def job_tree(env: Any, job: jobs.CompileJob, outline: jobs.Outline, archive: Any) -> Any:
    """Return the nodes of the tree that ``archive`` is unpacked into for ``job``; the first is RECORD.json."""
    folder = env.Dir(str(job.tree))
    _jobs[folder] = job
    _outlines[folder] = outline
    return env.MlfUnpack(folder, archive)


def copy_builder() -> Any:
    """Return ``MlfCopy``: ``env.MlfCopy("kws.tar", "other/kws.tar")``; the archive becomes a copy of the other one."""
    return Builder(action=checked_action(_copy, "$MLFCOPYCOMSTR"), single_source=True)


def _copy(target: list[Any], source: list[Any], _env: Any, begin: Begin) -> None:
    job = _jobs.get(target[0])
    if job is None:
        begin()
        jobs.copy_archive(Path(source[0].get_abspath()), Path(target[0].get_abspath()))
    elif not jobs.is_current(job):
        begin()
        with jobs.trees_locked([job]):
            jobs.copy_archive(Path(source[0].get_abspath()), job.archive)
            jobs.record_archive(job)


def merge_builder() -> Any:
    """Return ``MlfMerge``: ``env.MlfMerge("both.tar", ["kws.tar", "vww.tar"])``.

    Makes one archive of several, in any order.
    """
    return Builder(action=action(_merge, "$MLFMERGECOMSTR"), suffix=".tar", src_suffix=".tar", emitter=_merge_emitter)


def unpack_builder() -> Any:
    """Return ``MlfUnpack``: ``env.MlfUnpack("firmware/kws", "kws.tar")``.

    Unpacks one archive; its nodes are RECORD.json and mlf.cmake.
    """
    return Builder(
        action=checked_action(_unpack, "$MLFUNPACKCOMSTR"),
        single_source=True,
        emitter=_unpack_emitter,
        target_factory=lambda name: get_default_fs().Entry(name),
    )


@as_user_error
def _job(target: list[Any], source: list[Any], env: Any) -> jobs.CompileJob:
    """Return the job that a project file has for the archive, or one from construction variables."""
    if target[0] in _jobs:
        return _jobs[target[0]]
    archive = Path(target[0].get_abspath())
    from mlfbuild.usecases import file_job  # not needed for jobs of project files

    return file_job(
        Path(source[0].rfile().get_abspath()),
        archive,
        env.subst("$MLFCPU"),
        name=env.subst("$MLFNAME") or archive.stem,
        compiler=env.subst("$MLFCOMPILER"),
        executor=env.subst("$MLFEXECUTOR"),
        python=env.subst("$MLFPYTHON"),
        options=dict(env["MLFOPTIONS"]),
        trust=_trust(env, source[0]),
    )


def _trust(env: Any, source: Any) -> Trust | None:
    """Return who must have signed ``source`` without a project file: those of MLFSIGNERS, unless SCons makes it."""
    signers = env.subst("$MLFSIGNERS")
    return None if not signers or source.has_builder() else Trust(Path(env.File(signers).srcnode().get_abspath()))


def _signatures(env: Any, source: list[Any]) -> list[Any]:
    """Return the nodes that decide whether each of ``source`` is trusted; a signature that is missing has none."""
    trusts = {Path(node.srcnode().get_abspath()): _trust(env, node) for node in source}
    files = [(signature_path(path), trust.signers) for path, trust in trusts.items() if trust is not None]
    return [env.File(str(path)) for pair in files for path in pair if path.is_file()]


def _archive_emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    job = _job(target, source, env)
    # Values and not the project file: a comment there, or a key of another model, must rebuild nothing.
    env.Depends(target, [env.Value(job.settings()), env.Value(package_fingerprint())])
    # scons -c must work although a file with weights is missing.
    if not GetOption("clean") and not GetOption("help"):
        env.Depends(target, [env.File(str(path)) for path in (*_weights(job), *jobs.trust_files(job).values())])
        if job.bundles:
            env.Depends(target, env.Value(as_user_error(jobs.bundle_key)(job)))
    if target[0] in _jobs:
        env.Precious(target)  # SCons removes targets before it builds them, but this one may be up to date
        # mlfbuild's own cache has it, for `mlfbuild` and CMake as well, and checks it by its hash.
        env.NoCache(target)
    if job.made_first:
        _keep_current(target, job, env)
    return target, source


@as_user_error
def _weights(job: jobs.CompileJob) -> list[Path]:
    return list(SourceFiles(job.request.source).weights.values())


def _keep_current(target: list[Any], job: jobs.CompileJob, env: Any) -> None:
    """Keep an archive that was made while SConscripts were read, if it is current."""
    if GetOption("clean"):
        env.Clean(target, env.File(str(jobs.key_file(job))))
    elif not GetOption("help"):
        files = [env.File(str(path)) for path in jobs.read_files(job)]
        env.Depends(target, [*files, env.Value(jobs.program_version(job))])


def _compile(target: list[Any], source: list[Any], env: Any, begin: Begin) -> None:
    job = _job(target, source, env)
    if target[0] not in _jobs:
        begin()
        _call(_compile_file, job)
    elif not jobs.is_current(job):  # it is if `mlfbuild build` made it
        origin = _restored(job)
        if origin:
            begin(f"Retrieved `{target[0]}' from the {'shared ' * (origin == 'remote')}cache of models")
            return
        begin()
        # A farm compiles elsewhere, so that a thread is enough to wait for it.
        (_compile_job if job.jobs.address else functools.partial(_call, _compile_job))(job)


def _restored(job: jobs.CompileJob) -> str:
    """Take the archive from the cache, if it is there; return which cache it is from."""
    with jobs.trees_locked([job]):
        record = jobs.restore_archive(job, jobs.compile_action(job), lambda text: show(f"note: {text}"))
    if record is None:
        return ""
    _show_notes(job, jobs.compiled_of(job).notes)
    return record.origin


def _compile_file(job: jobs.CompileJob) -> None:
    if job.made_first:
        jobs.compile_if_needed(job)
    else:
        _show_notes(job, jobs.compile_model(job).notes)


def _compile_job(job: jobs.CompileJob) -> None:
    with jobs.trees_locked([job]):
        record = jobs.compile_if_needed(job, lambda text: show(f"note: {text}"))
    _show_notes(job, jobs.compiled_of(job).notes if record else ())


def _show_notes(job: jobs.CompileJob, notes: Sequence[str]) -> None:
    for text in notes:
        show(f"note: {job.title}: {text}")


def _unpack_tree(job: jobs.CompileJob) -> bool:
    """Unpack the archive of ``job``; return whether its tree changed."""
    with jobs.trees_locked([job]):
        result = jobs.unpack_job(job)
    return result.recorded


def _call(function: Callable[[A], R], argument: A) -> R:
    """Call ``function(argument)``, in a worker process if SCons runs jobs in parallel."""
    # In a worker, because SCons runs actions in threads, and compilers written in Python would wait for each other
    # there.
    workers = int(GetOption("num_jobs"))
    return jobs.in_worker(function, argument, workers) if workers > 1 else function(argument)


def _merge_emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    env.Depends(target, [env.Value(package_fingerprint()), *_signatures(env, source)])
    return target, sorted(source, key=str)  # the order does not change the archive


def _merge(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.usecases import merge_archives  # not needed in most builds

    trust = {Path(node.rfile().get_abspath()): _trust(env, node) for node in source}
    signed = {path: one for path, one in trust.items() if one is not None}
    _call(functools.partial(merge_archives, [*trust], trust=signed), Path(target[0].get_abspath()))


def _unpack_emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    folder = env.Dir(target[0])
    outline = _outlines.get(folder)
    nodes = [folder.File(name) for name in (outline.compiled if outline else (jobs.RECORD, jobs.FRAGMENT))]
    settings = _jobs[folder].unpack_settings() if folder in _jobs else str(env.subst("$MLFNAME"))
    signatures = [] if folder in _jobs else _signatures(env, source)
    env.Depends(nodes, [env.Value(package_fingerprint()), env.Value(settings), *signatures])
    env.Precious(nodes)  # SCons removes targets before it builds them, but the old record lists what to prune
    env.NoCache(nodes)  # trees are restored as a whole, from the archive, which may be cached
    # SCons does not look at the content of what it has built: without this, an edited file of a tree would stay.
    whole = jobs.tree_is_whole(Path(folder.get_abspath()))
    if not whole:
        env.AlwaysBuild(nodes)
    known = outline is not None and (outline.self_contained or (whole and outline.is_laid_out()))
    # SCons reads a folder once. Without nodes, headers that are written later would be unknown to the files that
    # include them until the next build, and in a variant folder SCons would remove them. If SCons finds the files by
    # itself, they are not declared, which saves their nodes.
    for name in outline.others if outline and not (known and folder.srcnode() is folder) else ():
        file = env.SideEffect(folder.File(name), nodes[0])
        env.Precious(file)
        env.NoCache(file)
    clean_generated(env, nodes, Path(folder.get_abspath()))
    return nodes, source


def clean_generated(env: Any, nodes: Any, folder: Path) -> None:
    """Let ``scons -c`` remove the files that RECORD.json lists, with folders that become empty, and nothing else."""
    if not GetOption("clean"):
        return
    env.Clean(nodes, [env.File(str(path)) for path in jobs.generated_files(folder)])
    # At the end, because SCons removes the files after the SConscripts have been read.
    if not GetOption("no_exec"):
        atexit.register(jobs.prune_folders, folder)


def _unpack(target: list[Any], source: list[Any], env: Any, begin: Begin) -> None:
    folder = target[0].dir
    if folder in _jobs:
        if _unpack_job(_jobs[folder], source[0]):
            begin()
    else:
        from mlfbuild.usecases import unpack_file  # not needed for jobs of project files

        begin()
        archive, path = Path(source[0].get_abspath()), Path(folder.get_abspath())
        unpack_file(archive, path, model=env.subst("$MLFNAME"), trust=_trust(env, source[0]), notify=show)
    for file in target[0].side_effects:
        file.clear_memoized_values()  # SCons remembers that they did not exist, and scanners rely on that


def _unpack_job(job: jobs.CompileJob, archive: Any) -> bool:
    """Unpack the archive of ``job``; return whether its tree changed.

    If the archive cannot be read, build it again: SCons does not look at the content of what it has built.
    """
    try:
        return _call(_unpack_tree, job)
    except InputFileError:
        show(f"{archive}: damaged, building it again")
        _call(_compile_job, job)
        return _call(_unpack_tree, job)
