"""What the code of a module needs from outside of its archive, said by the archive or recognised in the code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wish:
    """A library that code needs, by the short name that archive and project file meet at."""

    name: str
    """In lower case, with hyphens: ``cmsis-nn``."""
    version: str
    """As the archive has it, a tag or a release; empty where nobody knows which one the code was made for."""
    url: str = ""
    url_type: str = ""
    origin: str = ""
    """What messages call the one who wants it: a model, or an archive."""
    headers: tuple[str, ...] = ()
    """What the code includes of it, where that is how it was recognised; empty where the metadata names it."""

    @property
    def declared(self) -> bool:
        """Whether the archive's metadata says so itself."""
        return not self.headers
