"""``MlfModels``: the models of one target of a project file.

``MlfParams`` writes constants for external flash; ``models.place`` uses the memory regions of a target.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from SCons.Builder import Builder
from SCons.Node import NodeList
from SCons.Script import GetOption
from SCons.Util import CLVar

from mlfbuild import jobs
from mlfbuild.core import MlfError, UsageError, listed, package_fingerprint
from mlfbuild.library import ResolvedLibrary
from mlfbuild.scons.actions import Begin, action, as_user_error, checked_action, show
from mlfbuild.scons.archives import clean_generated
from mlfbuild.scons.link import apply, chosen
from mlfbuild.scons.trees import TreeNodes, known_fragment, model_tree, remember_fragment
from mlfbuild.scons.variables import flag


def params_builder() -> Any:
    """Return ``MlfParams``: ``env.MlfParams("app_params.bin", app)``.

    Writes the bytes of the image's section ``MLFSECTION``, for the programmer of external flash.
    """
    return Builder(action=action(_write, "$MLFPARAMSCOMSTR"), suffix=".bin", single_source=True, emitter=_emitter)


def _emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
    env.Depends(target, env.Value(env.subst("$MLFSECTION")))
    env.Precious(target)  # written only if its bytes changed
    return target, source


def _write(target: list[Any], source: list[Any], env: Any) -> None:
    section = env.subst("$MLFSECTION")
    written = jobs.write_params_binary(Path(source[0].get_abspath()), section, Path(target[0].get_abspath()))
    show(f"{target[0]}: {written.size:,} bytes of {section} for address {written.address:#010x}")


def place(env: Any, target: jobs.TargetJob) -> None:
    """Pass the linker script of ``target`` to programs of ``env``, after their own; a second call changes nothing.

    ``target`` must have ``regions`` in the project file; raises ``UsageError`` otherwise. Programs are linked again if
    the script changes.
    """
    if not target.placed:
        raise UsageError(
            "regions-missing",
            place=f"target {target.name!r}",
            reason="the project file places no section of it in a memory region",
            hint="add regions to the target",
        )
    script = env.File(str(target.placement_script))
    flag = f"-T{script.get_abspath()}"
    # A clone of an environment already has it.
    if flag not in env.subst("$LINKFLAGS"):
        env.Append(LINKFLAGS=CLVar([flag]), PROGEMITTER=[_depends_on(script)])


def _depends_on(script: Any) -> Any:
    def emitter(target: list[Any], source: list[Any], env: Any) -> tuple[list[Any], list[Any]]:
        env.Depends(target, script)
        return target, source

    return emitter


class ModelNodes(NodeList):  # type: ignore[misc]  # SCons publishes no annotations
    """The nodes of a target's models (a node list to depend on) and the project they come from."""

    def __init__(
        self,
        nodes: list[Any],
        project: Any,
        target: jobs.TargetJob,
        trees: list[TreeNodes],
        dependencies: Sequence[ResolvedLibrary],
    ) -> None:
        super().__init__(nodes)
        self.project = project
        self.target = target
        self.trees = trees
        self.dependencies = dependencies

    @as_user_error
    def apply(self, env: Any, *models: str) -> NodeList:
        """Add the models' include folders to ``CPPPATH`` of ``env`` and a static library of each to ``LIBS``.

        ``models`` selects some of them. The libraries that they require follow theirs. All are compiled by ``env`` with
        its flags, and returned.
        """
        return apply(env, self.target, chosen(self.trees, models), self.dependencies)

    @as_user_error
    def place(self, env: Any) -> None:
        """Put the models' sections into the target's memory regions.

        The linker script of the tree is passed after that of ``env``.
        """
        place(env, self.target)


@as_user_error
def mlf_models(
    env: Any, project: str = "mlfbuild.yml", target: str = "", models: list[str] | None = None
) -> ModelNodes:
    """Compile and unpack the models of ``target`` into ``$MLFBUILDDIR/mlf``; return their nodes.

    ``target`` may be omitted if the project has one target. ``models`` selects some of its models. If the project file
    has mistakes, SCons stops and prints all of them; with ``MLFFROZEN``, it also stops at differences from
    mlfbuild.lock.
    """
    file = env.File(project).srcnode()
    if "$" in file.get_abspath():
        reason, hint = "SCons takes $ in a path for a variable", "rename the folder"
        raise UsageError("path-unsuited", place=file.get_abspath(), reason=reason, hint=hint)
    loaded = _loaded(Path(file.get_abspath()))
    build = Path(env.Dir(env.subst("$MLFBUILDDIR")).get_abspath())
    _lock(env, build)
    (job,) = jobs.target_jobs(loaded, [only_target(loaded, target)], models or [], build)
    # ``scons -c`` and ``scons -h`` must work although something differs from the lock file.
    if flag(env, "MLFFROZEN") and not (GetOption("clean") or GetOption("help")):
        from mlfbuild.usecases import freeze_beforehand  # reads lock files, which most builds do not

        (job,) = freeze_beforehand(loaded, [job], [env.subst(word) for word in env["MLFCMAKEFLAGS"]])
    _make_archives(job, loaded, build)
    settings = job.settings()
    dependencies = _dependencies(job)
    fragment = known_fragment(job, settings)
    trees = [model_tree(env, model) for model in job.models]
    jobs.check_module_names({tree.job.model: [module.name for module in tree.outline.modules] for tree in trees})
    if fragment is None:
        fragment = _fragment(env, job, settings, trees, dependencies)
        remember_fragment(job, settings, fragment)
    return ModelNodes([*fragment, *(node for tree in trees for node in tree.nodes)], loaded, job, trees, dependencies)


def _dependencies(job: jobs.TargetJob) -> Sequence[ResolvedLibrary]:
    """Return the models' dependencies; errors are ignored if nothing is built, so that ``scons -c`` works."""
    try:
        return jobs.target_dependencies(job)
    except MlfError:
        if GetOption("clean") or GetOption("help"):
            return ()
        raise


@functools.cache
def _locks() -> contextlib.ExitStack:
    """Return the locks of this process's build folders, which it releases when it ends."""
    # Until the end of the process: SCons builds after the SConscripts have been read, when no function here is active.
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack


def _lock(env: Any, build: Path) -> None:
    """Lock the build folder unless nothing is built or removed, and pass the lock to the programs of SCons."""
    if not any(GetOption(name) for name in ("help", "no_exec", "question")):
        _locks().enter_context(jobs.folder_locked(build, show, wait=not flag(env, "MLFNOWAIT")))
        # SCons starts programs with env["ENV"] instead of os.environ: a mlfbuild that CMake starts would wait for this
        # process.
        env["ENV"][jobs.LOCKED_VARIABLE] = os.environ[jobs.LOCKED_VARIABLE]


def _make_archives(target: jobs.TargetJob, project: Any, build: Path) -> None:
    """Make the archives whose file list is not known in advance, unless nothing is built."""
    # ``scons -n`` and ``scons -q`` must change nothing, and the others need no archives.
    if any(GetOption(name) for name in ("clean", "help", "no_exec", "question")):
        return
    lenders = jobs.target_jobs(project, build=build)
    jobs.make_archives([target], lenders, jobs=int(GetOption("num_jobs")), progress=_Shown())


class _Shown(jobs.Progress):
    def start(self, task: jobs.Task) -> None:
        show(f"mlfbuild: {task}")


@functools.cache
def _loaded(path: Path) -> Any:
    """Return the project file, which is read once in a build."""
    # Several calls of MlfModels(), one for each target, read one file.
    return jobs.load(path)


def _fragment(
    env: Any, job: jobs.TargetJob, settings: str, trees: list[TreeNodes], dependencies: Sequence[ResolvedLibrary]
) -> Any:
    files = [str(job.tree / "mlf.cmake"), *([str(job.placement_script)] if job.placed else [])]
    files += [str(job.dependencies_folder / path) for path in jobs.copied_files(dependencies)]
    write = checked_action(_finish, "$MLFTREECOMSTR")
    fragment = env.Command(files, [], write, MLFTARGETJOB=job, MLFDEPENDENCIES=dependencies)
    env.Requires(fragment, [node for tree in trees for node in tree.nodes])  # it names the trees, not their content
    env.Depends(fragment, [env.Value(settings), env.Value(package_fingerprint())])
    env.Depends(fragment, env.Value(jobs.dependency_settings(dependencies)))
    env.Precious(fragment)
    env.NoCache(fragment)
    if not jobs.tree_is_whole(job.tree) or (dependencies and not jobs.tree_is_whole(job.dependencies_folder)):
        env.AlwaysBuild(fragment)
    clean_generated(env, fragment, job.dependencies_folder)
    clean_generated(env, fragment, job.tree)
    return fragment


def _finish(target: list[Any], _source: list[Any], env: Any, begin: Begin) -> None:
    with jobs.trees_locked([env["MLFTARGETJOB"]]):
        result = jobs.finish_target(env["MLFTARGETJOB"], env["MLFDEPENDENCIES"])
    if result.recorded or result.removed:
        begin()
    for node in target:
        node.clear_memoized_values()  # SCons may remember that a copy did not exist, and scanners rely on that


def only_target(project: Any, name: str) -> str:
    """Return ``name``, or the project's only target if it is empty; raise ``UsageError`` if there are several."""
    if name or len(project.targets) == 1:
        return name or next(iter(project.targets))
    raise UsageError(
        "target-not-chosen",
        place=project.path,
        reason=f"the project has the targets {listed(list(project.targets))}",
        hint="choose one with MlfModels(target=...)",
    )
