"""Nodes of models' archives and unpacked trees, made once however often they are requested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from SCons.Script import GetOption

from mlfbuild.core import UsageError
from mlfbuild.jobs import CompileJob, Outline, TargetJob, key_file, tree_outline
from mlfbuild.scons.archives import job_archive, job_copy, job_tree


@dataclass(frozen=True)
class TreeNodes:
    """The unpacked tree of one model for one target."""

    job: CompileJob
    outline: Outline
    folder: Any
    nodes: list[Any]
    """Nodes that others may depend on; the first is RECORD.json."""


_trees: dict[str, TreeNodes] = {}
"""Trees by their folders."""
_archives: dict[tuple[str, str], Any] = {}
"""The archive that is compiled, by the key that jobs with equal archives share: that of the job requested first.

SConscripts are read one after the other, so that the job with the least RAM (``jobs.compile_once``) is not known then.
A copy that does not fit its board is refused when it is unpacked.
"""
_targets: dict[str, tuple[str, Any]] = {}
"""Settings and node of each target's fragment, by its path."""


def model_tree(env: Any, job: CompileJob) -> TreeNodes:
    """Return the nodes that make the archive and the tree of ``job``.

    A second call for the same tree returns the same nodes, also from another SConscript. Raises as ``tree_outline``.
    """
    folder = env.Dir(str(job.tree))
    # By its path, which is the same from every SConscript.
    key = folder.get_abspath()
    if key not in _trees:
        outline = tree_outline(job)
        archive = _archive(env, job)
        if GetOption("clean"):
            env.Clean(archive, env.File(str(key_file(job))))  # there if `mlfbuild build` was also used
        _trees[key] = TreeNodes(job, outline, folder, job_tree(env, job, outline, archive))
    return _trees[key]


def _archive(env: Any, job: CompileJob) -> Any:
    made = _archives.get(job.sharing_key())
    if made is None:
        made = _archives[job.sharing_key()] = job_archive(env, job)
        return made
    # Targets with the same CPU share an archive: it is compiled once and copied.
    return job_copy(env, job, made)


def known_fragment(job: TargetJob, settings: str) -> Any:
    """Return the node of the target's fragment, if there is one; raise ``UsageError`` if it has other models."""
    known = _targets.get(str(job.tree))
    # Two calls would write the same fragment with different content, and SCons would report only the file.
    if known is not None and known[0] != settings:
        raise UsageError(
            "models-called-twice",
            place=f"target {job.name!r}",
            reason=f"MlfModels was called for {job.tree} before, with other models",
            hint="call it once and select models with models.apply(env, ...), or use another MLFBUILDDIR",
        )
    return known[1] if known else None


def remember_fragment(job: TargetJob, settings: str, node: Any) -> None:
    """Keep ``node`` for ``known_fragment``."""
    _targets[str(job.tree)] = (settings, node)
