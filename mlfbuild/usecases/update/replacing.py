"""Replace the file of a model by a newer one, if firmware that uses the model stays right."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.archive import open_archive
from mlfbuild.core import UsageError, quoted, read_bytes, write_atomic, write_if_changed
from mlfbuild.jobs import CompileJob, Progress, Silent, TargetJob, target_jobs
from mlfbuild.native import SourceFiles, read_network
from mlfbuild.project import ModelSpec, Project, source_suffix
from mlfbuild.requirements import lock_path
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.lock import lock_project
from mlfbuild.usecases.update.comparison import Side, compared
from mlfbuild.usecases.update.model_update import ModelUpdate
from mlfbuild.usecases.vectors import renewed_vectors


def update_model(
    project: Project,
    name: str,
    new: Path,
    targets: Sequence[str] = (),
    *,
    vectors: Path | None = None,
    check: bool = False,
    accept: bool = False,
    offline: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> ModelUpdate:
    """Compare the model ``name`` with the file ``new`` on ``targets``; replace its file, and write the lock.

    ``vectors`` are those of the new version and replace the model's; without them, those that mlfbuild computed are
    computed again, and others stay, which a note says. Nothing is written with ``check``, or if the
    interface differs, which ``problem`` of the result reports, unless it is to be accepted. If ``new`` is the model's
    own file, it is compared with the archive of the last build.

    Raises ``UsageError`` for an unknown model or a file of another format, ``CheckFailedError`` if the new version does
    not have the outputs of ``vectors``, ``OverBudgetError`` for its instructions, and as ``build_project`` and
    ``lock_project``.
    """
    chosen = [target for target in target_jobs(project, targets, [name]) if target.models]
    spec = project.models[name]
    _check_file(project, spec, new, vectors)
    content = read_bytes(new, "model")
    in_place = new.exists() and spec.source.exists() and new.samefile(spec.source)
    _check_content(chosen[0].models[0], new)
    if in_place:
        _check_built(chosen, new)
    else:
        build_project(chosen, lenders=target_jobs(project), jobs=jobs, progress=progress)
    with tempfile.TemporaryDirectory(prefix="mlfbuild-update-") as folder:
        staged = Path(folder, spec.source.name)  # the name is in the generated code
        write_atomic(staged, content)
        _copy_weights(new, staged.parent)
        models = {**project.models, name: replace(spec, source=staged, vectors=_vectors(spec, vectors))}
        other = replace(project, models=models)
        build = Path(folder, "build")
        built = [target for target in target_jobs(other, targets, [name], build) if target.models]
        build_project(built, jobs=jobs, progress=progress)
        sides = Side(project, chosen), Side(other, built, build)
        expected, given = other.models[name].vectors, vectors is not None
        found = compared(name, *sides, expected, progress or Silent(), given=given, in_place=in_place)
    if check or (found.problem is not None and not accept):
        return found
    written = [] if in_place else [spec.source]
    if not in_place:
        write_atomic(spec.source, content)
        written += _copy_weights(new, spec.source.parent)
    if vectors is not None and write_if_changed(spec.vectors[""], read_bytes(vectors, "vectors file")):
        written.append(spec.vectors[""])
    notes = found.notes
    if vectors is None:
        renewed = renewed_vectors(project, name)
        if isinstance(renewed, str):
            notes += (renewed,) if renewed else ()
        else:
            written += renewed.written
            notes += renewed.notes
    only = [name] if lock_path(project.path).is_file() else []
    locked = lock_project(project, models=only, offline=offline, jobs=jobs, progress=progress)
    return replace(found, written=tuple(written), notes=notes, locked=locked)


def _check_file(project: Project, spec: ModelSpec, new: Path, vectors: Path | None) -> None:
    wanted = source_suffix(spec.source.name)
    if source_suffix(new.name) != wanted:
        raise UsageError(
            "update-of-another-format",
            place=new,
            reason=f"model {spec.name} is a {wanted or quoted(spec.source.name)} file",
            hint=f"name a {wanted} file, or change `source` in {project.path.name}" if wanted else "",
        )
    if vectors is not None and list(spec.vectors) != [""]:
        raise UsageError(
            "update-without-vectors",
            place=f"--vectors {vectors}",
            reason=f"model {spec.name} has {'vectors for each module' if spec.vectors else 'no vectors to replace'}",
            hint="replace them by hand" if spec.vectors else f"add `vectors` to the model in {project.path.name}",
        )


def _copy_weights(model: Path, folder: Path) -> list[Path]:
    """Copy the files with weights of ``model`` to the same places in ``folder``; return the copies."""
    copies = []
    for name, path in SourceFiles(model).weights.items():
        copies.append(folder / name)
        copies[-1].parent.mkdir(parents=True, exist_ok=True)
        write_atomic(copies[-1], read_bytes(path, "weights"))
    return copies


def _check_content(job: CompileJob, new: Path) -> None:
    """Read the new file under its own name, so that an error does not name its copy."""
    if job.compiler == "native":
        read_network(replace(job.request, source=new))
    elif job.compiler == "archive":
        open_archive(new)


def _check_built(targets: Iterable[TargetJob], new: Path) -> None:
    for job in (job for target in targets for job in target.models):
        if not job.archive.is_file():
            raise UsageError(
                "update-without-old-version",
                place=new,
                reason=f"this is the model's own file, and {job.title} was not built before it changed",
                hint="restore the old file, and name the new one",
            )


def _vectors(spec: ModelSpec, given: Path | None) -> Mapping[str, Path]:
    return spec.vectors if given is None else {"": given}
