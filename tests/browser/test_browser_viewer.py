"""The viewer, as its user meets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Keys

import armwise as aw
from tests.report.conftest import HOSTILE

from .chromium import Browser
from .viewer import viewing

pytestmark = pytest.mark.slow

RESOLUTION = 0.5
"""Pixels of the scene per pixel of the screen: there is no graphics card to help."""

WORLD = """
name = "a hand on a rail"
duration = 2.0
[[body]]
name = "arm"
kind = "articulated"
arm = "panda"
q = [0.0, 0.4, 0.0, -1.6, 0.0, 2.0, 0.0]
[[body]]
name = "box"
segment = [{ kind = "box", mass = 1.0, extents = [0.3, 0.2, 0.1] }]
position = [0.67, 0.0, 0.35]
[[constraint]]
name = "grip"
kind = "pin"
a = { body = "arm", link = "flange" }
b = { body = "box", at = [0, 0, 0.05] }
[[constraint]]
name = "rail"
kind = "line"
point = { body = "box", at = [0, 0, -0.05] }
through = [0.67, 0.0, 0.3]
along = [0, 1, 0]
[[force]]
name = "spring"
kind = "spring"
a = { body = "box" }
b = [0.9, 0.4, 0.5]
stiffness = 60.0
damping = 3.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A recording of a Panda that is a tenth heavier than described, two estimates."""
    place = tmp_path_factory.mktemp("panda")
    arm = aw.load_arm("panda")
    t = np.arange(0.0, 8.0, 0.01)[:, None]
    w, phase = np.linspace(0.7, 1.9, 7), np.arange(7.0)
    middle = np.array([0.0, 0.3, 0.0, -1.8, 0.0, 1.8, 0.0])
    q = middle + 0.6 * np.sin(w * t + phase)
    qd, qdd = 0.6 * w * np.cos(w * t + phase), -0.6 * w**2 * np.sin(w * t + phase)
    heavy = arm.with_parameters(1.1 * arm.parameters)
    tau = aw.Dynamics(heavy).inverse_dynamics(q, qd, qdd)
    recording = aw.Recording.from_arrays(t[:, 0], q=q, qd=qd, tau=tau)
    aw.write_recording(recording, place / "run.csv")
    samples = aw.Samples(t[:, 0], q, qd, qdd, tau)
    plain = aw.identify(arm, samples, aw.WeightedLeastSquares(), friction="linear")
    aw.write_estimate(plain, place / "plain.json")
    tied = aw.identify(arm, samples, friction="linear")
    aw.write_estimate(tied, place / "tied.json")
    (place / "world.toml").write_text(WORLD)
    return place


def label(text: str, kind: str) -> str:
    """The XPath of the control beside a label."""
    field = f"input[@type='{kind}']"
    words = f"//*[normalize-space(.)='{text}']"
    return f"{words}/ancestor-or-self::*[.//{field}][1]//{field}"


def open_viewer(browser: Browser, address: str) -> None:
    """Open it and wait until the scene is drawn; away with the software warning."""
    browser.open(f"{address}/?fixedDpr={RESOLUTION}")
    browser.until(lambda: "[rad]" in browser.run("document.body.innerText"))
    browser.until(lambda: colors(browser) > 50)
    for button in browser.driver.find_elements(
        "css selector", ".mantine-Notification-closeButton"
    ):
        button.click()


def colors(browser: Browser) -> int:
    """How many colours there are in the picture of the scene."""
    return len(np.unique(scene_pixels(browser).reshape(-1, 3), axis=0))


def scene_pixels(browser: Browser) -> np.ndarray:
    """The middle of the screen, where the arm stands."""
    from PIL import Image

    with Image.open(browser.shoot("now")) as image:
        pixels = np.asarray(image.convert("RGB"))
    rows, columns = pixels.shape[:2]
    return pixels[rows // 4 :, columns // 3 : 2 * columns // 3].astype(int)


def test_a_recording_plays_beside_its_torques(browser: Browser, folder: Path):
    words = ["panda", str(folder / "run.csv")]
    for estimate in ("plain.json", "tied.json"):
        words += ["--estimate", str(folder / estimate)]
    with viewing(*words) as address:
        open_viewer(browser, address)
        text = browser.run("document.body.innerText")
        assert "armwise · panda" in text
        assert all(f"joint_{k} [rad]" in text for k in range(1, 8))
        assert "tied: " in text
        assert len(browser.driver.find_elements("css selector", ".uplot")) == 7
        browser.shoot("viewer-recording")
        assert _plotted(browser) == 7

        time = browser.find(label("time [s]", "text"))
        assert float(time.get_attribute("value")) == 0.0
        browser.find("//button[contains(., 'Play')]").click()
        browser.until(lambda: float(time.get_attribute("value")) > 0.5)
        browser.find("//button[contains(., 'Pause')]").click()

        before = scene_pixels(browser)
        browser.find(label("inertia, tied", "checkbox")).click()
        browser.until(lambda: _turned_orange(before, scene_pixels(browser)))
        browser.shoot("viewer-inertia")
        assert _plotted(browser) == 7
        assert browser.errors() == []
        assert _foreign(browser, address) == []


def test_a_world_shows_what_holds_it(browser: Browser, folder: Path):
    with viewing("panda", "--world", str(folder / "world.toml")) as address:
        open_viewer(browser, address)
        assert "The longest force arrows are" in browser.run("document.body.innerText")
        browser.shoot("viewer-world")
        held = _reds(scene_pixels(browser))
        browser.find(label("constraints and forces", "checkbox")).click()
        browser.until(lambda: _reds(scene_pixels(browser)) < held - 50)
        assert browser.errors() == []


def test_sliders_move_an_arm_whose_names_mean_harm(browser: Browser, tmp_path: Path):
    arm = aw.load_arm("two_link_uno")
    joints = arm.joints[0], replace(arm.joints[1], name=HOSTILE)
    no_body = aw.arms.InertialParameters([1, 0, 0, 0, 1, 0, 0, 1, 0, 9])
    links = arm.links[0], replace(arm.links[1], name=HOSTILE, inertia=no_body)
    named = replace(arm, name=HOSTILE, joints=joints, links=links)
    aw.save_arm(named, tmp_path / "arm.urdf")
    with viewing(str(tmp_path / "arm.urdf")) as address:
        open_viewer(browser, address)
        text = browser.run("document.body.innerText")
        assert f"{HOSTILE} [rad]" in text
        assert f"{HOSTILE} (described) is not physically realisable" in text
        before = scene_pixels(browser)
        field = browser.find(label("joint_1 [rad]", "text"))
        field.send_keys(Keys.CONTROL, "a", Keys.NULL, "-0.9", Keys.ENTER)
        browser.until(lambda: np.abs(scene_pixels(browser) - before).max() > 60)
        assert browser.errors() == []


def _plotted(browser: Browser) -> int:
    """How many plots have a scale, which needs numbers to be plotted."""
    return browser.run(
        "Object.values(window.__viserTestpoints.uplots)"
        ".filter(u => Number.isFinite(u.chart.scales.y.min)).length"
    )


def _turned_orange(before: np.ndarray, now: np.ndarray) -> bool:
    return bool(np.mean((now - before)[..., 2] < -40) > 0.005)


def _reds(pixels: np.ndarray) -> int:
    red, green, blue = np.moveaxis(pixels, -1, 0)
    return int(np.count_nonzero((red > 150) & (green < 90) & (blue < 90)))


def _foreign(browser: Browser, address: str) -> list[str]:
    own = (address, address.replace("http", "ws"))
    return [url for url in browser.requests() if not url.startswith(own)]
