"""Make jobs of a project file for the selected targets and models, and jobs of a model without a project file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.archive.tar import looks_like_archive
from mlfbuild.compilers import EXTERNAL_COMPILERS, compiler_called
from mlfbuild.core import UsageError, listed, real_place, suggestion
from mlfbuild.jobs.budgets import budgets_of
from mlfbuild.jobs.devices import TargetDevices
from mlfbuild.jobs.inputs import check_inputs
from mlfbuild.jobs.model_job import CompileJob, FirmwareJob, ProfileJob, TargetJob
from mlfbuild.jobs.quantize_step import QUANTIZED_FOLDER, QuantizeStep
from mlfbuild.jobs.target_memories import named_memories, placed_sections, ram_limit
from mlfbuild.library import CompileRequest, CompilerProgram, OptionValue
from mlfbuild.library.keys import Npu, Placement
from mlfbuild.native import Choices
from mlfbuild.project import (
    SOURCES,
    Budget,
    FirmwareSpec,
    ModelSpec,
    Project,
    Provider,
    TargetSpec,
    arena_memories,
    fast_weights,
    mcu_of,
    model_name,
    only_memory,
    source_suffix,
)
from mlfbuild.targets import BOARDS, CPUS, cpu_called, toolchain_file

BUILD_FOLDER = "build"


def chosen_names(kind: str, wanted: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the names in ``known`` that are ``wanted``, or all; raises ``UsageError`` for an unknown name."""
    for name in wanted:
        if name not in known:
            near = suggestion(name, known) or f" (the project has {listed([*known]) or 'none'})"
            raise UsageError(f"unknown-{kind}", place=f"{kind} {name!r}", reason=f"not in the project file{near}")
    return [name for name in known if not wanted or name in wanted]


def target_jobs(
    project: Project, targets: Sequence[str] = (), models: Sequence[str] = (), build: Path | None = None
) -> list[TargetJob]:
    """Return the jobs of the selected targets and models (by default all), in the project file's order.

    ``build`` is the output folder, by default ``<project>/build``. Git repositories of external libraries are set to
    the commits in the lock file. Raises ``UsageError`` for a name that is not in the project file, or if an output
    would overwrite the source of a model, and as ``pinned``.
    """
    if any(each.kind == "git" for each in project.dependencies.values()):
        from mlfbuild.jobs.pins import pinned  # few projects have repositories

        project = pinned(project)
    wanted = chosen_names("model", models, project.models)
    folder = build or project.root / BUILD_FOLDER
    jobs = [
        _target_job(project, project.targets[name], wanted, folder)
        for name in chosen_names("target", targets, project.targets)
    ]
    for name in models:
        if not any(job.model == name for target in jobs for job in target.models):
            built = ", ".join(project.models[name].targets)
            raise UsageError(
                "model-not-built-for-target",
                place=f"model {name!r}",
                reason=f"not built for {', '.join(targets)}",
                hint=f"choose one of its targets ({built}), or add the target to the model",
            )
    for job in (job for target in jobs for job in target.models):
        check_inputs(job)
    # Before anything is written: a build could replace the only copy of the model with its archive.
    for source, reason in _misplaced(project, jobs):
        hint = "move the model file, or choose another build folder"
        raise UsageError("source-among-outputs", place=source, reason=reason, hint=hint)
    return jobs


def _misplaced(project: Project, targets: Sequence[TargetJob]) -> Iterator[tuple[Path, str]]:
    """Yield (source, reason) for every source that the archive or the tree of a model would overwrite."""
    made: dict[Path, str] = {}
    for job in (job for target in targets for job in (*target.models, *target.others)):
        made |= {real_place(job.tree): f"the tree of model {job.model!r}"}
        made |= {real_place(job.archive): f"the archive of model {job.model!r}"}
        made |= {real_place(job.quantize.made): f"the quantised model {job.model!r}"} if job.quantize else {}
    for name, model in project.models.items():
        source = real_place(model.source)
        for place in (source, *source.parents):
            if place in made:
                yield model.source, f"the source of model {name!r} is in the place of {made[place]}"


def toolchain_of(target: TargetSpec) -> Path | None:
    """Return the target's CMake toolchain file: its own, or mlfbuild's for its CPU; ``None`` for this machine."""
    return target.toolchain or toolchain_file(CPUS[target.cpu], target.c_compiler)


def _target_job(project: Project, target: TargetSpec, models: Sequence[str], build: Path) -> TargetJob:
    tree = build / "mlf" / target.name
    specs = [spec for spec in project.models.values() if target.name in spec.targets]
    devices = TargetDevices(target.name, CPUS[target.cpu], target.devices, project.root)
    shares = _shares(project, target, specs, tree, build)
    jobs = [
        replace(
            _compile_job(spec, target, tree, _quantize_step(project, spec, build), shares.get(spec.name, {})),
            bundles=tuple(_bundles(project, spec, target)),
            devices=devices,
            jobs=project.jobs,
            cache=project.cache.settings(),
        )
        for spec in specs
    ]
    toolchain, memories = toolchain_of(target), named_memories(project, target)
    return TargetJob(
        name=target.name,
        cpu=CPUS[target.cpu],
        board=BOARDS[target.board] if target.board else None,
        toolchain=toolchain,
        tree=tree,
        models=tuple(job for job in jobs if job.model in models),
        others=tuple(job for job in jobs if job.model not in models),
        placed=tuple(placed_sections(project, target)),
        providers=tuple(project.dependencies.values()),
        budgets=None if toolchain is None else budgets_of(project, target.name, memories),
        mcu=mcu_of(target),
        runner=target.runner,
        npu=target.npu,
        part=target.mcu,
        memories=memories,
        memory_script=target.memory_script.path if target.memory_script else None,
    )


def _shares(
    project: Project, target: TargetSpec, specs: Sequence[ModelSpec], tree: Path, build: Path
) -> Mapping[str, Mapping[str, int]]:
    """Return the bytes of each memory of ``target`` that each model may take, by model and memory."""
    if not any((target.memories, *(spec.memories for spec in specs))):
        return {}
    # Few projects divide memories.
    from mlfbuild.jobs.memory_needs import needs_of
    from mlfbuild.project import contested, shares_of

    jobs = {
        name: _compile_job(spec, target, tree, _quantize_step(project, spec, build), {})
        for name in sorted(contested(project, target))
        for spec in [project.models[name]]
    }
    return shares_of(project, target, needs_of(jobs))


def _quantize_step(project: Project, model: ModelSpec, build: Path) -> QuantizeStep | None:
    if model.quantize is None:
        return None
    made = build / QUANTIZED_FOLDER / f"{model.name}{model.source.suffix.lower()}"
    cache, names = project.cache.settings(), model.interface.inputs
    return QuantizeStep(model.name, model.source, model.quantize, made, model.dims, names, cache)


def _compile_job(
    model: ModelSpec, target: TargetSpec, tree: Path, step: QuantizeStep | None, shares: Mapping[str, int]
) -> CompileJob:
    only = only_memory(model, target) if model.memories else None
    limit, limited = ram_limit(model, target, shares)
    # The usual section needs no key, except that pools which firmware passes are in no section without one.
    named = only is not None and (not only.main or model.compiler != "native")
    choices = Choices(model.dims, model.state, model.signature, model.constants)
    request = CompileRequest(
        name=model.name,
        source=model.source if step is None else step.made,
        cpu=CPUS[target.cpu],
        executor=model.executor,
        options={**model.options, **choices.options(), **model.parameter_options},
        placement=replace(model.placement, workspace=only.section) if only and named else model.placement,
        interface=model.interface,
        program=model.program,
        extensions=model.extensions,
        memories=arena_memories(model, target, shares),
        weights=fast_weights(model, target),
        trust=model.trust,
        # Code of other compilers does not use it.
        npu=npu_of(target, model.folder) if model.compiler == "native" else None,
    )
    return CompileJob(
        target=target.name,
        compiler=model.compiler,
        request=request,
        archive=tree / f"{model.name}.tar",
        tree=tree / model.name,
        ram_limit=limit,
        ram_name=limited,
        optimize=model.optimize,
        quantize=step,
    )


def npu_of(target: TargetSpec, root: Path) -> Npu | None:
    """Return the NPU of ``target`` of a project in ``root``, whose Python is a name in PATH or an absolute path."""
    npu = target.npu
    if npu is None or npu.python is None or "/" not in npu.python:
        return npu
    return replace(npu, python=str(root.absolute() / npu.python))


def _bundles(project: Project, model: ModelSpec, target: TargetSpec) -> Iterator[Provider]:
    """Yield the libraries that the archive of ``model`` may bundle; native code for a core alone needs none."""
    if model.compiler != "native" or target.npu is not None:
        yield from (provider for provider in project.dependencies.values() if provider.bundle)


def compile_job(
    *,
    name: str,
    source: Path,
    cpu: str,
    compiler: str,
    executor: str | None,
    options: Mapping[str, OptionValue],
    archive: Path,
    python: str | None = None,
    placement: Placement | None = None,
    extensions: Mapping[str, OptionValue] | None = None,
) -> CompileJob:
    """Return the job that compiles one model file without a project file.

    ``name`` becomes part of C symbols and must match ``[a-z][a-z0-9_]*``. ``python`` is the interpreter that compiler
    ``tvm`` runs. Raises ``UsageError`` for invalid arguments.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise UsageError(
            "model-name-not-c",
            place=f"model name {name!r}",
            reason="must match [a-z][a-z0-9_]*, because it becomes part of C symbols",
            hint="choose another name",
        )
    for key, mistake in compiler_called(compiler).check_options(options):
        raise mistake.error(f"option {key!r}")
    if compiler == "command":
        raise UsageError(
            "command-without-project-file",
            place="compiler command",
            reason="needs a project file with its command line",
            hint="write a project file, or run the command by hand",
        )
    if python is not None and compiler != "tvm":
        raise UsageError(
            "python-of-other-compiler",
            place=f"python {python}",
            reason=f"compiler {compiler} runs no Python",
            hint="remove it, or choose compiler tvm",
        )
    program = CompilerProgram(Path(), interpreter=python) if compiler in EXTERNAL_COMPILERS else None
    placed = placement or Placement()
    cpu_row, known = cpu_called(cpu), extensions or {}
    request = CompileRequest(name, source, cpu_row, executor, options, placed, program, extensions=known)
    devices = TargetDevices(cpu, cpu_row)
    return CompileJob(cpu, compiler, request, archive, archive.with_suffix(""), devices=devices)


def default_compiler(source: Path) -> str:
    """Return the compiler for the file ``source``, by its suffix, or by its content if the suffix is not known."""
    known = SOURCES.get(source_suffix(source.name))
    return known or ("archive" if looks_like_archive(source) else "native")


def default_name(source: Path) -> str:
    """Return the default name of a model file as a C identifier, such as ``kws_v2`` for ``models/KWS-v2.tflite``."""
    return model_name(source.name)


def firmware_jobs(project: Project, targets: Sequence[TargetJob], build: Path | None = None) -> list[FirmwareJob]:
    """Return the firmware images of the project file for those of ``targets`` whose models are all selected."""
    chosen = {target.name: {job.model for job in target.models} for target in targets}
    folder = build or project.root / BUILD_FOLDER
    return [
        firmware_job(project, spec, target, folder)
        for target in targets
        for spec in project.firmware.values()
        if target.name in spec.targets
        # A firmware with some of its models missing would not link.
        and {model.name for model in project.models_on(target.name, spec.name)} <= chosen[target.name]
    ]


def firmware_called(project: Project, name: str, target: TargetJob, folder: Path, build: Path) -> FirmwareJob:
    """Return the job that builds the firmware ``name`` of the project file, or of the CMakeLists.txt in ``folder``.

    Raises ``UsageError`` if there is neither, or if the project file does not list ``target`` for it.
    """
    spec = project.firmware.get(name)
    # The project file comes first, even if the folder has a CMakeLists.txt.
    if spec is not None:
        if target.name not in spec.targets:
            raise UsageError(
                "firmware-not-for-target",
                place=f"firmware {name!r}",
                reason=f"is not built for target {target.name!r}",
                hint=f"add it to its targets ({', '.join(spec.targets)})",
            )
        return firmware_job(project, spec, target, build)
    if not (folder / "CMakeLists.txt").is_file():
        raise UsageError(
            "firmware-not-found",
            place=f"firmware {name!r}",
            reason=f"{project.path} does not define it, and {folder} has no CMakeLists.txt",
            hint="write one of them",
        )
    return FirmwareJob(
        name, target, (), (), (), folder, build / target.name / name, project.root,
        model_budgets=_model_budgets(project.models_on(target.name), target),
        runs=tuple(profile_jobs(project, target, build)),
    )  # fmt: skip


def firmware_job(project: Project, spec: FirmwareSpec, target: TargetJob, build: Path) -> FirmwareJob:
    """Return the job that builds the firmware ``spec`` for ``target`` in the folder ``build``."""
    models = project.models_on(target.name, spec.name)
    return FirmwareJob(
        name=spec.name,
        target=target,
        models=tuple(model.name for model in models),
        sources=spec.sources,
        include_dirs=spec.include_dirs,
        cmake=spec.cmake,
        build=build / target.name / spec.name,
        root=project.root,
        params_section=spec.params_binary,
        budget=spec.budget.on(memory.name for memory in target.memories),
        model_budgets=_model_budgets(models, target),
        budget_file=project.baseline,
        runs=tuple(job for job in profile_jobs(project, target, build) if job.model.model in spec.models),
    )


def _model_budgets(models: Iterable[ModelSpec], target: TargetJob) -> tuple[tuple[str, Budget], ...]:
    memories = [memory.name for memory in target.memories]
    budgets = ((model.name, model.budget.on(memories)) for model in models)
    return tuple((name, budget) for name, budget in budgets if budget != Budget())


def profile_jobs(project: Project, target: TargetJob, build: Path) -> list[ProfileJob]:
    """Return a job for each selected model of ``target``, in the folder ``build``; none if no board can run it."""
    folder = build / "profile" / target.name
    return [
        ProfileJob(target, model, project.models[model.model].vectors, folder / model.model)
        for model in (target.models if target.run_board else ())
    ]


def vectors_of(project: Project) -> Mapping[str, Mapping[str, Path]]:
    """Return the vectors files, by module, of each model that has some."""
    return {name: spec.vectors for name, spec in project.models.items() if spec.vectors}
