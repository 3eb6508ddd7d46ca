"""``MlfModels``: the models of one target of a project file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from SCons.Node import NodeList

from mlfbuild.errors import UsageError
from mlfbuild.scons.actions import action, as_user_error
from mlfbuild.scons.archives import clean_generated
from mlfbuild.steps.jobs import UNPACK_ROOMS, TargetJob, fingerprint
from mlfbuild.steps.models import finish_target, key_file, tree_is_whole
from mlfbuild.steps.project import load, target_jobs


class ModelNodes(NodeList):  # type: ignore[misc]  # SCons publishes no annotations
    """The nodes of a target's models (a node list to depend on) and the project they come from."""

    def __init__(self, nodes: list[Any], project: Any, target: TargetJob) -> None:
        super().__init__(nodes)
        self.project = project
        self.target = target


@as_user_error
def mlf_models(
    env: Any, project: str = "mlfbuild.yml", target: str = "", models: list[str] | None = None
) -> ModelNodes:
    """Compile and unpack the models of ``target`` (the only one where the project has one) into ``$MLFBUILDDIR/mlf``.

    ``models`` chooses some of them. Mistakes in the project file stop SCons with every one of them listed.
    """
    file = env.File(project).srcnode()
    loaded = load(Path(file.get_abspath()))
    build = Path(env.Dir(env.subst("$MLFBUILDDIR")).get_abspath())
    (job,) = target_jobs(loaded, [only_target(loaded, target)], models or [], build)
    trees = [_model_nodes(env, model) for model in job.models]
    fragment = env.Command(
        str(job.tree / "mlf.cmake"),
        [node for tree in trees for node in tree],
        action(_finish, "$MLFTREECOMSTR"),
        MLFTARGETJOB=job,
    )
    env.Depends(fragment, [env.Value(job.settings()), env.Value(fingerprint(UNPACK_ROOMS))])
    env.Precious(fragment)
    if not tree_is_whole(job.tree):
        env.AlwaysBuild(fragment)
    clean_generated(env, fragment, job.tree)
    return ModelNodes([*fragment, *(node for tree in trees for node in tree)], loaded, job)


def _finish(_target: list[Any], _source: list[Any], env: Any) -> None:
    finish_target(env["MLFTARGETJOB"])


def only_target(project: Any, name: str) -> str:
    """Return ``name``, or where it is empty the project's only target; raises ``UsageError``."""
    if name or len(project.targets) == 1:
        return name or next(iter(project.targets))
    raise UsageError(f"{project.path}: has the targets {', '.join(project.targets)}: MlfModels needs target=")


def _model_nodes(env: Any, job: Any) -> Any:
    archive = env.MlfArchive(str(job.archive), str(job.request.source), MLFJOB=job)
    env.Clean(archive, env.File(str(key_file(job))))  # there if `mlfbuild build` was used, too
    return env.MlfUnpack(str(job.tree), archive, MLFJOB=job)
