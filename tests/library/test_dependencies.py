"""Problems of external dependencies name the key."""

from dataclasses import replace

import pytest

from mlfbuild.library import ExternalDependency
from mlfbuild.library.dependency_problems import problems

CRT = ExternalDependency("tvm_standalone_crt", "./runtime", "mlf_path", "0.14.0")


@pytest.mark.parametrize(
    "dependency",
    [
        CRT,
        replace(CRT, version_spec="0.14.dev273"),
        ExternalDependency("cmsis-nn", "https://github.com/ARM-software/CMSIS-NN.git", "git", "v7.0.0"),
        ExternalDependency("cmsis-nn", "git@github.com:ARM-software/CMSIS-NN.git", "git", "main"),
        ExternalDependency("cmsis-nn", "../CMSIS-NN", "git", "0123abc"),
        ExternalDependency("driver", "https://example.org/driver.tar.gz", "url"),
        ExternalDependency("sdk", "/opt/sdk", "path"),
        ExternalDependency("sdk", "../sdk", "path", "1.2"),
    ],
    ids=lambda dependency: f"{dependency.url_type} {dependency.url}",
)
def test_a_sound_dependency_has_no_problems(dependency: ExternalDependency) -> None:
    assert list(problems(dependency)) == []


@pytest.mark.parametrize(
    ("dependency", "expected"),
    [
        (replace(CRT, short_name=" "), ["short_name is empty"]),
        (replace(CRT, url=""), ["url is empty"]),
        (replace(CRT, url_type=""), ["url_type is empty"]),
        (replace(CRT, url_type="svn"), ["url_type 'svn' is none of path, url, git, mlf_path"]),
        (replace(CRT, url_type="Git"), ["url_type 'Git' is none of path, url, git, mlf_path"]),
        (replace(CRT, short_name="a\nb"), ["a value holds control characters"]),
        (replace(CRT, url="/runtime"), ["url '/runtime' is not a folder of the archive, such as ./runtime"]),
        (replace(CRT, url="../runtime"), ["url '../runtime' is not a folder of the archive, such as ./runtime"]),
        (replace(CRT, url="a\\..\\b"), ["url 'a\\\\..\\\\b' is not a folder of the archive, such as ./runtime"]),
        (replace(CRT, url="https://a.b"), ["url 'https://a.b' is not a folder of the archive, such as ./runtime"]),
        (ExternalDependency("nn", "https://a.b/nn.git", "git"),
         ["version_spec is missing, and url_type git needs a branch, a tag or a commit"]),
        (ExternalDependency("nn", "a.b/nn.zip", "url"), ["url 'a.b/nn.zip' has no scheme such as https://"]),
        (ExternalDependency("", "", "", ""), ["short_name is empty", "url is empty", "url_type is empty"]),
    ],
    ids=str,
)  # fmt: skip
def test_problems_name_the_key(dependency: ExternalDependency, expected: list[str]) -> None:
    assert list(problems(dependency)) == expected
