"""The result of a verification."""

from __future__ import annotations

from dataclasses import dataclass, replace

# Problems that a text shows. The first ones are the ones to look at, and a wrong kernel makes one in every case.
_SHOWN = 10


@dataclass(frozen=True)
class VerifyReport:
    """The result of one module on one board; bytes are measured by painting memory before each run."""

    module: str
    board: str
    """QEMU's machine name, ``host``, or the device: ``gdb localhost:3333``."""
    cases: int
    ran: int
    """Cases that ran to their end; the rest was not reached, because the firmware stopped."""
    problems: tuple[str, ...]
    """One line for each fault, such as ``kws: case 3, output 0 ('Identity'), element 7: expected ...``."""
    wrong: tuple[tuple[int, int], ...]
    """(case, output) of every wrong output."""
    workspace_size: int
    """Bytes of workspace that the library declares."""
    workspace_used: int | None
    """Bytes from the start of the workspace to the last byte written; ``None`` if the module owns its workspace."""
    stack_used: int | None
    """Bytes of stack of the deepest run; ``None`` on this machine, where it is not measured."""
    hint: str = ""
    """The operator to look at; empty if unknown."""
    remarks: tuple[str, ...] = ()
    """About the vectors: of another version of the model, or not from a second implementation."""
    model: str = ""
    """Name of the model in the project; empty if an archive or an image was checked without a project."""

    @property
    def title(self) -> str:
        """The model, with the module in brackets if its name is another one, as reports write it."""
        return self.module if self.model in ("", self.module) else f"{self.model} (module {self.module})"

    def for_model(self, model: str) -> VerifyReport:
        """Return the report under the name that the project gives the model; all problems begin with it.

        The project may give a model another name than its module has; the title is then ``kws (module kws_int8)``.
        Counts and memory stay as they are.
        """
        return self._renamed(replace(self, model=model))

    def called(self, title: str) -> VerifyReport:
        """Return the report with ``title`` at the beginning of all lines, such as ``kws for m55``.

        Use it where one model is verified several times, for example for several targets. The report forgets the names
        of module and model.
        """
        return self._renamed(replace(self, module=title, model=""))

    def _renamed(self, named: VerifyReport) -> VerifyReport:
        # Problems are texts that begin with the old title, which is replaced once at their begin.
        problems = (f"{named.title}{problem.removeprefix(self.title)}" for problem in self.problems)
        return replace(named, problems=tuple(problems))

    @property
    def passed(self) -> bool:
        """Whether every output element of every case was right and no write was out of bounds."""
        return not self.problems

    def summary(self) -> str:
        """Return the first problem, and how many others there are.

        Call it only if the module did not pass.
        """
        more = len(self.problems) - 1
        return f"{self.problems[0]}{f' (and {more} more)' if more else ''}"

    def problems_of(self, case: int) -> list[str]:
        """Return the problems of one case; a case that was not reached has one as well.

        Problems of no case count for the first one.
        """
        start = f"{self.title}: case {case}"
        found = [
            problem
            for problem in self.problems
            if problem.startswith((f"{start}:", f"{start},"))
            or (case == 0 and not problem.startswith(f"{self.title}: case "))
        ]
        return found or ([f"{start}: was not reached"] if case >= self.ran else [])

    def text(self) -> str:
        """Return one line if the module passed, otherwise the first problems and their number.

        Remarks about the vectors follow in lines of their own; there is no line end after the last one. Names in it may
        come from an archive: print it with ``terminal_text``.
        """
        if self.passed:
            plural = "case" if self.cases == 1 else "cases"
            line = ", ".join([f"{self.title}: {self.cases} {plural} right on {self.board}", *self._memory()])
            return "\n".join([line, *self._remarks()])
        # A line for each problem, because each one names a case and an element.
        lines = list(self.problems[:_SHOWN])
        hidden = len(self.problems) - len(lines)
        if hidden:
            lines.append(f"{self.title}: and {hidden} more problem{'s' if hidden > 1 else ''}")
        return "\n".join([*lines, *([self.hint] if self.hint else []), *self._remarks()])

    def _remarks(self) -> list[str]:
        return [f"{self.title}: {remark}" for remark in self.remarks]

    def _memory(self) -> list[str]:
        words = []
        if self.workspace_used is not None:
            words.append(f"arena {self.workspace_used:,} of {self.workspace_size:,} bytes used")
        if self.stack_used is not None:
            words.append(f"stack {self.stack_used:,} bytes")
        return words
