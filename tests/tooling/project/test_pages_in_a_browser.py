"""Every page at its real size in Chromium, at a desk and on a phone, light and dark: `nox -s tests -- --tier pages`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import find_browser
from pages_of_real_size import verification, write_pages

pytestmark = pytest.mark.browser

FAULTS = (Path(__file__).parents[1] / "fixtures" / "page_faults.js").read_text(encoding="utf-8")
CASES = len(verification().cases)  # those of --quick
SCREENS = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        return write_pages(folder)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_every_page_can_be_read(browser: Any, pages: list[Path], screen: str, scheme: str) -> None:
    faults: dict[str, list[str]] = {}
    requested = {}
    view = browser.new_page(viewport=SCREENS[screen], color_scheme=scheme)
    refused: list[str] = []
    view.on("console", lambda message: refused.append(message.text) if "Content Security" in message.text else None)
    for path in pages:
        if screen == "phone" and path.stem.endswith("-picture"):
            continue  # an image file of its own, which a phone zooms
        name = str(path.relative_to(pages[0].parent))
        view.goto(path.as_uri())
        found = view.evaluate(FAULTS)
        requested[name] = found["texts"]
        if found["faults"] or refused:
            faults[name] = [*found["faults"], *refused]
        refused.clear()
    view.close()

    assert len(requested) == (14 if screen == "desk" else 12)
    assert min(requested.values()) > 0
    shown = "\n".join(f"{name}: {len(each)} faults\n  " + "\n  ".join(each[:8]) for name, each in faults.items())
    assert not faults, f"\n{shown}"


def test_what_is_not_a_pages_own_is_refused_by_its_policy(browser: Any, pages: list[Path]) -> None:
    ran = {}
    for path in (path for path in pages if not path.stem.endswith("-picture")):
        view = browser.new_page(viewport=SCREENS["desk"])
        view.goto(path.as_uri())
        view.evaluate("document.body.insertAdjacentHTML('beforeend', '<p id=own-look style=\"position:fixed\">x</p>')")
        view.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
        ran[path.name] = view.evaluate("[window.ran, getComputedStyle(document.getElementById('own-look')).position]")
        view.close()

    assert {tuple(each) for each in ran.values()} == {(None, "static")}, ran


def test_a_long_table_is_folded_and_its_filter_asks_every_row(browser: Any, pages: list[Path]) -> None:
    view = browser.new_page(viewport=SCREENS["desk"])
    view.goto(next(path for path in pages if path.stem == "verify_mps").as_uri())
    table = view.locator("#cases")
    rows = table.locator("tbody tr")
    visible = rows.filter(visible=True)

    whole, folded = rows.count(), visible.count()
    view.locator("section", has=table).get_by_placeholder("filter by words").fill("special_NDTRI chained")
    filtered = visible.all_text_contents()
    view.locator("section", has=table).get_by_placeholder("filter by words").fill("")
    view.locator("section", has=table).get_by_role("button", name=f"show all {CASES}").click()

    assert whole == CASES
    assert 4 <= folded <= 25
    assert filtered
    assert all("special_ndtri" in each and "chained" in each for each in filtered)
    assert visible.count() == whole
    view.close()


def test_a_search_in_the_page_without_scripts_finds_every_row(browser: Any, pages: list[Path]) -> None:
    context = browser.new_context(java_script_enabled=False, viewport=SCREENS["desk"])
    view = context.new_page()
    view.goto(next(path for path in pages if path.stem == "verify_mps").as_uri())

    assert view.locator("#cases tbody tr").filter(visible=True).count() == CASES
    context.close()
