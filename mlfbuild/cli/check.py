"""``mlfbuild check``."""

from __future__ import annotations

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output import PASSED, note, show, show_json
from mlfbuild.core import ProjectFileError, counted


@verb("file", "format")
def check(options: SharedOptions) -> None:
    """Check the project file and list every mistake.

    Also checks options of compilers, files that the project names, and the dependencies that archives require. It lists
    budgets that no build of the project checks, sections whose memory the cycle model assumes, and files that another
    version of mlfbuild wrote into the repository.
    """
    from mlfbuild.build import load
    from mlfbuild.usecases import assumed_places, check_dependencies, unchecked_budgets, unused_devices
    from mlfbuild.usecases.init import outdated_lines

    try:
        project = load(options.file)
        warnings = [*check_dependencies(project), *unused_devices(project)]
        warnings += [*unchecked_budgets(project), *assumed_places(project)]
        warnings += outdated_lines(options.file)
    except ProjectFileError as error:
        if options.json:
            problems = [str(problem) for problem in error.problems]
            show_json({"file": options.file, "problems": problems, "warnings": []})
        raise
    if options.json:
        show_json({"file": options.file, "problems": [], "warnings": warnings})
        return
    for warning in warnings:
        note(f"warning: {warning}")
    if not options.quiet:
        targets, models = counted(len(project.targets), "target"), counted(len(project.models), "model")
        show(
            f"{options.file}: no mistakes ({targets}, {models}, {len(project.firmware)} firmware)",
            {"no mistakes": PASSED},
        )
