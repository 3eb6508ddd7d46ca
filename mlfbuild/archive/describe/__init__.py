"""What a library holds: ``describe`` as data for programs, ``describe_text`` as a page for people."""

from mlfbuild.archive.describe.facts import describe
from mlfbuild.archive.describe.text import describe_text

__all__ = ["describe", "describe_text"]
