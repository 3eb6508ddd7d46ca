"""Check requirements and providers before anything is compiled, as far as known, and which budgets builds check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mlfbuild.core import Diagnostic, Mistake, MlfError, ProjectFileError, listed, suggestion
from mlfbuild.jobs import toolchain_of
from mlfbuild.library import Module, Requirement, device_code
from mlfbuild.library.keys import CODE, MEMORY_CLASSES
from mlfbuild.project import KeyPath, ModelSpec, Project, Provider, TargetSpec, mcu_of, run_budgets
from mlfbuild.requirements import file_lists, folder_library, model_requirements, requirement_problems


def check_dependencies(project: Project) -> list[str]:
    """Return a line for each provider of ``project`` that no model requires; none if not all requirements are known.

    Raises ``ProjectFileError`` for requirements that the project does not meet, for code of devices that it does not
    declare, and for providers whose files are not as the project states, and ``InputFileError`` for unsafe archives and
    folders.
    """
    # `None` for a model whose requirements only compiling shows.
    known = {name: known_requirements(model) for name, model in project.models.items()}
    required = {one.name for of_model in known.values() for one in of_model or ()}
    providers = project.dependencies.values()
    problems: list[str | Diagnostic] = []
    for target in project.targets:
        needs = [one for model in project.models_on(target) for one in known[model.name] or ()]
        problems += requirement_problems(needs, providers)
    # A provider that no model is known to require may never be built, so its mistakes are not reported yet.
    for provider in providers:
        problems += _mistakes(provider) if provider.name in required else ()
    problems += project.problems(_undeclared_devices(project))
    if problems:
        # Several targets may find the same problem in one provider.
        raise ProjectFileError(list(dict.fromkeys(problems)))
    # A model that is not compiled yet may require any of the providers.
    if any(of_model is None for of_model in known.values()):
        return []
    return [
        f"{provider.where}: no model requires it; remove it, or correct its name"
        for provider in providers
        if provider.name not in required
    ]


def unused_devices(project: Project) -> list[str]:
    """Return a line for each declared device of ``project`` that no model has files for, if all are known.

    Each line has the place in the project file. No device is listed for a target with a model whose archive an external
    program makes.
    """
    found = []
    for target in project.targets.values():
        known = [_devices_of(model) for model in project.models_on(target.name)]
        used = {name for names in known if names is not None for name in names}
        # If the devices of one model are unknown, any of the declared ones may be its own.
        for name in target.devices if None not in known else ():
            if name not in used:
                # A device of a model that is not declared may be this one under its right name.
                near = suggestion(name, used - {*target.devices})
                reason = f"no model has code in codegen/{name}{near}"
                mistake = Mistake("device-not-used", reason=reason, hint="correct the name, or remove the device")
                found.append((("targets", target.name, "devices", name), mistake))
    return [str(problem) for problem in project.problems(found)]


def _undeclared_devices(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield each device that a model has code for and a target of the model does not declare with a compiler."""
    for target in project.targets.values():
        models = project.models_on(target.name)
        built = ((model, *device) for model in models for device in (_devices_of(model) or {}).items())
        for model, name, is_built in built:
            device = target.devices.get(name)
            if is_built and (device is None or not device.names_compiler):
                reason = f"{model.source} has code in codegen/{name}, and no compiler is named for this device"
                near = "" if device else suggestion(name, target.devices)
                mistake = Mistake("device-not-declared", reason=reason + near, hint=f"add {name} with its cpu")
                yield ("targets", target.name, "devices", name), mistake


def _devices_of(model: ModelSpec) -> Mapping[str, bool] | None:
    """Return the devices that ``model`` has files for, and whether these have to be compiled; ``None`` if unknown."""
    if model.compiler == "native":
        return {}
    if model.compiler != "archive":
        return None
    modules = _modules(model)
    if modules is None:
        return None
    codes = [code for module in modules for code in device_code(module)]
    return {code.name: any(c.built for c in codes if c.name == code.name) for code in codes}


def _modules(model: ModelSpec) -> Sequence[Module] | None:
    """Return the modules of an archive of the project; ``None`` if it cannot be read, which the build reports."""
    from mlfbuild.archive import open_archive  # imported late, because few projects need it

    try:
        return open_archive(model.source, model.trust).modules
    except MlfError:
        return None


def unchecked_budgets(project: Project) -> list[str]:
    """Return a line for each budget of ``project`` that no build of it checks, with what does.

    Each line has the place in the project file and a command or a change with which the budget is checked. Budgets of
    runs are those that no firmware of the project can count.
    """
    found = [*_unchecked_of_models(project)]
    if project.baseline is not None and not any(_crossed(project, each.targets) for each in project.firmware.values()):
        reason = "the project has no firmware for a target other than this machine, so no growth is checked"
        found.append((("budget-file",), Mistake("growth-not-checked", reason=reason, hint="add one under firmware")))
    return [str(problem) for problem in project.problems(found)]


def assumed_places(project: Project) -> list[str]:
    """Return a line for each section whose memory the cycle model assumes, because the target gives it no region.

    Only targets with a microcontroller and without an emulated board have such lines: constants count as in its first
    memory, variables as in its second.
    """
    found = [
        (("targets", target.name), _assumed(section, memory))
        for target in project.targets.values()
        for section, memory in _without_region(project, target).items()
    ]
    return [str(problem) for problem in project.problems(found)]


def _without_region(project: Project, target: TargetSpec) -> Mapping[str, str]:
    """Return the memories of the target's microcontroller that sections without a region count as, by section."""
    mcu = mcu_of(target)
    if mcu is None or target.board is not None:
        return {}
    # As the cycle model assumes: constants are in the first memory of the microcontroller, variables in the second.
    first, second = list(mcu.memories)[:2]
    placed = [item for model in project.models_on(target.name) for item in model.placement.sections.items()]
    return {
        section: second if kind in MEMORY_CLASSES else first
        for kind, section in placed
        if section not in target.regions and kind != CODE
    }


def _assumed(section: str, memory: str) -> Mistake:
    return Mistake(
        "place-assumed",
        reason=f"{section} has no region, so cycles are modelled as if it were in {memory}",
        hint="add it to regions if your linker script puts it elsewhere",
    )


def _unchecked_of_models(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    for model in project.models.values():
        place = ("models", model.name, "budget")
        crossed = _crossed(project, model.targets)
        kinds = [kind for kind in ("flash", "ram", "stack") if getattr(model.budget, kind) is not None]
        linked = any(model.name in each.models and crossed & {*each.targets} for each in project.firmware.values())
        if kinds and not linked:
            reason = f"no firmware of the project links the model, so `mlfbuild build` does not check {listed(kinds)}"
            hint = (
                "link it with CMake's mlfbuild_models or with SCons, which check each image, or check one with "
                "`mlfbuild report --elf FILE --fail-over-budget`"
            )
            yield place, Mistake("budget-without-firmware", reason=reason, hint=hint)
        # A budget of runs needs a firmware whose target can count them: a board, or a microcontroller for cycles.
        counted = {
            key
            for each in project.firmware.values()
            if model.name in each.models
            for target in crossed & {*each.targets}
            for key in run_budgets(
                board=project.targets[target].board is not None, mcu=mcu_of(project.targets[target]) is not None
            )
        }
        runs = [key for key in model.budget.of_runs if key not in counted]
        if runs:
            links = f"no firmware of the project that links the model can check {listed(runs)}"
            reason, hint = f"{links}, so `mlfbuild build` does not", "run `mlfbuild profile`, which checks them"
            yield place, Mistake("run-budget-without-firmware", reason=reason, hint=hint)


def _crossed(project: Project, targets: Iterable[str]) -> set[str]:
    """Return those of ``targets`` to whose images budgets apply."""
    return {name for name in targets if toolchain_of(project.targets[name]) is not None}


def known_requirements(model: ModelSpec) -> tuple[Requirement, ...] | None:
    """Return the requirements of ``model``; ``None`` if only compiling shows them, or if the archive is damaged.

    ``()`` for models that mlfbuild compiles, which require no library; ``None`` for those of external programs, whose
    archive is not made yet.
    """
    if model.compiler == "native":
        return ()
    if model.compiler != "archive":
        return None
    modules = _modules(model)
    if modules is None:
        return None
    try:
        return tuple(one for module in modules for one in model_requirements(module, model.name, model.source))
    except MlfError:  # the build reports it
        return None


def _mistakes(provider: Provider) -> Sequence[str | Diagnostic]:
    """Return the mistakes in the files that ``provider`` names; those to be fetched are not read."""
    try:
        if provider.kind == "path" and provider.folder is not None:
            folder_library(provider.folder, provider)
        elif provider.kind != "package":
            file_lists(provider)
    except ProjectFileError as error:
        return error.problems
    return ()
