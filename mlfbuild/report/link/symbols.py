"""Compare the symbols of the files that an image of any build was linked from; its linker map lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mlfbuild.core import CheckFailedError, Diagnostic, listed
from mlfbuild.jobs import COMPARED, check_models
from mlfbuild.report.sizes.linker_map import InputSection, LinkerMap
from mlfbuild.report.sizes.owners import is_c_library, module_of


def conflict_faults(linked: LinkerMap, models: Mapping[str, str]) -> tuple[list[Diagnostic], list[str]]:
    """Return the global symbols that models share with each other or with the firmware, and what was not compared.

    ``models`` has the name of the model by the name of each of its modules. Raises as ``check_models``.
    """
    compiled: dict[str, list[Path]] = {}
    firmware: list[Path] = []
    missing: list[str] = []
    for name, (part, path) in zip(linked.files, linked.inputs(), strict=True):
        model = _model(part, models)
        if Path(name).suffix not in COMPARED or is_c_library(part.archive):
            continue
        if path is None:
            missing.append(name)
        elif model is not None:
            compiled.setdefault(model, []).append(path)
        else:
            firmware.append(path)
    notes = [f"symbols of {listed(missing)}: the map lists {_them(missing)}"] if missing else []
    try:
        check_models(compiled, "", firmware)
    except CheckFailedError as mistake:
        return [Diagnostic(mistake.code, place="symbols", reason=mistake.reason, hint=mistake.hint)], notes
    return [], notes


def _model(part: InputSection, models: Mapping[str, str]) -> str | None:
    """Return the model of a file; of a library, also if the firmware defines all that it could add to the image."""
    module = module_of(part)
    own = part.archive and module and not module.startswith("dep_")
    return models.get(module, module if own else None)


def _them(files: Sequence[str]) -> str:
    return "them, but there are no such files" if len(files) > 1 else "it, but there is no such file"
