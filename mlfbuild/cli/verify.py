"""``mlfbuild verify``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import (
    FILE,
    SharedOptions,
    bundle_option,
    complete_board,
    runner_option,
    signers_option,
    timeout_option,
    verb,
)
from mlfbuild.cli.output.ci_formats import JUnitCase, write_junit
from mlfbuild.cli.output.evaluations import show_evaluations
from mlfbuild.cli.output.hashes import hashes_json, shown_image
from mlfbuild.cli.output.markdown import evaluate_markdown, verify_markdown
from mlfbuild.cli.output.printing import FAILED, PASSED, note, note_all, report_error, show, show_as_it_is, show_json
from mlfbuild.cli.output.progress import building, showing_progress
from mlfbuild.cli.output.usage import show_usages
from mlfbuild.core import Diagnostic, MlfError, UsageError, listed

if TYPE_CHECKING:
    from mlfbuild.project import Project
    from mlfbuild.report import Usage
    from mlfbuild.usecases import EvaluateResult, LeftOut, VerifyJob, VerifyResult
    from mlfbuild.verify import VerifyReport

_FOR_PEOPLE = {"text", "github"}
"""Forms in which each result is printed as text."""


@verb("file", "target", "model", "jobs", "on", "frozen", "offline", "no_wait", "summary_format")
@click.option("--elf", type=FILE, metavar="FILE", help="Check this test firmware; no project needed.")
@click.option("--vectors", type=FILE, metavar="FILE", help="With --elf or --parameters: inputs and outputs.")
@click.option(
    "--board", metavar="NAME", help="With --elf or --bundle: the board to use.", shell_complete=complete_board
)
@click.option("--in", "image", type=FILE, metavar="FILE", help="Check the models in this firmware image on the device.")
@click.option("--no-flash", is_flag=True, help="With --in: the device holds the image already.")
@click.option("--parameters", type=FILE, metavar="BLOB", help="With --in: the firmware must use this blob.")
@click.option("--emulator", is_flag=True, help="Use the boards of targets instead of their devices.")
@bundle_option
@runner_option
@signers_option
@timeout_option(usual=120)
@click.option("--junit", type=FILE, metavar="FILE", help="Also write the results as JUnit XML.")
def verify(
    options: SharedOptions,
    elf: Path | None,
    vectors: Path | None,
    board: str | None,
    image: Path | None,
    no_flash: bool,
    parameters: Path | None,
    emulator: bool,
    bundle: Path | None,
    runner: tuple[str, ...],
    signers: Path | None,
    timeout: float | None,
    junit: Path | None,
) -> None:
    """Run every model that has vectors and compare all outputs.

    Models run as test firmware on the devices of their targets (runner), on their boards, which QEMU emulates, or on
    this machine. Those with the key evaluate are also measured on their test sets, as `mlfbuild evaluate` does. Those
    with a budget of instructions, cycles or latency are also counted; the exit status is 1 if one
    exceeds it.

    With --in, call the models in a firmware image that you ship: it is loaded, runs from reset to main on the target's
    device, and there the models' run functions are called with each vector. With --parameters, the firmware's own
    function first checks and uses the blob. With --bundle, no project is needed: the image is compared with the bundle,
    and the device is that of --board or --runner, or the bundle's board. With --signers, the bundle must have a
    provenance of the image that one of them signed.

    With --elf, run test firmware that another build made: the CMake target mlf_<model>_verify of a tree that
    `mlfbuild build --tree DIR --with-verify` wrote.
    """
    if bundle is not None:
        _check_only_bundle(options, {"elf": elf, "vectors": vectors, "emulator": emulator, "parameters": parameters})
        _verify_bundle(options, bundle, image, board, runner, signers, timeout, junit, flash=not no_flash)
        return
    if runner:
        raise UsageError.needs_another(
            "--runner", "without a bundle, the project file selects the runner", "add --bundle"
        )
    if signers is not None:
        raise UsageError.needs_another("--signers", "only a bundle has a signed provenance", "add --bundle")
    if elf is not None and (image is not None or emulator):
        raise UsageError.not_applicable(
            "--in" if image is not None else "--emulator", "test firmware names its board", "omit it with --elf"
        )
    if parameters is not None and image is None:
        raise UsageError.needs_another("--parameters", "the option applies only to an image", "add --in")
    if elf is not None:
        _verify_elf(options, elf, vectors, board, timeout, junit)
    elif parameters is not None and board is None:
        given = (parameters, vectors)
        _verify_project(options, timeout, junit, emulator=emulator, image=image, flash=not no_flash, blob=given)
    elif vectors is not None or board is not None:
        raise UsageError.needs_another(
            "--vectors" if vectors is not None else "--board",
            "the option applies only to an image",
            "add --elf, or write it in the project file",
        )
    elif no_flash and image is None:
        raise UsageError.needs_another("--no-flash", "the option applies only to an image", "add --in")
    else:
        _verify_project(options, timeout, junit, emulator=emulator, image=image, flash=not no_flash)


def _check_only_bundle(options: SharedOptions, others: dict[str, object]) -> None:
    given = options.given & {"file", "target", "model", "jobs", "frozen", "no_wait"}
    for name in sorted(given | {name for name, value in others.items() if value}):
        raise UsageError.not_applicable(
            f"--{name.replace('_', '-')}", "the bundle contains the target, models and vectors", "omit it with --bundle"
        )


def _verify_bundle(
    options: SharedOptions,
    bundle: Path,
    image: Path | None,
    board: str | None,
    runner: tuple[str, ...],
    signers: Path | None,
    timeout: float | None,
    junit: Path | None,
    *,
    flash: bool,
) -> None:
    from mlfbuild.usecases import verification_failed, verify_received

    received = shown_image(options, bundle, image, "--in FILE", board=board, runner=runner, signers=signers)
    with showing_progress(options, "verify") as progress:
        reports = verify_received(received, flash=flash, timeout=timeout, progress=progress)
    problems = [
        Diagnostic("verify-failed", place=f"{image}: {report.title}", reason=report.summary(), hint=report.hint)
        for report in reports
        if not report.passed
    ]
    # Written whether or not the outputs are right: CI reads it in both cases.
    _write_cases(options, junit, [JUnitCase(report.board, report.module, report) for report in reports])
    if options.json:
        show_json(
            {
                **hashes_json(received),
                "results": [{"target": received.target.name, "passed": r.passed, **vars(r)} for r in reports],
            }
        )
    for report in reports:
        if options.format in _FOR_PEOPLE and not (options.quiet and report.passed):
            _show_report(report)
    if problems:
        raise verification_failed(str(image), problems)


def _verify_elf(
    options: SharedOptions,
    elf: Path,
    vectors: Path | None,
    board: str | None,
    timeout: float | None,
    junit: Path | None,
) -> None:
    from mlfbuild.usecases import verification_failed, verify_elf

    for name in sorted(options.given & {"file", "target", "model", "frozen"}):
        raise UsageError.not_applicable(f"--{name}", "an image needs no project", "omit it with --elf")
    if vectors is None:
        raise UsageError(
            "vectors-missing",
            place=f"--elf {elf}",
            reason="the expected outputs are missing",
            hint="add --vectors FILE.npz with arrays in0.. and out0..",
        )
    report = verify_elf(elf, vectors, board, timeout)
    problems = []
    if not report.passed:
        problems = [Diagnostic("verify-failed", place=str(elf), reason=report.summary(), hint=report.hint)]
    _write_cases(options, junit, [JUnitCase(report.board, report.module, report, next(iter(problems), None))])
    if options.json:
        show_json({"elf": elf, "passed": report.passed, **vars(report)})
    elif options.format in _FOR_PEOPLE and not (options.quiet and report.passed):
        _show_report(report)
    if not report.passed:
        raise verification_failed(str(elf), problems)


def _verify_project(
    options: SharedOptions,
    timeout: float | None,
    junit: Path | None,
    *,
    emulator: bool,
    image: Path | None,
    flash: bool,
    blob: tuple[Path, Path | None] | None = None,
) -> None:
    from mlfbuild.jobs import BUILD_FOLDER, load, target_jobs
    from mlfbuild.usecases import (
        budget_error,
        check_test_data,
        evaluate_jobs,
        evaluated,
        evaluation_failed,
        jobs_in_image,
        left_out,
        models_not_in_images,
        unchecked_in_runs,
        verify_jobs,
        verify_project,
        with_parameters,
        without_runners,
    )

    project = options.placed(load(options.file))
    targets = target_jobs(project, options.target, options.model)
    if emulator:
        targets = without_runners(targets)
    evaluations = evaluate_jobs(project, targets, timeout=timeout) if image is None else []
    check_test_data(project, evaluations)
    given = None if blob is None else blob[1]
    jobs = verify_jobs(project, targets, project.root / BUILD_FOLDER, timeout, needed=not evaluations, given=given)
    if image is not None:
        jobs = jobs_in_image(jobs, image, flash=flash)
        jobs = jobs if blob is None else with_parameters(project, jobs, *blob)
    # Noted, so that a model without vectors is not taken for one that passed.
    skipped = [] if given else left_out(project, targets)
    note_all(options, skipped, "not verified: ")
    note_all(options, () if image else unchecked_in_runs(project, targets), "not checked: ")
    try:
        with building(options, project) as progress:
            results = verify_project(
                project, targets, jobs, frozen=options.frozen, workers=options.jobs, progress=progress
            )
            measured = evaluated(evaluations, progress)
            excess = None if image else budget_error(project, targets, progress)
    except MlfError as error:
        # instead of the results of an older run
        _write_cases(options, junit, _cases(project, [(job, error) for job in jobs], skipped, None))
        raise
    _write_cases(options, junit, _cases(project, results, skipped, excess), project, measured)
    note_all(options, () if image else models_not_in_images(project, targets))
    if options.json:
        show_json([*(_json(job, result) for job, result in results), *map(_evaluation_json, measured)])
    elif options.format in _FOR_PEOPLE:
        _show_results(options, results)
        show_evaluations(options, measured)
    show_usages(options, list(_arenas(project, results)))
    _raise_failures(project, results, evaluation_failed(project, measured), excess, options.format)


def _show_results(options: SharedOptions, results: Sequence[VerifyResult]) -> None:
    several = len({job.target.name for job, _ in results}) > 1
    for job, result in results:
        if not (isinstance(result, MlfError) or (options.quiet and result.passed)):
            _show_report(result.called(job.title) if several else result)


def _arenas(project: Project, results: Sequence[VerifyResult]) -> Iterator[Usage]:
    """Yield the arena of each model that ran and whose part or budget limits it."""
    from mlfbuild.report import usages

    for job, result in results:
        if not isinstance(result, MlfError) and job.target.toolchain is not None:
            budget = project.models[job.model.model].budget
            found = usages(job.title, {"arena": result.workspace_size}, job.target, budget)
            yield from (usage for usage in found if usage.limits)


def _show_report(report: VerifyReport) -> None:
    text = report.text()
    show(text, {text: PASSED if report.passed else FAILED})


def _json(job: VerifyJob, result: VerifyReport | MlfError) -> dict[str, Any]:
    if isinstance(result, MlfError):
        module = job.module or job.model.model
        named = {"model": job.model.model, "module": module}
        return {"target": job.target.name, "passed": False, **named, "error": str(result)}
    return {"target": job.target.name, "passed": result.passed, **vars(result)}


def _evaluation_json(result: EvaluateResult) -> dict[str, Any]:
    job, report = result
    if isinstance(report, MlfError):
        return {"target": job.target.name, "passed": False, "model": job.model.model, "error": str(report)}
    # Under a key of its own: a test set has no expected outputs as vectors have.
    return {"target": job.target.name, "passed": report.passed, "model": report.model, "evaluation": report.as_json()}


def _cases(
    project: Project,
    results: Sequence[VerifyResult],
    skipped: Sequence[LeftOut],
    excess: MlfError | None,
) -> list[JUnitCase]:
    from mlfbuild.usecases import wrong_outputs

    cases = [
        JUnitCase(
            job.target.name,
            job.test_name,
            result,
            None if isinstance(result, MlfError) or result.passed else wrong_outputs(project, job, result),
        )
        for job, result in results
    ]
    cases += [JUnitCase("budgets", "runs", excess)] if excess is not None else []
    return [*cases, *(JUnitCase("skipped", omitted.name, None, text=omitted.text) for omitted in skipped)]


def _evaluation_cases(project: Project, measured: Sequence[EvaluateResult]) -> Iterator[JUnitCase]:
    from mlfbuild.usecases import missed_limits

    for job, report in measured:
        finding = next(iter(missed_limits(project, [(job, report)])), None)
        yield JUnitCase("evaluate", job.model.model, report, finding)


def _write_cases(
    options: SharedOptions,
    junit: Path | None,
    cases: Sequence[JUnitCase],
    project: Project | None = None,
    measured: Sequence[EvaluateResult] = (),
) -> None:
    if junit is not None:
        write_junit(junit, [*cases, *(_evaluation_cases(project, measured) if project else ())])
    if options.format == "markdown":
        show_as_it_is(verify_markdown(cases))
        if measured:
            show_as_it_is(f"\n{evaluate_markdown(measured)}")
        # stdout is usually a file then, and people look for what is wrong in the log of the job.
        for report in (case.result for case in cases):
            if report is not None and not isinstance(report, MlfError) and not report.passed:
                note(report.text())


def _raise_failures(
    project: Project,
    results: Sequence[VerifyResult],
    short: Sequence[MlfError],
    excess: MlfError | None,
    form: str,
) -> None:
    """Raise an error if a model is wrong, or the first one that could not be checked; report the other errors.

    ``short`` are those of evaluations, ``excess`` is an error about budgets.
    """
    from mlfbuild.usecases import verification_failed, wrong_outputs

    # An error that several models share, such as a missing compiler, is reported once.
    errors = list({str(result): result for _, result in results if isinstance(result, MlfError)}.values())
    errors += [*short, *([excess] if excess is not None else [])]
    failed = [(job, result) for job, result in results if not isinstance(result, MlfError) and not result.passed]
    # The exit status is that of the one that is raised: wrong outputs come first, as they are what the command is for.
    for error in errors if failed else errors[1:]:
        report_error(error, form)
    if failed:
        problems = [wrong_outputs(project, job, report) for job, report in failed]
        raise verification_failed(listed([job.title for job, _ in failed]), problems)
    if errors:
        raise errors[0]
