"""Features of the SCons version in tests."""

import pytest
import SCons

_VERSION = tuple(int(part) for part in SCons.__version__.split(".")[:2])

takes_deques = pytest.mark.skipif(_VERSION < (4, 5), reason="SCons 4.4 itself reads no deque in CPPDEFINES or CPPPATH")
