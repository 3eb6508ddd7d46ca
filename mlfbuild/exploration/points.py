"""Points of an exploration, their figures, and the points that no other one beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlfbuild.core.keys import latency_text
from mlfbuild.exploration.explore_keys import Setting

ACCURACY = "accuracy"
FIGURES: Mapping[str, str] = {
    "flash": "bytes",
    "ram": "bytes",
    "stack": "bytes",
    "instructions": "",
    "cycles": "",
    "latency": "ns",
    ACCURACY: "",
}
"""The figures of a point, with their units; ``accuracy`` is the value of the metric of ``evaluate``."""


@dataclass(frozen=True)
class ExploredPoint:
    """Settings that were tried, and what came of them."""

    settings: Mapping[str, Setting]
    """The changed keys, as in ``explore``; none for the model as it is in the project file."""
    targets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By target: bytes, instructions, cycles and nanoseconds, as far as they are known."""
    accuracy: float | None = None
    """The value of the model's metric; ``None`` if it has no test set."""
    missed: tuple[str, ...] = ()
    """The result against the limits of ``evaluate``."""
    problem: str = ""
    """Why there are no figures."""
    current: bool = False
    """Whether this is what the project file has."""
    same: tuple[Mapping[str, Setting], ...] = ()
    """Other settings that give the same code."""

    def figure(self, name: str) -> float | None:
        """Return a figure, the worst of the targets that have it; ``None`` if none has.

        ``cycles@m4`` is that of one target. A board in QEMU has no cycles, whatever the settings are.
        """
        if name == ACCURACY:
            return self.accuracy
        name, _, target = name.partition("@")
        found = [figures.get(name) for key, figures in self.targets.items() if target in ("", key)]
        return max((value for value in found if value is not None), default=None)


@dataclass(frozen=True)
class Exploration:
    """The points of one model."""

    model: str
    made_of: Mapping[str, Mapping[str, str]]
    """By target: what the model was when it was explored, as inputs by name."""
    points: tuple[ExploredPoint, ...]
    metric: str = ""
    smaller_is_better: bool = False
    """Whether a smaller value of the metric is better."""

    @property
    def measured(self) -> list[ExploredPoint]:
        """The points with figures."""
        return [point for point in self.points if not point.problem]

    @property
    def axes(self) -> list[str]:
        """The keys that were changed."""
        return list(dict.fromkeys(key for point in self.points for key in point.settings))

    @property
    def figures(self) -> list[str]:
        """The figures that all points have which could be measured."""
        points = self.measured
        return [name for name in FIGURES if points and all(point.figure(name) is not None for point in points)]

    @property
    def speed(self) -> str:
        """The figure that stands for the speed: cycles, latency if clocks differ, or else instructions."""
        clocks = any(key.endswith(".clock") for key in self.axes)
        wanted = ("latency",) if clocks else ("cycles",)
        return next((name for name in wanted if name in self.figures), "instructions")

    @property
    def front(self) -> list[ExploredPoint]:
        """The points that no other one beats in flash, RAM, speed and accuracy, the fastest first."""
        names = [name for name in ("flash", "ram", self.speed, ACCURACY) if name in self.figures]
        costs = {id(point): tuple(self.cost(point, name) for name in names) for point in self.measured}
        best = [
            point
            for point in self.measured
            if not any(_beats(costs[id(other)], costs[id(point)]) for other in self.measured)
        ]
        return sorted(best, key=lambda point: self.cost(point, self.speed))

    def cost(self, point: ExploredPoint, name: str) -> float:
        """Return a figure of ``point`` so that less is better; infinite if it is unknown."""
        value = point.figure(name)
        if value is None:
            return float("inf")
        return -value if name == ACCURACY and not self.smaller_is_better else value


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def figure_text(name: str, value: float | None) -> str:
    """Return a figure for a table: ``53,304``, ``39.871 ms`` or ``0.915``; a dash if it is unknown."""
    if value is None:
        return "-"
    if name == ACCURACY:
        return f"{value:.4g}"
    if name != "latency":
        return f"{value:,.0f}"
    return latency_text(value)


def figure_title(name: str, metric: str) -> str:
    """Return the heading of a figure; that of the accuracy is the ``metric``."""
    return {"ram": "RAM", ACCURACY: metric}.get(name, name)


def setting_text(value: Setting | None) -> str:
    """Return a value as in a project file; a dash for one that a point does not change."""
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def settings_text(settings: Mapping[str, Setting]) -> str:
    """Return settings on one line, such as ``options.memory: smallest, optimize: Os``."""
    return ", ".join(f"{key}: {setting_text(value)}" for key, value in settings.items()) or "as in the project file"
