"""Names of tensors in C, in TVM's form."""

import pytest

from mlfbuild.library.names import sanitize_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [("+_+ ", "____"), ("input++", "input__"), ("woof:1", "woof_1"), ("é", "__"), ("a\ud800b", "a___b")],
)
def test_every_byte_invalid_in_c_becomes_an_underscore(name: str, expected: str) -> None:
    assert sanitize_name(name) == expected
