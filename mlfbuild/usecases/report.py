"""Report sizes, stack and instructions of firmware images by owner, as text, JSON or HTML."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mlfbuild import report
from mlfbuild.core import (
    CheckFailedError,
    Diagnostic,
    InputFileError,
    LinkFaultsError,
    MlfError,
    OverBudgetError,
    ProjectFileError,
    UsageError,
    listed,
)
from mlfbuild.jobs import (
    BUILD_FOLDER,
    FirmwareJob,
    Progress,
    TargetBudgets,
    TargetJob,
    chosen_names,
    firmware_jobs,
    target_jobs,
    toolchain_of,
    with_modules,
)
from mlfbuild.project import Budget, Project
from mlfbuild.report import budgets, link, stack
from mlfbuild.usecases.build import build_project

Checks = Mapping[tuple[str, str], Mapping[str, Sequence[Mapping[str, Any]]]]
"""Results of ``verify`` and ``evaluate`` as JSON values, by target and model, under these keys."""
# Fields of a piece in JSON; the second three are written only if they have a value.
_OF_A_PIECE = ("name", "kind", "size", "flash", "ram")
_OF_A_CONSTANT = ("content", "tensor", "source")

# All forms, although a build writes only some: reports of an earlier build in the other forms are removed as well.
_EXCESS_FORMS = (".txt", ".json", ".html")
_OF_MAPS = {"linker-map-missing", "not-a-gnu-ld-map", "map-of-another-image"}
"""Codes of errors about a linker map, which only some linkers write in a form that mlfbuild reads."""


@dataclass(frozen=True)
class ProjectReport:
    """The report of a project, which was built for it."""

    document: report.ReportDocument
    images: tuple[report.ImageSizes, ...]
    over_budget: OverBudgetError | LinkFaultsError | None
    """The error of the build if an image exceeds its budget or has faults; such images are reported anyway."""


def report_project(
    project: Project,
    targets: Sequence[str] = (),
    *,
    operators: bool = False,
    profile: bool = False,
    accept: bool = False,
    frozen: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> ProjectReport:
    """Build the firmware of the selected targets (by default all) and report its images.

    With ``profile`` every model runs once on its board. With ``accept`` nothing is compared with the baseline, because
    ``accept_sizes`` will replace it. Raises as ``build_project`` apart from budgets, as ``check_baseline``,
    ``check_boards`` and ``image_sizes``, and ``CheckFailedError`` if there is no image to report.
    """
    # Before the build, which may take minutes.
    budgets.check_baseline(project, update=accept)
    chosen = target_jobs(project, targets)
    firmware = firmware_jobs(project, chosen)
    if profile:
        report.check_boards(firmware)
    over_budget = None
    try:
        # A size that is to become the new baseline must not fail because it differs from the old one.
        checked = budgets.unchecked(firmware) if accept else firmware
        build_project(chosen, checked, jobs=jobs, progress=progress, locked=project if frozen else None)
    except (OverBudgetError, LinkFaultsError) as error:
        over_budget = error
    # Images that exceed their budget exist, and their report shows why.
    images = _images(firmware)
    if profile:
        images = report.profiled(images, progress)
    document = report_document(images, operators=operators, checks=lambda: _checks(project, chosen))
    return ProjectReport(document, tuple(images), over_budget)


def _checks(project: Project, targets: Sequence[TargetJob]) -> Checks:
    """Return the last results of ``verify`` and ``evaluate``; evaluations on this machine are those of all targets."""
    # numpy: builds with nothing to do never need it
    from mlfbuild.usecases.evaluate import evaluate_jobs, evaluated_state
    from mlfbuild.usecases.verify import verified_state, verify_jobs

    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    states = {job.model.model: evaluated_state(job) for job in evaluate_jobs(project, targets)}
    for target in targets:
        for name in (model.model for model in target.models if model.model in states):
            found[target.name, name] = {"evaluate": [states[name]]}
    with contextlib.suppress(CheckFailedError, ProjectFileError):  # no model has vectors, or they name a wrong module
        for job in verify_jobs(project, targets, project.root / BUILD_FOLDER):
            own = found.setdefault((job.target.name, job.model.model), {})
            own.setdefault("verify", []).append(verified_state(job))
    return found


def _images(jobs: Sequence[FirmwareJob]) -> list[report.ImageSizes]:
    """Return the sizes of each job's image, except of images for this machine."""
    found = [report.image_sizes(job) for job in jobs if job.target.toolchain is not None and job.elf.is_file()]
    if not found:
        raise CheckFailedError(
            "nothing-to-report",
            reason="the project has no firmware for a target with a toolchain",
            hint="add one, or name an image with --elf",
        )
    return found


def accept_sizes(project: Project, images: Sequence[report.ImageSizes]) -> tuple[Path, bool]:
    """Make the reported sizes the project's baseline; return its path and whether its content changed.

    Raises as ``update_baseline``.
    """
    return budgets.update_baseline(project, [(sizes.job, sizes.sizes) for sizes in images if sizes.job is not None])


def report_image(elf: Path, linker_map: Path | None = None) -> report.ReportDocument:
    """Return the report of the image ``elf`` of any build.

    Its models are the libraries ``libmlf_<model>.a``, or the objects ``<model>_lib0.o``, in the linker map, which is
    ``<elf>.map`` by default. Raises as ``any_image_sizes``.
    """
    return report_document([report.any_image_sizes(elf, linker_map)])


@dataclass(frozen=True)
class LinkReport:
    """The report of an image of any build, compared with budgets."""

    document: report.ReportDocument | None
    """``None`` if the linker map cannot be used, and no budget needs it."""
    over_budget: OverBudgetError | None
    unchecked: tuple[str, ...]
    """A line for each budget that cannot be checked after a link, with the command that checks it."""
    faults: tuple[Diagnostic, ...] = ()
    """Faults of the link."""

    @property
    def errors(self) -> list[CheckFailedError]:
        """The errors of the link: its faults, then an exceeded budget."""
        return [
            *([LinkFaultsError(self.faults)] if self.faults else []),
            *([self.over_budget] if self.over_budget is not None else []),
        ]


def report_link(
    elf: Path, linker_map: Path | None, found: TargetBudgets, *, models: Sequence[str] = (), firmware: str = ""
) -> LinkReport:
    """Return the report of the image ``elf``, compared with those budgets of its target that apply to it.

    These are the budgets of ``models`` (by default all), and that of the ``firmware`` that the image is, by default the
    one with its name. Raises as ``any_image_sizes``, ``link_budgets`` and ``link_faults``, and as ``budgets.exceeded``
    if a budget cannot be checked.
    """
    limits = budgets.link_budgets(found, elf.stem, models, firmware)
    try:
        image = report.any_image_sizes(
            elf, linker_map, names=found.modules, budgets=limits.budgets, memories=found.memories
        )
    except InputFileError as error:
        # Without a budget, a link with another linker must not fail only because its map has another form. A budget
        # needs the map, so the error stays.
        if limits.budgets or error.code not in _OF_MAPS:
            raise
        return LinkReport(None, None, (f"faults of the link: {error}",))
    problems = budgets.exceeded(image, limits)
    unchecked = [*budgets.not_checked(image, limits), *([] if models else budgets.without_budget(found, limits))]
    return LinkReport(
        report_document([image]),
        OverBudgetError(problems) if problems else None,
        tuple(unchecked),
        # Quick, because this runs after every link of another build system.
        link.link_faults(image, quick=True).faults,
    )


def models_not_in_images(project: Project, targets: Sequence[TargetJob]) -> Iterator[str]:
    """Yield a note for each model without code in an image of ``project`` that was built for one of ``targets``.

    ``verify`` runs models in test firmware, so it passes for a model that the product never calls.
    """
    for job in firmware_jobs(project, targets):
        if job.target.toolchain is not None and job.elf.is_file():
            with contextlib.suppress(InputFileError):  # builds and reports say what is wrong with the map
                yield from (f"{job.title}: {note}" for note in link.models_without_code(report.image_sizes(job)))


def target_budgets(project: Project, targets: Sequence[str]) -> TargetBudgets:
    """Return the budgets of the only target in ``targets``, or of the project's only target with a toolchain.

    Raises ``UsageError`` if there are several, or if the target is this machine.
    """
    names = chosen_names("target", targets, project.targets)
    crossed = [name for name in names if toolchain_of(project.targets[name]) is not None]
    if not crossed:
        raise UsageError(
            "budgets-of-this-machine",
            place=f"target {listed(names)}",
            reason="budgets do not apply to images of this machine",
            hint="choose a target with another CPU",
        )
    if len(crossed) > 1:
        reason = f"the image can be one for {listed(crossed)}"
        raise UsageError("target-of-image-unknown", place=project.path, reason=reason, hint="choose one with --target")
    (job,) = target_jobs(project, crossed)
    return with_modules(job.budgets or TargetBudgets(job.name, {}, {}), job)


def report_text(found: Sequence[report.ImageSizes], *, verbose: bool = False, operators: bool = False) -> str:
    """Return reports as text: with ``verbose`` all pieces of models, with ``operators`` also the operators."""
    return "\n\n".join(_text(sizes, verbose=verbose, operators=operators) for sizes in found)


def _text(found: report.ImageSizes, *, verbose: bool, operators: bool) -> str:
    job, image = found.job, found.image
    title = job.title if job else image.path.name
    head = f"{title}: {image.flash:,} bytes of flash, {image.ram:,} of RAM ({image.path})"
    if job is None and not found.sizes.models:
        head += "\nno models: the map lists no library libmlf_<model>.a and no object <model>_lib0.o"
    parts = [head, report.sizes_text(found.sizes, _model_budgets(found), _budget(found), verbose=verbose)]
    parts += [report.memories_text(found.memory_uses, found.budgets)] if found.memories else []
    limits = {name: budget.stack for name, budget in found.budgets.items() if budget.stack is not None}
    depths = stack.stack_lines(stack.stacks(found), limits, stack.measured_stacks(found), verbose=verbose)
    parts.append("\n".join(depths))
    parts += link.link_faults_text(link.link_faults(found))
    if job is not None and job.budget_file is not None:
        parts.append("\n".join(budgets.difference_lines(job, found.sizes)))
    parts += report.all_operators(found.sizes.models, report.networks_of(found)) if operators else ()
    parts += report.all_arenas(report.planned_models(found), verbose=verbose, places=operators)
    parts += report.all_runs(found.runs, job.limits if job else {}, verbose=verbose)
    return "\n\n".join(parts)


def _budget(found: report.ImageSizes) -> Budget:
    return found.budgets.get("", Budget())


def _model_budgets(found: report.ImageSizes) -> dict[str, Budget]:
    return {name: budget for name, budget in found.budgets.items() if name}


def report_json(found: Sequence[report.ImageSizes], checks: Checks | None = None) -> dict[str, Any]:
    """Return reports as JSON values, with the results of ``verify`` and ``evaluate`` that are known.

    The form is that of ``report_schema``: sizes in bytes, and a list of images. ``checks`` has the results by target
    and model; without them the report does not mention the two.
    """
    return {"mlfbuild_report": report.FORMAT, "images": [_json(sizes, checks or {}) for sizes in found]}


def _json(found: report.ImageSizes, checks: Checks) -> dict[str, Any]:
    job, image, networks, depths = found.job, found.image, report.networks_of(found), stack.stacks(found)
    return {
        "firmware": job.name if job else image.path.name,
        **({"target": job.target.name, "cpu": job.target.cpu.name} if job else {}),
        "sha256": image.sha256,
        "flash": image.flash,
        "ram": image.ram,
        "size": asdict(image.berkeley),
        "budget": _budget(found).to_json(),
        **({"baseline": baseline} if (baseline := job and budgets.baseline_of(job)) else {}),
        "stack": stack.stack_json(depths.main),
        "models": [
            _model(found, owner, networks[owner.name], depths.models.get(owner.name), checks)
            for owner in found.sizes.models
        ],
        "others": [_owner(owner) for owner in found.sizes.others],
        **({"memories": [report.memory_json(use) for use in found.memory_uses]} if found.memories else {}),
        **link.link_faults_json(link.link_faults(found)),
    }


def _model(
    found: report.ImageSizes,
    owner: report.Owner,
    networks: Sequence[report.NetworkSizes],
    depth: stack.StackDepth | None,
    checks: Checks,
) -> dict[str, Any]:
    budget = _model_budgets(found).get(owner.name)
    # The size of the model alone is not known, so a number beside this budget would suggest that it was compared.
    if budget is not None and owner.name in found.sizes.mixed:
        budget = replace(budget, flash=None, ram=None, memories={})
    measured = stack.measured_stacks(found).get(owner.name)
    compiled = {job.model: job for job in found.job.target.models} if found.job else {}
    facts = report.source_facts(compiled[owner.name]) if networks and owner.name in compiled else None
    runs = {run.profile.module: run for run in reversed(found.runs)}
    listed = [report.network_json(each, runs.get(each.module), facts) for each in networks]
    checked = checks.get((found.job.target.name, owner.name), {}) if found.job else {}
    return {
        **_owner(_with_origins(owner, networks)),
        **({"devices": [asdict(part) for part in parts]} if (parts := report.parts_by_device(owner)) else {}),
        **({"budget": budget.to_json()} if budget else {}),
        **({"networks": listed} if found.job else {}),
        **checked,
        **({"stack": stack.stack_json(depth, measured)} if depth else {}),
    }


def _with_origins(owner: report.Owner, networks: Sequence[report.NetworkSizes]) -> report.Owner:
    """Return ``owner`` with the parts of the model that its constants and functions are made of."""
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for each in networks:
        for operator in each.network.operators:
            # The first operator, if several call the same function.
            known.setdefault((each.module, operator.function), (operator.name, ""))
        known |= {(each.module, one.symbol): (one.tensor, one.source) for one in each.network.constants}
    found = ((piece, known.get((piece.module, piece.name), ("", ""))) for piece in owner.pieces)
    return replace(owner, pieces=tuple(replace(piece, tensor=tensor, source=key) for piece, (tensor, key) in found))


def _owner(owner: report.Owner) -> dict[str, Any]:
    pieces = [
        {
            **{key: getattr(piece, key) for key in _OF_A_PIECE},
            **{key: value for key in _OF_A_CONSTANT if (value := getattr(piece, key))},
        }
        for piece in owner.pieces
    ]
    return {
        "name": owner.name,
        "flash": owner.flash,
        "ram": owner.ram,
        "kinds": report.kinds_of(owner),
        "pieces": pieces,
    }


def report_document(
    found: Sequence[report.ImageSizes], *, operators: bool = False, checks: Callable[[], Checks] = dict
) -> report.ReportDocument:
    """Return reports that can be shown or written in any form; ``operators`` adds the operators to their text.

    ``checks`` returns the results of ``verify`` and ``evaluate``, which only JSON and HTML need.
    """
    return report.ReportDocument(
        lambda: report_json(found, checks()),
        lambda verbose: report_text(found, verbose=verbose, operators=operators),
        lambda: [fault for sizes in found for fault in link.link_faults(sizes).faults],
    )


def write_report(path: Path, elf: Path, job: FirmwareJob | None, *, profile: bool = False) -> None:
    """Write the report of the image ``elf`` to ``path``, in the form of its suffix.

    ``job`` is the firmware that the image was built for, or ``None`` for any other image, whose models are the
    libraries of its map. The text names ``elf`` as it is given, so that a relative path makes the same text in every
    checkout. The report also depends on the project's baseline, if there is one. With ``profile``, the job's models
    run. Raises as ``image_sizes``, ``baseline_of`` and ``profiled``.
    """
    found = [report.any_image_sizes(elf) if job is None else report.image_sizes(replace(job, build=elf.parent))]
    report_document(report.profiled(found) if profile else found).write(path)


@contextlib.contextmanager
def reporting_excess(job: FirmwareJob, elf: Path, forms: Collection[str]) -> Iterator[None]:
    """If the build in the ``with`` block exceeds a budget, write reports next to the image ``elf``.

    For build systems that keep no output of a failed build. ``forms`` are suffixes: the report of ``app.elf`` is
    ``app-over-budget.html``, and is removed when the image is built again. Raises ``OverBudgetError`` with a hint that
    names the reports.
    """
    paths = [elf.with_name(f"{elf.stem}-over-budget{form}") for form in _EXCESS_FORMS]
    # Before the build: a report that stays after a build which keeps its budget would be wrong.
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
    try:
        yield
    except OverBudgetError as error:
        written = list(_written(job, elf, [path for path in paths if path.suffix in forms]))
        raise OverBudgetError(error.problems, written) from None


def _written(job: FirmwareJob, elf: Path, paths: Collection[Path]) -> Iterator[str]:
    for path in paths:
        with contextlib.suppress(MlfError):  # the exceeded budget is the error to report
            write_report(path, elf, job)
            yield str(path)
