"""Regenerate the pictures in docs/images: a report of examples/digits in Debian's Chromium, and a terminal session.

    make screenshots

Builds the example twice, the second time with a network of 64 filters instead of 40. This network is not trained,
because sizes and instructions do not depend on the weights.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.text import Text
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "examples"))

from training.layers import Conv, Dense, DepthwiseConv, MaxPool
from training.network import Network
from training.quantize import Range, int8_model

from mlfbuild.datasets import write_tflite

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
BUDGETS = "    budget: {flash: 24 KiB, ram: 8 KiB}\n"


def larger_network() -> bytes:
    """Return the network of the example with 64 filters, not trained."""
    random = np.random.default_rng(1)
    network = Network((
        Conv("conv", random, inputs=1, outputs=16, size=3),
        DepthwiseConv("depthwise", random, channels=16, size=3),
        Conv("pointwise", random, inputs=16, outputs=64, size=1),
        MaxPool("pool"),
        Dense("scores", random, inputs=4 * 4 * 64, outputs=10, relu=False),
    ))  # fmt: skip
    pixels = random.integers(0, 17, (32, 8, 8, 1)).astype(np.float32)
    steps = Range(1 / 8, -128)
    return write_tflite(int8_model(network, pixels, steps, description="digits", names=("image", "probabilities")))


def reports(folder: Path) -> tuple[Path, Path]:
    """Build the example with both networks in ``folder``; return the pages of the first network and of the changes."""
    project = folder / "digits"
    shutil.copytree(ROOT / "examples/digits", project, ignore=shutil.ignore_patterns("build", ".scons*"))
    settings = project / "mlfbuild.yml"
    text = settings.read_text().replace("    source:", f"{BUDGETS}    source:")
    text = text.replace("models: [digits]}", "models: [digits], budget: {flash: 96 KiB, ram: 32 KiB}}")
    settings.write_text(text.replace("board: mps2-an386", "board: mps2-an386, mcu: stm32l4r5"))
    command = [sys.executable, "-m", "mlfbuild", "report", "-q", "-C", str(project), "--target", "m4", "--profile"]
    pages = folder / "report.html", folder / "changes.html"
    before = folder / "report.json"
    subprocess.run([*command, "-o", str(pages[0]), "-o", str(before)], check=True, stdout=subprocess.DEVNULL)
    (project / "models/digits.tflite").write_bytes(larger_network())
    subprocess.run([*command, "--compare", str(before), "-o", str(pages[1])], check=True, stdout=subprocess.DEVNULL)
    return pages


CHANGES = {
    "Add the digits": ("", ""),
    "Use the smallest arena": ("    vectors:", "    options: {memory: smallest}\n    vectors:"),
    "Optimise for size": ("    vectors:", "    optimize: Os\n    vectors:"),
    "Use the larger network": ("", ""),
}
"""The subject of each commit of the fleet, and what it replaces in the project file."""


def fleet(folder: Path) -> Path:
    """Commit real reports of the example after each of ``CHANGES``, and return the page of all of them."""
    project = folder / "fleet"
    shutil.copytree(ROOT / "examples/digits", project, ignore=shutil.ignore_patterns("build", ".scons*"))
    settings = project / "mlfbuild.yml"
    text = settings.read_text().replace("    source:", f"{BUDGETS}    source:", 1)
    settings.write_text(text.replace("board: mps2-an386", "board: mps2-an386, mcu: stm32l4r5"))
    for name, words in {"init": ["-q", "-b", "main"], "config": ["user.name", "A"]}.items():
        subprocess.run(["git", name, *words], cwd=project, check=True)
    mlfbuild = [sys.executable, "-m", "mlfbuild"]
    for day, (subject, (old, new)) in enumerate(CHANGES.items(), start=1):
        settings.write_text(settings.read_text().replace(old, new, 1))
        if "larger" in subject:
            (project / "models/digits.tflite").write_bytes(larger_network())
        else:
            subprocess.run([*mlfbuild, "verify", "-q"], cwd=project, check=True)
        subprocess.run([*mlfbuild, "report", "-q", "--profile", "-o", "reports/digits.json"], cwd=project, check=True)
        subprocess.run(["git", "add", "mlfbuild.yml", "models", "reports"], cwd=project, check=True)
        date = {"GIT_COMMITTER_DATE": f"2026-03-{4 * day:02}T12:00:00Z"}
        commit = ["git", "-c", "user.email=a@example.com", "commit", "-q", "-m", subject]
        subprocess.run(commit, cwd=project, check=True, env={**os.environ, **date})
    page = folder / "fleet.html"
    subprocess.run([*mlfbuild, "fleet", "report", "--git", "HEAD", "-o", str(page)], cwd=project, check=True)
    return page


SESSION = (
    "mlfbuild init my-firmware -q --model digits.tflite --vectors digits.npz",
    "cd my-firmware",
    "mlfbuild build",
    "mlfbuild verify",
    "mlfbuild report | head -n 10",
    "mlfbuild profile",
)
"""The commands of the recorded session, run as a reader would type them; together they fit on one screen."""
SESSION_WIDTH = 96
TERMINAL = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""
"""rich's template without the fonts that it loads from the network."""


def session(folder: Path) -> None:
    """Run the commands of ``SESSION`` and write them with what they print to docs/images/session.svg."""
    for file in ("models/digits.tflite", "tests/digits.npz"):
        shutil.copy(ROOT / "examples/digits" / file, folder)
    console = Console(record=True, width=SESSION_WIDTH, file=io.StringIO(), force_terminal=True)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "FORCE_COLOR": "1"}
    for command in SESSION:
        console.print(f"$ {command}", style="bold", highlight=False)
        if command.startswith("cd "):
            folder = folder / command.removeprefix("cd ")
            continue
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.stdout:
            console.print(Text.from_ansi(done.stdout.rstrip()), soft_wrap=False)
    svg = console.export_svg(title="mlfbuild", code_format=TERMINAL, unique_id="session")
    (IMAGES / "session.svg").write_text(svg, encoding="utf-8")


class Camera:
    """Chromium, used to take pictures of parts of pages."""

    def __init__(self, profile: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "chromium"
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))

    def take(self, page: Path, name: str, top: str, bottom: str, *, width: int = 1280, dark: bool = False) -> None:
        """Write ``name`` of docs/images: the part of ``page`` from the element ``top`` to ``bottom``."""
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1.5 if width > 600 else 1, "mobile": width < 600}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(page.as_uri())
        edges = self.driver.execute_script(
            "return [...arguments].map(s => document.querySelector(s).getBoundingClientRect().toJSON())", top, bottom
        )
        start = max(0, edges[0]["top"] - 24)
        clip = {"x": 0, "y": start, "width": width, "height": edges[1]["bottom"] + 24 - start, "scale": 1}
        picture = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        data = base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", picture)["data"])
        (IMAGES / name).write_bytes(data)
        print(f"{name}: {len(data):,} bytes")  # noqa: T201 - the script's result


def main() -> None:
    """Take the pictures; with the argument ``session``, only record the session."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session(Path(folder))
        if sys.argv[1:] == ["session"]:
            return
        report, changes = reports(Path(folder))
        camera = Camera(f"{folder}/profile")
        try:
            camera.take(report, "report-sizes.png", ".top", ".sizes")
            camera.take(report, "report-arena.png", ".timeline", ".timeline", dark=True)
            camera.take(report, "report-network.png", ".timeline", ".operators", dark=True)
            camera.take(changes, "report-changes.png", ".top", ".differences")
            page = fleet(Path(folder))
            camera.take(page, "fleet.png", ".top", "#images .wide")
            camera.take(page, "fleet-image.png", "article.image", "article .gauges", dark=True)
        finally:
            camera.driver.quit()


if __name__ == "__main__":
    main()
