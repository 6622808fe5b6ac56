"""The page in a browser, as a person uses it: `make test-app`."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.test_teacher import pictures

pytest.importorskip("gradio", reason="needs the extra [app]")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def serve(tmp_path):
    """Starts `f2ocl app` on a file: its process and address."""
    processes = []

    def start(file):
        command = [sys.executable, "-W", "ignore", "-m", "avalanche_f2ocl.cli.main", "app", str(file)]
        command += [] if file.exists() else ["--backbone", "micro_vit"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        processes.append(process)
        for line in process.stderr:
            if found := re.search(r"the page is at (http://\S+)", line):
                return process, found[1]
        raise AssertionError(f"f2ocl app ended with {process.wait()}")

    yield start
    for process in processes:
        process.kill()


class Page:
    """What a person does on the page."""

    def __init__(self, browser, address, folder):
        self.page, self.folder, self.others = browser.new_page(viewport={"width": 1200, "height": 900}), folder, []
        self.page.set_default_timeout(60_000)
        self.page.on("request", lambda request: self.others.append(request.url))
        self.page.goto(address)
        self.page.wait_for_selector("#teach")

    def shows(self, where, text):
        playwright.expect(self.page.locator(where)).to_contain_text(text, timeout=60_000)

    def says(self, text):
        playwright.expect(self.page.locator("#message textarea")).to_have_value(re.compile("^" + text), timeout=60_000)

    def drop(self, digit, first, last):
        """In place of the pictures that are there."""
        clear = self.page.locator("#pictures button[aria-label=Clear]")
        if clear.count():
            clear.click()
        paths = [self.folder / f"{digit}_{i}.png" for i in range(first, last)]
        for picture, path in zip(pictures(digit, first, last), paths, strict=True):
            picture.save(path)
        self.page.locator("#pictures input[type=file]").first.set_input_files(paths)
        playwright.expect(self.page.locator("#pictures .grid-container img")).to_have_count(
            last - first, timeout=60_000
        )

    def takes_for(self, name, number):
        """All of so many pictures for a class."""
        rows = "".join(rf"{i}\s+{name} [^|]*" for i in range(1, number + 1))
        self.shows("#answers", re.compile(rows))

    def teach(self, name):
        self.page.locator("#name input").fill(name)
        self.page.locator("#name input").press("Enter")
        self.page.locator("#teach").click()

    def picture(self, name):
        """Where F2OCL_SCREENSHOTS names a folder, puts a screenshot there."""
        if folder := os.environ.get("F2OCL_SCREENSHOTS"):
            self.page.wait_for_timeout(1000)
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_a_person_teaches_corrects_saves_and_starts_again(browser, serve, tmp_path):
    file = tmp_path / "digits.safetensors"
    process, address = serve(file)
    assert address.startswith("http://127.0.0.1:")
    page = Page(browser, address, tmp_path)
    page.drop(0, 0, 14)
    page.teach("zero")
    page.says("14 pictures learned as “zero”")
    page.drop(1, 0, 14)
    page.shows("#answers", "zero 100 %")  # all that is known yet
    page.teach("one")
    page.says("14 pictures learned as “one”")
    page.shows("#counts", "one")

    page.drop(0, 14, 17)
    page.takes_for("zero", 3)
    page.picture("app_known")
    page.drop(7, 0, 4)
    page.takes_for("none of these", 4)
    page.picture("app_unknown")

    page.teach("one")
    page.says("4 pictures learned as “one”")
    page.teach("seven")
    page.says("4 pictures corrected to “seven”")
    page.takes_for("seven", 4)
    page.picture("app_corrected")
    page.page.locator("#undo").click()
    page.says("Undone: 4 pictures corrected")
    page.teach("seven")
    page.says("4 pictures corrected to “seven”")

    page.page.locator("#new-name input, #new-name textarea").fill("sept")
    page.page.locator("#rename").click()
    page.says("“seven” is now “sept”")
    page.shows("#save", "Save now")
    page.page.locator("#save").click()
    page.says("Saved: ")
    with page.page.expect_download() as download:
        page.page.locator("#download").click()
    assert Path(download.value.path()).read_bytes() == file.read_bytes()
    page.page.locator("#forget").click()
    page.says("“sept” is forgotten")
    assert all(re.match(rf"{address}|data:|blob:", url) for url in page.others)  # nobody else hears of it
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143 and "is not in" in process.stderr.read()
    assert not list(tmp_path.glob("f2ocl-*"))  # no picture stays

    _, address = serve(file)
    page = Page(browser, address, tmp_path)
    page.shows("#counts", re.compile("zero.*14.*one.*14.*sept.*4", re.DOTALL))
    page.drop(7, 10, 12)
    page.takes_for("sept", 2)
    page.teach(" ")
    playwright.expect(page.page.get_by_text("Give the class a name")).to_be_visible(timeout=60_000)
