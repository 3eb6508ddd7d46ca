"""How a step tells a driver what it is doing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """What drivers hand in to watch long work; tasks overlap when jobs run in parallel."""

    def start(self, task: str) -> None:
        """``task`` ("compile kws for m55") begins."""

    def finish(self, task: str, result: str) -> None:
        """``task`` ended well; ``result`` tells what came of it ("61 KiB", "up to date")."""


class Silent:
    """Watches and says nothing."""

    def start(self, task: str) -> None:
        """Do nothing."""

    def finish(self, task: str, result: str) -> None:
        """Do nothing."""
