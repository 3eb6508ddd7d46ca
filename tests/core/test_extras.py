"""Optional packages: messages name the requirements of pyproject.toml."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from mlfbuild.core import ToolNotFoundError, require_extra
from mlfbuild.core.extras import EXTRAS

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize("extra", EXTRAS)
def test_requirements_are_those_of_pyproject(extra: str) -> None:
    assert f"\n{extra} = {json.dumps(list(EXTRAS[extra].values()))}\n" in PYPROJECT.read_text()


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_package_is_named_with_its_versions(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_extra(extra, "place", "reading it")
    for module in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ToolNotFoundError) as caught:
        require_extra(extra, "place", "reading it")
    assert (caught.value.code, caught.value.place, caught.value.exit_code) == ("extra-not-installed", "place", 3)
    pip, install, *packages = shlex.split(caught.value.hint)
    assert (pip, install, packages) == ("pip", "install", list(EXTRAS[extra].values()))
    assert all(Requirement(package).specifier for package in packages)
    assert "mlfbuild" not in caught.value.message
