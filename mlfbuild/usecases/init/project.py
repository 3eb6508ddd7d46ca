"""From a request to a project in a folder."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.build import committed, load, target_jobs
from mlfbuild.core import UnsupportedModelError, UsageError, write_atomic
from mlfbuild.targets import board_called
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.init.network import EXAMPLE, read_network
from mlfbuild.usecases.init.repo import Repo
from mlfbuild.usecases.init.sample import sample_of, why_no_verify
from mlfbuild.usecases.init.staging import staged
from mlfbuild.usecases.init.templates import TREE, template_called


@dataclass(frozen=True)
class InitRequest:
    """What a project is to be; the model and the archive exclude each other, without both it is an example."""

    folder: Path
    template: str
    board: str
    model: Path | None = None
    """A model file, or an archive."""
    archive: Path | None = None
    vectors: Path | None = None


@dataclass(frozen=True)
class InitReport:
    """What was written."""

    written: tuple[Path, ...]
    """All files, the user's own first."""
    generated: int
    """How many of them, at the end, are the model as C."""
    commands: dict[str, str]
    """What to do in the folder next: perhaps ``lock``, ``build``, ``run`` and, where there are vectors, ``verify``."""
    notes: tuple[str, ...]
    """What the user should know."""


def init_project(request: InitRequest) -> InitReport:
    """Write the project that ``request`` describes: all of its files, or none.

    Raises ``UsageError`` for an unknown template or board, ``InputFileError`` and ``UnsupportedModelError`` for what
    cannot become firmware by itself, ``ConflictError`` where a file would be overwritten, and ``StorageError``.
    """
    template, board = template_called(request.template), board_called(request.board)
    if request.model and request.archive:
        raise UsageError("--model and --archive: a project starts with one of them; add the other to its mlfbuild.yml")
    if request.vectors and not (request.model or request.archive):
        raise UsageError(f"--vectors {request.vectors}: of which network? name it with --model or --archive")
    network = read_network(request.archive or request.model or EXAMPLE, board, archive=request.archive is not None)
    if template.commits_tree and network.dependencies:
        raise UnsupportedModelError(
            f"{network.path}: needs {network.dependencies[0].partition(':')[0]}, which is not here, and the template "
            f"{request.template} commits all that is compiled; choose --template scons or cmake"
        )
    sample = sample_of(network, request.vectors, board)
    repo = Repo(_title(request.folder), template, network, sample, board)
    files = repo.files()
    in_place = {path for path in (network.file, repo.vectors) if _is_own(request, request.folder / path)}
    with staged(request.folder) as stage:
        for path, data in files.items():
            write_atomic(stage / path, data)
        tree = _write_tree(stage, repo.target) if template.commits_tree else []
        for path in in_place:
            (stage / path).unlink()
    return InitReport(
        written=tuple(request.folder / path for path in (*files, *tree) if path not in in_place),
        generated=len(tree),
        commands=repo.commands,
        notes=(*network.notes, *_about_vectors(repo)),
    )


def _is_own(request: InitRequest, path: Path) -> bool:
    """Whether ``path`` is what the user named, where the project wants it already."""
    named = (request.model, request.archive, request.vectors)
    return path.is_file() and any(own is not None and own.samefile(path) for own in named)


def _write_tree(folder: Path, target: str) -> list[str]:
    """Compile and unpack the project's models into its committed tree; returns the paths of its files."""
    project = load(folder / "mlfbuild.yml")
    with tempfile.TemporaryDirectory(prefix="mlfbuild-init-") as scratch:
        jobs = target_jobs(project, [target], build=Path(scratch))
        build_project([committed(project, jobs, folder / TREE)])
    return sorted(path.relative_to(folder).as_posix() for path in (folder / TREE).rglob("*") if path.is_file())


def _about_vectors(repo: Repo) -> list[str]:
    unverified = why_no_verify(repo.network, repo.board)
    if unverified:
        return [unverified]
    if repo.sample is None:
        return [f"no numbers are checked: that needs vectors of {repo.network.name} (--vectors); README.md tells how"]
    if repo.sample.computed:
        return ["the expected outputs are mlfbuild's own; put those of your training framework in their place"]
    return []


def _title(folder: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", folder.resolve().name).strip("_-")
    return name if re.match("[A-Za-z]", name) else f"firmware_{name}".rstrip("_")
