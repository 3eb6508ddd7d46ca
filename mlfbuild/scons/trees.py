"""Nodes of a model's archive and of its unpacked tree, one of each however often they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlfbuild.errors import UsageError
from mlfbuild.steps.jobs import CompileJob, TargetJob
from mlfbuild.steps.models import key_file
from mlfbuild.steps.outline import Outline, tree_outline


@dataclass(frozen=True)
class Tree:
    """The unpacked tree of one model for one target."""

    job: CompileJob
    outline: Outline
    folder: Any
    nodes: list[Any]
    """What other nodes may depend on; the first is RECORD.json."""


_trees: dict[str, Tree] = {}
"""By the folder."""
_archives: dict[tuple[str, str], Any] = {}
"""The archive that is compiled, by what jobs with equal archives share."""
_targets: dict[str, tuple[str, Any]] = {}
"""Settings and node of each target's fragment, by its path."""


def model_tree(env: Any, job: CompileJob) -> Tree:
    """Return the nodes that make the archive and the tree of ``job``."""
    folder = env.Dir(str(job.tree))
    key = folder.get_abspath()
    if key not in _trees:
        outline = tree_outline(job)
        archive = _archive(env, job)
        env.Clean(archive, env.File(str(key_file(job))))  # there if `mlfbuild build` was used, too
        nodes = env.MlfUnpack(str(job.tree), archive, MLFJOB=job, MLFOUTLINE=outline)
        _trees[key] = Tree(job, outline, folder, nodes)
    return _trees[key]


def _archive(env: Any, job: CompileJob) -> Any:
    made = _archives.get(job.sharing_key())
    if made is None:
        made = env.MlfArchive(str(job.archive), str(job.request.source), MLFJOB=job)
        _archives[job.sharing_key()] = made
        return made
    copy = env.MlfCopy(str(job.archive), made)
    env.NoCache(copy)
    return copy


def known_fragment(job: TargetJob, settings: str) -> Any:
    """Return the node of the target's fragment where there is one; raises ``UsageError`` if it is of other models."""
    known = _targets.get(str(job.tree))
    if known is not None and known[0] != settings:
        raise UsageError(
            f"target {job.name!r}: MlfModels was called for {job.tree} before, with other models; call it once "
            "and choose with models.apply(env, ...), or give the second an MLFBUILDDIR of its own"
        )
    return known[1] if known else None


def remember_fragment(job: TargetJob, settings: str, node: Any) -> None:
    """Keep ``node`` for ``known_fragment``."""
    _targets[str(job.tree)] = (settings, node)
