"""Addresses without secrets and machine paths, and package URLs."""

import pytest

from mlfbuild.report.sbom import origins


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("https://github.com/ARM-software/CMSIS-NN", "https://github.com/ARM-software/CMSIS-NN"),
        ("https://me:secret@git.example:8443/a/b.git?token=x#y", "https://git.example:8443/a/b.git"),
        ("git@github.com:acme/nn.git", "ssh://github.com/acme/nn.git"),
        ("ssh://git@git.example/a", "ssh://git.example/a"),
        ("file:///home/ann/nn", ""),
        ("../CMSIS-NN", ""),
        ("/srv/nn", ""),
        ("https://[broken/a", ""),
        ("https://git.example:port/a", ""),
    ],
)
def test_public_addresses(address: str, public: str) -> None:
    assert origins.public_address(address) == public


@pytest.mark.parametrize(
    ("address", "purl"),
    [
        ("https://github.com/ARM-software/CMSIS-NN", "pkg:github/arm-software/cmsis-nn@v7.0.0"),
        ("git@github.com:acme/NN.git", "pkg:github/acme/nn@v7.0.0"),
        ("https://bitbucket.org/acme/nn", "pkg:bitbucket/acme/nn@v7.0.0"),
        ("https://git.example/a/b/nn", "pkg:generic/cmsis-nn@v7.0.0?vcs_url=git%2Bhttps://git.example/a/b/nn%40c0ffee"),
        ("../nn", "pkg:generic/cmsis-nn@v7.0.0"),
    ],
)
def test_package_urls_of_repositories(address: str, purl: str) -> None:
    assert origins.of_repository("cmsis-nn", address, "v7.0.0", "c0ffee") == purl


def test_other_package_urls() -> None:
    assert origins.pypi("mlfbuild", "0.1.0", "mlfbuild/runtime") == "pkg:pypi/mlfbuild@0.1.0#mlfbuild/runtime"
    assert origins.generic("kws", checksum="sha256:ab", vcs_url="") == "pkg:generic/kws?checksum=sha256:ab"
    assert origins.with_version("pkg:github/a/b", "1") == "pkg:github/a/b@1"
    assert origins.with_version("pkg:github/a/b", "") == "pkg:github/a/b"
