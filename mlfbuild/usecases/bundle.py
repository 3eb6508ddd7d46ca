"""Bundle what verifying models on another machine takes besides the image, and flash and verify an image there."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild import executor, verify
from mlfbuild.archive import open_archive_with_id
from mlfbuild.compilers import exported_cpu
from mlfbuild.core import (
    CheckFailedError,
    Diagnostic,
    ProjectFileError,
    Signer,
    Trust,
    UsageError,
    listed,
    quoted,
    read_bytes,
    sha256,
    write_atomic,
)
from mlfbuild.jobs import Progress, TargetJob, Task, check_output, target_jobs, watched
from mlfbuild.library import Library
from mlfbuild.project import Project, RunnerKeys, load_project
from mlfbuild.targets import MCUS, DeviceMemoryKeys, Mcu, board_called, cpu_called, mcu_called, part_called
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.provenance import bundled_provenance, with_provenance
from mlfbuild.usecases.verify import verify_jobs
from mlfbuild.verify import BundledModel, DeviceBundle

# The name of the target in bundles of archives, which no project file names, and of the subject that is verified: the
# board is known only on the other machine.
_DEVICE = "device"
_PROJECT = """\
mlfbuild: 1
models: {{model: {{source: model.tflite}}}}
targets:
  {name}:
    cpu: {cpu}
    runner:
{keys}"""
"""A project file with a runner, the one place in which its keys are declared and checked."""
_FILES = ("setup", "uart")
"""Keys of runners for test firmware, which bundles do not have."""


@dataclass(frozen=True)
class WrittenBundle:
    """A bundle that was written."""

    path: Path
    sha256: str
    bundle: DeviceBundle


def bundle_archives(
    archives: Sequence[Path],
    vectors: Sequence[str],
    output: Path,
    *,
    cpu: str | None = None,
    board: str | None = None,
    mcu: str | None = None,
    image: Path | None = None,
    provenance: Path | None = None,
) -> WrittenBundle:
    """Write the bundle of all modules of ``archives``, for a device with ``cpu``, by default that of the archives.

    ``vectors`` are files, as ``MODULE=FILE`` if there are several modules. ``image`` is the only image that the bundle
    is for; ``provenance`` is a statement about it, which the bundle gets with the signature beside it. Raises
    ``UsageError`` if the target or a module is unknown, a module or its vectors are named twice, or
    there is no module, and ``UnsupportedModelError`` if a module cannot be called in an image.
    """
    check_output(output, *archives, what="bundle")
    modules = _modules(archives)
    files = _vectors(vectors, list(modules))
    models = tuple(
        _model(path, library, identity, name, files.get(name)) for name, (path, library, identity) in modules.items()
    )
    core = cpu or next((found for _, library, _ in modules.values() if (found := exported_cpu(library))), None)
    if core is None:
        raise UsageError(
            "cpu-not-chosen", place=archives[0], reason="the archive does not record its CPU", hint="add --cpu"
        )
    return _written(
        DeviceBundle(
            _DEVICE,
            cpu_called(core),
            board_called(board) if board else None,
            mcu_called(mcu) if mcu else None,
            models,
        ),
        image,
        output,
        provenance,
    )


def _modules(archives: Sequence[Path]) -> dict[str, tuple[Path, Library, str]]:
    """Return the archive of each module that can be called, its library and its SHA-256, by the module's name.

    Raises ``UsageError`` if there is no module, or two have the same name.
    """
    opened = [(path, *open_archive_with_id(path)) for path in archives]
    named = [(name, where) for where in opened for name in _callable(where[1])]
    modules = dict(named)
    if not modules:
        raise UsageError(
            "bundle-without-modules",
            place=listed([str(path) for path in archives]),
            reason="no function of the archive can be called",
            hint="name an archive with a network",
        )
    # Vectors, results and symbols in the image are found by the module's name, so that two modules of one name could
    # not be distinguished.
    if len(modules) < len(named):
        raise UsageError(
            "module-twice",
            place=listed([str(path) for path in archives]),
            reason="two archives have a module with the same name",
            hint="rename one with mlfbuild convert --module-name",
        )
    return modules


def bundle_project(
    project: Project,
    targets: Sequence[str],
    models: Sequence[str],
    output: Path,
    *,
    image: Path | None = None,
    provenance: Path | None = None,
    jobs: int = 1,
    frozen: bool = False,
    progress: Progress | None = None,
) -> WrittenBundle:
    """Write the bundle of the models of a target that have vectors; as ``bundle_archives``, and as ``build_project``.

    Raises ``UsageError`` if several targets are chosen.
    """
    check_output(output, what="bundle")
    chosen = target_jobs(project, targets, models)
    if len(chosen) != 1:
        names = listed([target.name for target in chosen])
        raise UsageError(
            "target-not-chosen", place=project.path, reason=f"it has several targets: {names}", hint="add --target"
        )
    (target,) = chosen
    verified = verify_jobs(project, chosen, project.root)
    build_project(
        chosen, lenders=target_jobs(project), jobs=jobs, progress=progress, locked=project if frozen else None
    )
    found = []
    for job in verified:
        library, identity = open_archive_with_id(job.model.archive)
        name = executor.chosen_module(library, job.module or None, str(job.model.archive)).name
        found.append(_model(job.model.archive, library, identity, name, job.vectors))
    # Another machine has the table of microcontrollers, but not what the project says about its own.
    mcu = target.mcu if target.mcu and target.mcu.name in MCUS else None
    memory = (target.runner.memory if target.runner else None) or _part_memory(target, mcu)
    bundle = DeviceBundle(target.name, target.cpu, target.board, mcu, tuple(found), memory)
    return _written(bundle, image, output, provenance)


def _part_memory(target: TargetJob, mcu: Mcu | None) -> DeviceMemoryKeys | None:
    """Return the memories of the microcontroller of ``target`` unless ``mcu``, a row of the table, has them."""
    if mcu is not None or target.board is not None:
        return None
    if target.mcu is not None and target.mcu.memory is not None:
        return DeviceMemoryKeys(target.mcu.memory.ram, target.mcu.memory.flash)
    part = part_called(target.part) if target.part else None
    return part.memory if part else None


def _callable(library: Library) -> list[str]:
    return [called.name for module in library.modules for called in executor.callable_modules(module)]


def _vectors(words: Sequence[str], modules: Sequence[str]) -> Mapping[str, Path]:
    files: dict[str, Path] = {}
    for word in words:
        (name, _, file), place = word.rpartition("="), f"--vectors {word}"
        if not name and len(modules) > 1:
            reason = f"there are several modules ({listed(modules)})"
            hint = f"name the module of the vectors: --vectors MODULE={word}"
            raise UsageError("module-not-chosen", place=place, reason=reason, hint=hint)
        name = name or modules[0]
        if name not in modules:
            reason, hint = f"there is no module {quoted(name)}", f"choose one of {listed(modules)}"
            raise UsageError("unknown-module", place=place, reason=reason, hint=hint)
        if name in files:
            reason = f"the module {quoted(name)} already has {files[name]}"
            raise UsageError("vectors-twice", place=place, reason=reason, hint="omit one of them")
        files[name] = Path(file)
    return files


def _model(path: Path, library: Library, identity: str, name: str, vectors: Path | None) -> BundledModel:
    module = executor.chosen_module(library, name, str(path))
    subject = verify.shipped_subject(module, _DEVICE)
    content = None if vectors is None else read_bytes(vectors, "vectors file")
    if vectors is not None:
        # Only to refuse vectors that do not fit: here the user can correct them, on the other machine nothing but the
        # bundle is there. The bundle contains the bytes of the file as they are.
        verify.load_vectors(vectors, subject)
    return BundledModel(subject, path.name, identity, module.model_id, content)


def _written(bundle: DeviceBundle, image: Path | None, output: Path, provenance: Path | None) -> WrittenBundle:
    # The hash in the bundle makes the other machine refuse any other image, even one with the same models.
    if image is not None:
        bundle = replace(bundle, image_sha256=verify.bundled_image(bundle, image))
    if provenance is not None:
        bundle = with_provenance(bundle, provenance)
    # Faults and the start of an image are known for M-profile cores only.
    if not bundle.cpu.core.startswith("cortex-m"):
        raise UsageError(
            "bundle-core-unsupported",
            place=output,
            reason=f"devices are verified if they have a Cortex-M, but the cpu is {bundle.cpu.name}",
            hint="bundle archives for a Cortex-M",
        )
    if bundle.board is not None and not bundle.board.takes(bundle.cpu):
        raise UsageError(
            "bundle-board-mismatch",
            place=output,
            reason=f"the board {bundle.board.name} does not have the core {bundle.cpu.name}",
            hint="correct --board or --cpu",
        )
    data = verify.pack_bundle(bundle)
    write_atomic(output, data)
    return WrittenBundle(output, sha256(data), bundle)


# On the machine with the device --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReceivedImage:
    """An image that a bundle is for, and the device that it runs on."""

    elf: Path
    sha256: str
    target: TargetJob
    bundle: DeviceBundle
    bundle_sha256: str
    builder: str = ""
    """The builder of the image in the bundle's statement; empty without one."""
    signer: Signer | None = None
    """The signer of the statement; ``None`` if no signers were given."""


def received_image(
    path: Path, elf: Path, *, board: str | None = None, runner: Sequence[str] = (), trust: Trust | None = None
) -> ReceivedImage:
    """Return the image ``elf`` after it was compared with the bundle ``path``.

    A statement of provenance in the bundle must be about the image. With ``trust``, there must be one, which it has
    signed: raises ``CheckFailedError`` without, and as ``check_signature``.

    The device is ``board`` in QEMU, the one of ``runner`` (``KEY=VALUE`` as in a project file), or the bundle's board.
    Raises ``UsageError`` if there is none, and as ``read_bundle`` and ``bundled_image``.
    """
    bundle = verify.read_bundle(path)
    found = verify.bundled_image(bundle, elf)
    builder, signer = bundled_provenance(bundle, path, found, trust)
    emulated = board_called(board) if board else bundle.board
    if runner:
        keys = _runner_keys(bundle, runner)
        keys = replace(keys, memory=keys.memory or bundle.memory)
    elif emulated is not None:
        keys = RunnerKeys(qemu=emulated.name)
    else:
        raise UsageError(
            "runner-missing",
            place=path,
            reason="the bundle names no emulated board, and bundles do not record how to reach a device",
            hint="add --runner, such as --runner gdb=localhost:3333",
        )
    target = TargetJob(bundle.target, bundle.cpu, emulated, None, Path(), (), mcu=bundle.mcu, runner=keys)
    return ReceivedImage(elf, found, target, bundle, sha256(read_bytes(path, "bundle")), builder, signer)


def _runner_keys(bundle: DeviceBundle, words: Sequence[str]) -> RunnerKeys:
    pairs = [word.partition("=") for word in words]
    for (key, equals, value), word in zip(pairs, words, strict=True):
        if not equals or not key.isidentifier() or not value or not word.isprintable() or key in _FILES:
            raise UsageError(
                "runner-key-invalid",
                place=f"--runner {quoted(word)}",
                reason="is only for test firmware" if key in _FILES else "is not KEY=VALUE",
                hint="name a key of runner in docs/reference/project-file.md, such as gdb=localhost:3333",
            )
    # The keys are read as a project file rather than by a second parser, so that the same values are accepted and
    # refused for the same reasons. The characters were checked above: a line break would add other keys.
    text = "".join(f"      {key}: {value}\n" for key, _, value in pairs)
    with tempfile.TemporaryDirectory(prefix="mlfbuild-runner-") as folder:
        file = Path(folder) / "mlfbuild.yml"
        file.write_text(_PROJECT.format(name=_DEVICE, cpu=bundle.cpu.name, keys=text), "utf-8")
        try:
            keys = load_project(file).targets[_DEVICE].runner
        except ProjectFileError as error:
            raise UsageError(
                "runner-key-invalid",
                place=f"--runner {' --runner '.join(words)}",
                reason="; ".join(_of_runner(problem) for problem in error.problems),
                hint="correct the key, as in docs/reference/project-file.md",
            ) from None
    assert keys is not None
    return keys


def _of_runner(problem: Diagnostic | str) -> str:
    """Return a mistake in the keys of a runner without its place in the file that was made of them."""
    if isinstance(problem, str):
        return problem
    return f"{problem.place.rpartition('.runner')[2].lstrip('.')} {problem.reason}".strip()


def verify_received(
    image: ReceivedImage, *, flash: bool = True, timeout: float | None = None, progress: Progress | None = None
) -> list[verify.VerifyReport]:
    """Verify the models of ``image`` that have vectors on the device, which is loaded first if ``flash`` is set.

    Raises ``CheckFailedError`` if the bundle has no vectors, and as ``verify.verify_shipped``.
    """
    watch = progress or Progress()
    models = [(model, model.vectors) for model in image.bundle.models if model.vectors is not None]
    if not models:
        raise CheckFailedError(
            "nothing-to-verify",
            place=image.elf,
            reason="the bundle has no vectors",
            hint="make the bundle with --vectors",
        )
    watch.expect(len(models))
    device = verify.device_of(image.target, "--runner")
    reports = []
    with tempfile.TemporaryDirectory(prefix="mlfbuild-bundle-") as folder, verify.connected(device) as connection:
        for number, (model, vectors) in enumerate(models):
            file = Path(folder) / f"{model.subject.name}.npz"
            file.write_bytes(bytes(vectors))
            task = Task("verify", model.subject.name, image.target.name, model=model.subject.name)
            with watched(watch, task):
                report = verify.verify_shipped(
                    connection,
                    image.elf,
                    replace(model.subject, board=connection.device.name),
                    file,
                    # All models are in one image.
                    flash=flash and number == 0,
                    timeout=timeout,
                    on_progress=functools.partial(watch.step, task),
                )
            watch.finish(task, "passed") if report.passed else watch.fail(task, "FAILED")
            reports.append(report)
    return reports
