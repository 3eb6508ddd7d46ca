"""Builders of single files: a model into an archive, archives into one, an archive into a tree."""

from __future__ import annotations

import atexit
import functools
from pathlib import Path
from typing import Any

from SCons.Builder import Builder
from SCons.Script import GetOption

from mlfbuild.scons.actions import action, as_user_error
from mlfbuild.steps.archives import merge_archives
from mlfbuild.steps.jobs import COMPILE_ROOMS, MERGE_ROOMS, UNPACK_ROOMS, CompileJob, fingerprint
from mlfbuild.steps.models import (
    compile_model,
    generated_files,
    prune_folders,
    tree_is_whole,
    unpack_archive,
    unpack_job,
)
from mlfbuild.steps.project import compile_job, default_compiler
from mlfbuild.steps.workers import in_worker


def archive_builder() -> Any:
    """Return ``MlfArchive``: ``env.MlfArchive("kws.tar", "kws.tflite", MLFCPU="cortex-m55")``.

    The model's name is the archive's, unless ``MLFNAME`` says otherwise.
    """
    return Builder(
        action=action(_compile, "$MLFARCHIVECOMSTR"),
        suffix=".tar",
        single_source=True,
        emitter=_archive_emitter,
    )


def merge_builder() -> Any:
    """Return ``MlfMerge``: ``env.MlfMerge("both.tar", ["kws.tar", "vww.tar"])``; the order makes no difference."""
    return Builder(action=action(_merge, "$MLFMERGECOMSTR"), suffix=".tar", src_suffix=".tar", emitter=_merge_emitter)


def unpack_builder() -> Any:
    """Return ``MlfUnpack``: ``env.MlfUnpack("firmware/kws", "kws.tar")``; its nodes are RECORD.json and mlf.cmake."""
    return Builder(
        action=action(_unpack, "$MLFUNPACKCOMSTR"),
        single_source=True,
        emitter=_unpack_emitter,
        target_factory=lambda name: _fs().Entry(name),
    )


def _fs() -> Any:
    from SCons.Node.FS import get_default_fs

    return get_default_fs()


@as_user_error
def _job(target: list[Any], source: list[Any], env: Any) -> CompileJob:
    """Return the job that ``MlfModels`` put into the environment, or one made of the user's own variables."""
    if "MLFJOB" in env:
        job = env["MLFJOB"]
        assert isinstance(job, CompileJob)
        return job
    archive = Path(target[0].get_abspath())
    return compile_job(
        name=env.subst("$MLFNAME") or archive.stem,
        source=Path(source[0].rfile().get_abspath()),
        cpu=env.subst("$MLFCPU"),
        compiler=env.subst("$MLFCOMPILER") or default_compiler(Path(source[0].rfile().get_abspath())),
        executor=env.subst("$MLFEXECUTOR") or None,
        options=dict(env["MLFOPTIONS"]),
        archive=archive,
    )


def _archive_emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    job = _job(target, source, env)
    env.Depends(target, [env.Value(job.settings()), env.Value(fingerprint(COMPILE_ROOMS))])
    return target, source


def _compile(target: list[Any], source: list[Any], env: Any) -> None:
    job = _job(target, source, env)
    workers = int(GetOption("num_jobs"))
    if workers > 1:
        in_worker(compile_model, job, workers)
    else:
        compile_model(job)


def _merge_emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    env.Depends(target, env.Value(fingerprint(MERGE_ROOMS)))
    return target, sorted(source, key=str)  # another order is no other archive


def _merge(target: list[Any], source: list[Any], _env: Any) -> None:
    paths = [Path(node.rfile().get_abspath()) for node in source]
    output = Path(target[0].get_abspath())
    workers = int(GetOption("num_jobs"))
    if workers > 1:
        in_worker(functools.partial(merge_archives, paths), output, workers)
    else:
        merge_archives(paths, output)


def _unpack_emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    folder = env.Dir(str(target[0]))
    nodes = [folder.File("RECORD.json"), folder.File("mlf.cmake")]
    env.Depends(nodes, [env.Value(fingerprint(UNPACK_ROOMS)), env.Value(_job_settings(env))])
    env.Precious(nodes)  # SCons removes targets before it builds them; the old record says what may be pruned
    if not tree_is_whole(Path(folder.get_abspath())):
        env.AlwaysBuild(nodes)
    clean_generated(env, nodes, Path(folder.get_abspath()))
    return nodes, source


def clean_generated(env: Any, nodes: Any, folder: Path) -> None:
    """Let ``scons -c`` remove the files that RECORD.json lists and the folders they leave empty, and nothing else."""
    if not GetOption("clean"):
        return
    env.Clean(nodes, [env.File(str(path)) for path in generated_files(folder)])
    if not GetOption("no_exec"):
        atexit.register(prune_folders, folder)


def _job_settings(env: Any) -> str:
    return str(env["MLFJOB"].tree_settings()) if "MLFJOB" in env else str(env.subst("$MLFNAME"))


def _unpack(target: list[Any], source: list[Any], env: Any) -> None:
    if "MLFJOB" in env:
        unpack_job(env["MLFJOB"])
    else:
        folder = Path(target[0].get_abspath()).parent
        unpack_archive(Path(source[0].get_abspath()), folder, model=env.subst("$MLFNAME") or None)
