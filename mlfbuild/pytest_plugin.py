"""A plugin of pytest: each case of the vectors of a project file is a test.

``pytest mlfbuild.yml`` collects ``mlfbuild.yml::kws[m55-case0]`` and so on, one for each case of each model on each
target that can run. With ``--mlfbuild``, the project files in the folders that pytest searches are also collected. The
models are built when the first of their cases runs, and all cases of a model run in one image, so selecting a single
case does not make it faster. Results are those of ``mlfbuild verify``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mlfbuild.core import MlfError

if TYPE_CHECKING:
    from mlfbuild.usecases import VerifyJob
    from mlfbuild.verify import VerifyReport

PROJECT_FILE = "mlfbuild.yml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options to those of pytest."""
    group = parser.getgroup("mlfbuild", "vectors of models")
    group.addoption("--mlfbuild", action="store_true", help="collect the vectors of every mlfbuild.yml")
    group.addoption(
        "--mlfbuild-target", action="append", default=[], metavar="NAME", help="use only this target; repeatable"
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a project file that is named on the command line, or any one with ``--mlfbuild``."""
    wanted = parent.session.isinitpath(file_path) or parent.config.getoption("--mlfbuild")
    if file_path.name != PROJECT_FILE or not wanted:
        return None
    file: pytest.Collector = ProjectFile.from_parent(parent, path=file_path)
    return file


class ProjectFile(pytest.File):
    """A project file; its tests are the cases of all vectors."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each case of each model and target."""
        # Imported here: pytest loads the plugin in every run of every project on this machine.
        from mlfbuild.jobs import BUILD_FOLDER, load, target_jobs
        from mlfbuild.usecases import verify_jobs
        from mlfbuild.verify import count_cases

        self.project = load(self.path)
        self.results: dict[str, VerifyReport | MlfError] = {}
        targets = target_jobs(self.project, tuple(self.config.getoption("--mlfbuild-target")))
        for job in verify_jobs(self.project, targets, self.project.root / BUILD_FOLDER):
            for case in range(count_cases(job.vectors)):
                name = f"{job.test_name}[{job.target.name}-case{case}]"
                yield VectorCase.from_parent(self, name=name, job=job, case=case)

    def result_of(self, job: VerifyJob) -> VerifyReport:
        """Return the report of ``job``, which is built and run the first time; raises ``MlfError`` each time."""
        if job.title not in self.results:
            from mlfbuild.jobs import BUILD_FOLDER, folder_locked
            from mlfbuild.usecases import verify_project

            try:
                with folder_locked(self.project.root / BUILD_FOLDER, lambda _: None):
                    ((_, self.results[job.title]),) = verify_project(self.project, [job.target], [job])
            # The error is kept as a result: a model that does not compile fails each of its cases, but is compiled
            # once.
            except MlfError as error:
                self.results[job.title] = error
        result = self.results[job.title]
        if isinstance(result, MlfError):
            raise result
        return result

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """Return a mistake of the user without a traceback."""
        return str(excinfo.value) if isinstance(excinfo.value, MlfError) else super().repr_failure(excinfo)


class VectorCase(pytest.Item):
    """One case of the vectors of a model on one target."""

    def __init__(self, *, job: VerifyJob, case: int, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.job = job
        self.case = case

    def runtest(self) -> None:
        """Fail with the problems of this case."""
        file = self.parent
        assert isinstance(file, ProjectFile)
        report = file.result_of(self.job)
        self.user_properties.append(("board", report.board))
        problems = report.problems_of(self.case)
        if problems:
            pytest.fail("\n".join([*problems, report.hint]).rstrip(), pytrace=False)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """Return a mistake of the user, or of an external program, without a traceback."""
        return str(excinfo.value) if isinstance(excinfo.value, MlfError) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the place in lists of tests."""
        return self.path, None, self.name
