"""Python packages of this environment that damage each other."""

from __future__ import annotations

from importlib import metadata


def conflicting_packages() -> list[str]:
    """Return a line for each conflict, with the command that ends it.

    labgrid brings a fork of pyserial as ``pyserial-labgrid``. Both install the package ``serial`` in the same folder:
    whichever came last has overwritten files of the other, and removing one of them removes files of both.
    """
    if not (_is_installed("pyserial") and _is_installed("pyserial-labgrid")):
        return []
    # labgrid needs its own fork, so that one stays if labgrid is installed.
    remove, keep = ("pyserial", "pyserial-labgrid") if _is_installed("labgrid") else ("pyserial-labgrid", "pyserial")
    repair = f"pip uninstall --yes {remove} && pip install --force-reinstall --no-deps {keep}"
    return [f"pyserial and pyserial-labgrid overwrite each other: {repair}"]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
