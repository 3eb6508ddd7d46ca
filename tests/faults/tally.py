"""Counts of a campaign."""

import re
from collections import Counter
from dataclasses import dataclass, field

_OUR_TRACEBACK = re.compile(r'File "[^"]*/mlfbuild/')
DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 7, 8, 130}


@dataclass
class Tally:
    """How the faults of a campaign ended.

    refused    mlfbuild ended with a documented exit code and a message, or the tool that runs it failed
    crashed    a traceback, or an exit code that is not documented
    hung       a command did not end in time, or a process outlived a killed command
    escaped    a file outside the folders that a command may write was written, or a forbidden address was asked
    wrong      the next undisturbed build failed, or its files differ from those of a clean build
    """

    name: str
    tried: int = 0
    succeeded: int = 0
    killed: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    crashed: list[str] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)
    escaped: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def end(self, what: str, status: int | None, output: str, *, ours: bool = True) -> None:
        """Count the end of a disturbed command; ``status`` is ``None`` if it had to be stopped.

        ``ours`` is false for CMake and SCons, which have exit codes of their own; SCons prints tracebacks without any
        code of mlfbuild if it cannot write its database.
        """
        self.tried += 1
        if status is None:
            self.hung.append(what)
        elif (
            _OUR_TRACEBACK.search(output)
            or (ours and "Traceback" in output)
            or (ours and status >= 0 and status not in DOCUMENTED)
        ):
            self.crashed.append(f"{what}: {status}: {output[-2000:]}")
        elif status == 0:
            self.succeeded += 1
        elif status < 0:
            self.killed += 1
        else:
            self.refused[status] += 1

    @property
    def passed(self) -> bool:
        """Whether nothing happened that must not happen."""
        return self.tried > 0 and not (self.crashed or self.hung or self.escaped or self.wrong)

    def text(self) -> str:
        """Return the counts on one line, then one line for each failure."""
        refused = ", ".join(f"{count} with {code}" for code, count in sorted(self.refused.items())) or "none"
        bad = [(kind, getattr(self, kind)) for kind in ("crashed", "hung", "escaped", "wrong")]
        counts = ", ".join(f"{kind} {len(found)}" for kind, found in bad)
        total = sum(self.refused.values())
        first = f"{self.name}: tried {self.tried}, succeeded {self.succeeded}, killed {self.killed}"
        lines = [f"{first}, refused {total} ({refused}), {counts}"]
        return "\n".join([*lines, *(f"  {kind}: {each}" for kind, found in bad for each in found)])
