"""Split an archive into one for each module, the inverse of ``merge``.

``archives`` has the steps: ``with_own_registries`` gives each module a table with only its functions again, and
``files_by_module`` finds the files of no module that a module needs, such as ``runtime/`` and bundles::

    for name, library in split(open_archive(path), str(path)).items():
        write_archive(library, folder / f"{name}.tar")

A file that belongs to several modules is copied. What ``merge`` renamed to avoid conflicts keeps its new name, because
the old one is not recorded, except for the folders of kernel headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.split.archives import split
else:
    __getattr__ = lazy_attributes(__name__)
