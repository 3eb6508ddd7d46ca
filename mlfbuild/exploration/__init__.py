"""Explorations: settings of a model that were tried, their figures, and how the best of them is chosen.

**What.** A *point* is a change of the project file: keys of a model, or of its targets, with other values, as they
would be written there. ``usecases.explore`` builds and measures points; this room has what it finds as values, the
points that no other one beats (the *front*), the choice of one of them, and the file that keeps all of that beside the
project file.

**Rules**

1. The figure of a point is the worst of its targets, because a setting of a model is that of all targets.
2. What could not be built or measured stays in the list with its reason, and is never chosen.
3. A point that misses a limit of ``evaluate`` is never chosen by a goal; a written choice says what it wants itself.
4. The file has no times and no paths: the same exploration is the same file, which users commit.

**Example.**::

    found = read_explorations(Path("mlfbuild.explore.json"))["kws"]
    best = chosen(found, "min cycles where flash < 64 KiB and accuracy > 0.9")
    best.settings                      # {"options.memory": "smallest", "optimize": "O2"}

**What it does not do.** It compiles nothing and knows no project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.exploration.choice import best_for, check_choice, chosen
    from mlfbuild.exploration.explore_keys import AXIS, GOALS, WITHOUT, Setting, setting_path
    from mlfbuild.exploration.points import (
        ACCURACY, FIGURES, Exploration, ExploredPoint, figure_text, figure_title, setting_text, settings_text,
    )
    from mlfbuild.exploration.record import exploration_path, read_explorations, write_explorations
    from mlfbuild.exploration.text import exploration_json, exploration_text, limits_missed, ordered_points
else:
    __getattr__ = lazy_attributes(__name__)
