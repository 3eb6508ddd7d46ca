"""Link the images of a build on a farm, and keep those whose inputs are the ones of this machine.

A link that may not travel (``link_travel``), that a worker refuses, that fails there or that read other files than
there are here is left to this machine, with a note that says why: what is wrong with the firmware itself shows here.

Beside the image stands the record of a link made here (``links``), and what CMake read: without an edit of either, of
the image or of its settings, nothing is sent again.
"""

from __future__ import annotations

import functools
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlfbuild.cache import ResultCache, shared_cache
from mlfbuild.core import (
    InputFileError,
    MlfError,
    holds,
    make_folder,
    read_bytes,
    sha256,
    write_atomic,
)
from mlfbuild.farm import FarmResult, FarmSettings, FarmTask, program_versions
from mlfbuild.jobs.actions import Action, hash_of
from mlfbuild.jobs.farm_work import FarmWork, run_on_farm
from mlfbuild.jobs.link_travel import (
    FACTS,
    IMAGE,
    MAP,
    PRINTED,
    ROOT,
    TravellingLink,
    build_variables,
    bundle,
    link_here,
    project_files,
    staying,
    tree_files_of,
)
from mlfbuild.jobs.links import COMMANDS, inputs_now, link_record, record_farm_link
from mlfbuild.jobs.model_job import FirmwareJob
from mlfbuild.jobs.on_farm import programs_of
from mlfbuild.jobs.placement import write_params_binary
from mlfbuild.jobs.progress import UP_TO_DATE, Progress, Task, raise_first
from mlfbuild.jobs.travel import REASON

_STATE = ".mlfbuild-farm.json"
"""The file in a build folder with the names of the files that CMake read, and a digest of all that configured it."""


def link_on_farm(
    settings: FarmSettings,
    images: Sequence[FirmwareJob],
    watch: Progress,
    check: Callable[[FirmwareJob, Task, bool], None],
    recheck: int = 0,
) -> set[Path]:
    """Link those of ``images`` that can travel on a farm; return the images that are up to date then.

    The trees of their models must be finished. ``check`` is called with each of these images, its task and whether it
    was linked now, and raises what is wrong with it. ``recheck`` is that of ``run_on_farm``. Raises the first error in
    the order of the images, after all tasks have ended; images that were made stay.
    """
    with tempfile.TemporaryDirectory(prefix="mlfbuild-links-") as folder:
        links = _Links(images, Path(folder), watch, check)
        raise_first(run_on_farm(settings, links.works(), watch, recheck=recheck), watch)
    raise_first(links.errors, watch)
    return links.done


class _Links:
    """The results of ``images``; bundles are written to ``folder`` once each."""

    def __init__(
        self,
        images: Sequence[FirmwareJob],
        folder: Path,
        watch: Progress,
        check: Callable[[FirmwareJob, Task, bool], None],
    ) -> None:
        self.done: set[Path] = set()
        self.errors: dict[int, MlfError] = {}
        self._images, self._folder, self._watch, self._check = images, folder, watch, check
        models = (model for job in images for model in (*job.target.models, *job.target.others))
        self._models = frozenset(model.request.source.absolute() for model in models)
        self._bundles: dict[Path, Path | None] = {}

    def works(self) -> Iterator[FarmWork]:
        """Yield the links that are neither up to date nor in the cache, and that may travel."""
        for job in self._images:
            task = self._task(job)
            if task is not None:
                yield FarmWork(task, _shown(job), functools.partial(self._end, job, task.key))

    def _task(self, job: FirmwareJob) -> FarmTask | None:
        """Return the task of the job's link; ``None`` if it has ended, or is left to this machine."""
        record = link_record(job)
        if record is not None and hash_of(job.elf) == record.sha256 and inputs_now(job, record) == dict(record.inputs):
            if not record.worker:
                return None  # Ninja knows here whether something is left to do
            if _is_configured(job):
                self._watch.start(_shown(job))
                self._passed(job, UP_TO_DATE)
                return None
        try:
            reason = staying(job)
            paths = () if reason else self._bundled(job)
        except MlfError as error:  # building the image here reports it
            reason, paths = str(error), ()
        if reason or not paths:
            self._watch.start(_shown(job))
            self._leave(job, reason or "the files of the project are too large to send")
            return None
        link = TravellingLink(replace(job, runs=()), paths, build_variables(), _versions(job))
        # Bundles are named by their digests, so that a name stands for the content.
        key = Action("link", {"settings": _settings(job), **{path.name: "" for path in paths}, **link.versions}).key
        cache = _cache_of(job)
        found = cache.fetch(key) if cache else None
        if found is not None and _is_of(job, found.outputs):
            self._watch.start(_shown(job))
            how = "from the cache" if found.where == "local" else "from the shared cache"
            self._keep(job, FarmResult(found.outputs, found.worker, found.seconds), how)
            return None
        return FarmTask(key, f"link {job.title}", f"{link_here.__module__}:link_here", link, job.root, paths)

    def _bundled(self, job: FirmwareJob) -> tuple[Path, ...]:
        """Return the bundles of the job's target and project, each named by its digest; none if one is too large."""
        files: dict[Path, Callable[[FirmwareJob], list[Path]]] = {
            job.target.tree: tree_files_of,
            job.root: functools.partial(project_files, without=self._models),
        }
        for place, of in files.items():
            if place not in self._bundles:
                content = bundle(of(job), job.root)
                path = None if content is None else self._folder / sha256(content)
                if path is not None and content is not None:
                    path.write_bytes(content)
                self._bundles[place] = path
        paths = [self._bundles[place] for place in files]
        return () if None in paths else tuple(path for path in paths if path is not None)

    def _end(self, job: FirmwareJob, key: str, result: FarmResult) -> None:
        if REASON in result.outputs:
            self._leave(job, result.outputs[REASON].decode(errors="replace"))
            return
        differing = _differing(job, result.outputs)
        if differing:
            self._leave(job, f"{differing} is another file on {result.worker}")
            return
        cache = _cache_of(job)
        if cache is not None:
            cache.store(key, result.outputs, worker=result.worker, seconds=result.seconds)
        self._keep(job, result, f"linked on {result.worker}")

    def _leave(self, job: FirmwareJob, reason: str) -> None:
        self._watch.expect(1)  # it is built again
        self._watch.finish(_shown(job), f"left to this machine: {reason}")

    def _keep(self, job: FirmwareJob, result: FarmResult, how: str) -> None:
        outputs, root = result.outputs, os.fsencode(job.root.resolve())
        facts = json.loads(outputs[FACTS])
        make_folder(job.build)
        # Reports look for the files in the map here, not in the folder of the worker.
        write_atomic(job.linker_map, outputs[MAP].replace(ROOT, root))
        write_atomic(job.elf, outputs[IMAGE])
        # As a linker makes it, so that tools which ask for an executable accept it.
        job.elf.chmod(0o755)
        if job.params_section is not None:
            write_params_binary(job.elf, job.params_section, job.params_binary)
        record_farm_link(job, facts["inputs"], result.seconds, result.worker)
        write_atomic(job.build / _STATE, _state(job, facts["cmake"]))
        printed = outputs[PRINTED].replace(ROOT, root).decode(errors="replace")
        if "warning:" in printed:
            self._watch.output(_shown(job), printed)
        self._passed(job, how)

    def _passed(self, job: FirmwareJob, how: str) -> None:
        self.done.add(job.elf)
        try:
            self._check(job, _shown(job), how != UP_TO_DATE)
        except MlfError as error:
            self.errors[self._images.index(job)] = error
            self._watch.fail(_shown(job))
        else:
            self._watch.finish(_shown(job), how)


def _shown(job: FirmwareJob) -> Task:
    return Task("link", job.title, job.target.name, firmware=job.name)


def _versions(job: FirmwareJob) -> dict[str, str]:
    compilers = programs_of(replace(job.target, board=None, mcu=None, part=None, runner=None))  # and no emulator
    return program_versions(["cmake", *sorted({*compilers})])


def _is_of(job: FirmwareJob, outputs: Mapping[str, bytes]) -> bool:
    """Return whether ``outputs`` of the cache, in which anything may be, are an image of the files that are here."""
    try:
        return {*outputs} == {IMAGE, MAP, PRINTED, FACTS} and not _differing(job, outputs)
    # A shared cache is not trusted: facts that cannot be read are as good as no entry.
    except (ValueError, LookupError, TypeError, AttributeError):
        return False


def _differing(job: FirmwareJob, outputs: Mapping[str, bytes]) -> str:
    """Return a file that the link read and that is another one here; empty if all are the same."""
    facts = json.loads(outputs[FACTS])
    read = {**facts["inputs"], **facts["outside"]}
    names = (name for name, digest in read.items() if name != COMMANDS and hash_of(job.root / name) != digest)
    return next(names, "")


def _settings(job: FirmwareJob) -> str:
    """Return what the job says about its build besides the files that travel, as canonical JSON."""
    root = job.root.absolute()

    def places(paths: Sequence[Path]) -> list[str]:
        return [os.path.relpath(path.absolute(), root) for path in paths]

    target = job.target
    own: dict[str, Any] = {
        "firmware": [job.name, job.models, job.params_section],
        "paths": places([job.build, target.tree, *job.sources, *job.include_dirs, *([job.cmake] if job.cmake else [])]),
        "target": [target.cpu.name, bool(target.budgets), target.settings()],
        "toolchain": {path.name: hash_of(path) for path in target.toolchain_files},
        "environment": build_variables(),
    }
    return json.dumps(own, sort_keys=True)


def _state(job: FirmwareJob, cmake: Sequence[str]) -> bytes:
    """Return the content of ``_STATE``; if CMake code has patterns, a new file may match one."""
    files = {name: hash_of(job.root / name) for name in cmake}
    texts = (read_bytes(job.root / name, "CMake file") for name, digest in files.items() if digest)
    patterns = any(re.search(rb"\bGLOB(_RECURSE)?\b", text) for text in texts)
    known = [os.path.relpath(path, job.root) for path in project_files(job, frozenset())] if patterns else []
    digest = sha256(json.dumps([_settings(job), _versions(job), files, known], sort_keys=True).encode())
    return json.dumps({"cmake": list(cmake), "sha256": digest}).encode()


def _is_configured(job: FirmwareJob) -> bool:
    """Return whether the job's image, which is from a worker, would be configured in the same way."""
    try:
        cmake = [str(name) for name in json.loads(read_bytes(job.build / _STATE, "state"))["cmake"]]
    except (InputFileError, ValueError, LookupError, TypeError):
        return False
    return holds(job.build / _STATE, _state(job, cmake)) and job.linker_map.is_file()


def _cache_of(job: FirmwareJob) -> ResultCache | None:
    keys = next((model.cache for model in job.target.models), None)
    return None if keys is None else shared_cache(keys, lambda _: None)
