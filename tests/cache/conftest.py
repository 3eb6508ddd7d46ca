import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core import sha256

KEY = sha256(b"the inputs of an action")
OUTPUTS = {"kws.tar": b"archive" * 1000, "report/sizes.json": b"{}", "empty.txt": b""}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the machine: proxies, passwords and tokens."""
    for name in ("CI", "MLFBUILD_CACHE", "MLFBUILD_CACHE_TOKEN", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def nginx(tool: Callable[[str], str]) -> str:
    """The path of nginx, which Debian installs for root only; its package nginx has ngx_http_dav_module."""
    tool("openssl")  # makes the certificate
    return shutil.which("nginx", path="/usr/sbin") or tool("nginx")


class Notices(list[str]):
    """What a cache reported."""

    def __call__(self, text: str) -> None:
        self.append(text)
