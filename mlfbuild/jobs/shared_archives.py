"""Group jobs whose archives are equal, such as those of targets with the same CPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlfbuild.jobs.model_job import CompileJob, TargetJob


@dataclass(frozen=True)
class Twins:
    """Jobs whose archives are equal."""

    jobs: list[CompileJob]
    lenders: list[CompileJob]
    """Jobs with the same archive that are not built, but whose archive can be copied."""


def twins(jobs: Iterable[CompileJob], lenders: Iterable[TargetJob]) -> list[Twins]:
    """Return ``jobs`` in groups with equal archives, each with the jobs of ``lenders`` that have the same archive."""
    groups: dict[tuple[str, str], Twins] = {}
    for job in jobs:
        groups.setdefault(job.sharing_key(), Twins([], [])).jobs.append(job)
    for job in (job for target in lenders for job in (*target.models, *target.others)):
        if job.sharing_key() in groups:
            groups[job.sharing_key()].lenders.append(job)
    return list(groups.values())
