"""Where the Chromium is that the tests of pages look with.

`.nox/tests_pages/bin/python tests/tooling/fakes/browser.py PAGE.html docs/images/report.png` renews README's
picture; it keeps in the file what wrote the page, and a test holds that against the version of the tool.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_ON_MACOS = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def find_browser() -> str | None:
    """Return Chromium's or Chrome's program, MPS_BUILD_TEST_BROWSER first; None where there is none."""
    given = os.environ.get("MPS_BUILD_TEST_BROWSER")
    found = given or next((path for name in _NAMES if (path := shutil.which(name))), None)
    return found or (str(_ON_MACOS) if _ON_MACOS.is_file() else None)


def why_not() -> str | None:
    """Return what a test of a page lacks here, None where it can run."""
    if find_spec("playwright") is None:
        return "needs playwright and a browser: nox -s tests -- --tier pages"
    return None if find_browser() else "needs Chromium or Chrome (apt install chromium, or MPS_BUILD_TEST_BROWSER=PATH)"


def photograph(page: Path, picture: Path) -> None:
    """Write the top of a page as a picture, with the page's own footer in it as text."""
    from PIL import Image, PngImagePlugin
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="light")
        view.goto(page.as_uri())
        view.screenshot(path=picture)
        said = PngImagePlugin.PngInfo()
        said.add_text("Comment", view.locator("footer").inner_text())
        browser.close()
    with Image.open(picture) as image:
        image.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(picture, optimize=True, pnginfo=said)


if __name__ == "__main__":
    photograph(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
