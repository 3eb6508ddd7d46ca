"""``MlfModels``: the models of one target of a project file."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from SCons.Node import NodeList
from SCons.Script import GetOption

from mlfbuild.build import (
    Silent,
    TargetJob,
    Task,
    check_module_names,
    copied_files,
    dependency_settings,
    finish_target,
    load,
    make_archives,
    target_dependencies,
    target_jobs,
    tree_is_whole,
)
from mlfbuild.core import MlfError, UsageError, package_fingerprint
from mlfbuild.library import ResolvedLibrary
from mlfbuild.scons.actions import action, as_user_error, show
from mlfbuild.scons.archives import clean_generated
from mlfbuild.scons.link import apply, chosen
from mlfbuild.scons.placement import place
from mlfbuild.scons.trees import Tree, known_fragment, model_tree, remember_fragment
from mlfbuild.scons.variables import flag


class ModelNodes(NodeList):  # type: ignore[misc]  # SCons publishes no annotations
    """The nodes of a target's models (a node list to depend on) and the project they come from."""

    def __init__(
        self,
        nodes: list[Any],
        project: Any,
        target: TargetJob,
        trees: list[Tree],
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

        ``models`` chooses some of them. What they need beside their archives is a library, too, behind theirs. All are
        compiled by ``env`` with its own flags; they are returned.
        """
        return apply(env, chosen(self.trees, models), self.dependencies)

    @as_user_error
    def place(self, env: Any) -> None:
        """Put the models' sections into the target's memory regions: the script of the tree behind that of ``env``."""
        place(env, self.target)


@as_user_error
def mlf_models(
    env: Any, project: str = "mlfbuild.yml", target: str = "", models: list[str] | None = None
) -> ModelNodes:
    """Compile and unpack the models of ``target`` (the only one where the project has one) into ``$MLFBUILDDIR/mlf``.

    ``models`` chooses some of them. Mistakes in the project file stop SCons with every one of them listed, and with
    ``MLFFROZEN`` so does all that is not as mlfbuild.lock has it.
    """
    file = env.File(project).srcnode()
    loaded = _loaded(Path(file.get_abspath()))
    build = Path(env.Dir(env.subst("$MLFBUILDDIR")).get_abspath())
    (job,) = target_jobs(loaded, [only_target(loaded, target)], models or [], build)
    if flag(env, "MLFFROZEN") and not (GetOption("clean") or GetOption("help")):
        from mlfbuild.usecases import freeze_beforehand  # reads lock files: most builds have none

        (job,) = freeze_beforehand(loaded, [job], [env.subst(word) for word in env["MLFCMAKEFLAGS"]])
    _make_archives(job, loaded, build)
    settings = job.settings()
    dependencies = _dependencies(job)
    fragment = known_fragment(job, settings)
    trees = [model_tree(env, model) for model in job.models]
    check_module_names({tree.job.model: [module.name for module in tree.outline.modules] for tree in trees})
    if fragment is None:
        fragment = _fragment(env, job, settings, trees, dependencies)
        remember_fragment(job, settings, fragment)
    return ModelNodes([*fragment, *(node for tree in trees for node in tree.nodes)], loaded, job, trees, dependencies)


def _dependencies(job: TargetJob) -> Sequence[ResolvedLibrary]:
    """Return what the models need; what cannot be had stops everything but the removal of what was made."""
    try:
        return target_dependencies(job)
    except MlfError:
        if GetOption("clean") or GetOption("help"):
            return ()
        raise


def _make_archives(target: TargetJob, project: Any, build: Path) -> None:
    """Make the archives that alone tell which files they hold, unless nothing is to be built."""
    if any(GetOption(name) for name in ("clean", "help", "no_exec", "question")):
        return
    make_archives([target], target_jobs(project, build=build), jobs=int(GetOption("num_jobs")), progress=_Shown())


class _Shown(Silent):
    def start(self, task: Task) -> None:
        show(f"mlfbuild: {task}")


@functools.cache
def _loaded(path: Path) -> Any:
    """Return the project file, read once in a build, however many targets it is asked for."""
    return load(path)


def _fragment(
    env: Any, job: TargetJob, settings: str, trees: list[Tree], dependencies: Sequence[ResolvedLibrary]
) -> Any:
    files = [str(job.tree / "mlf.cmake"), *([str(job.placement_script)] if job.placed else [])]
    files += [str(job.dependencies_folder / path) for path in copied_files(dependencies)]
    write = action(_finish, "$MLFTREECOMSTR")
    fragment = env.Command(files, [], write, MLFTARGETJOB=job, MLFDEPENDENCIES=dependencies)
    env.Requires(fragment, [node for tree in trees for node in tree.nodes])  # names the trees, whatever they hold
    env.Depends(fragment, [env.Value(settings), env.Value(package_fingerprint())])
    env.Depends(fragment, env.Value(dependency_settings(dependencies)))
    env.Precious(fragment)
    env.NoCache(fragment)
    if not tree_is_whole(job.tree) or (dependencies and not tree_is_whole(job.dependencies_folder)):
        env.AlwaysBuild(fragment)
    clean_generated(env, fragment, job.dependencies_folder)
    clean_generated(env, fragment, job.tree)
    return fragment


def _finish(target: list[Any], _source: list[Any], env: Any) -> None:
    finish_target(env["MLFTARGETJOB"], env["MLFDEPENDENCIES"])
    for node in target:
        node.clear_memoized_values()  # SCons may have seen that a copy was not there, and scanners would believe it


def only_target(project: Any, name: str) -> str:
    """Return ``name``, or where it is empty the project's only target; raises ``UsageError``."""
    if name or len(project.targets) == 1:
        return name or next(iter(project.targets))
    raise UsageError(
        f"{project.path}: has the targets {', '.join(project.targets)}; choose one with MlfModels(target=...)"
    )
