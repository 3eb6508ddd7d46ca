"""SPDX expressions, other texts, and the licence of generated code."""

import pytest

from mlfbuild.report.sbom.licenses import of_generated_code, references, spdx_expression


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("Apache-2.0", "Apache-2.0"),
        ("mit or apache-2.0", "MIT OR Apache-2.0"),
        ("GPL-2.0-only WITH Classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("LicenseRef-Acme AND MIT", "LicenseRef-Acme AND MIT"),
    ],
)
def test_expressions(text: str, expression: str) -> None:
    assert spdx_expression(text) == expression


@pytest.mark.parametrize(
    "text", ["", "()", "MIT AND", "Apache 2.0", "Apache License. Version 2.0", "NOASSERTION", "GPLv2", "(" * 5000]
)
def test_texts_that_are_not_expressions(text: str) -> None:
    assert spdx_expression(text) is None


def test_names_that_are_not_in_the_spdx_list() -> None:
    assert references("MIT AND LicenseRef-B AND (LicenseRef-A OR LicenseRef-B)") == ["LicenseRef-A", "LicenseRef-B"]


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("MIT", "Apache-2.0 AND MIT"),
        ("Apache-2.0", "Apache-2.0"),
        ("MIT OR CC0-1.0", "Apache-2.0 AND (MIT OR CC0-1.0)"),
        ("", ""),
        ("ask Bob", ""),
    ],
)
def test_code_has_the_licences_of_model_and_generator(model: str, code: str) -> None:
    assert of_generated_code(model) == code
