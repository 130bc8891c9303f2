"""Loads as drivers take them: order, frame, units, rounding, refusal."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import armwise as aw
from armwise.arms import InertialParameters
from armwise.errors import ArgumentError, NotPhysical
from armwise.loads import LoadEstimate, driver_text

TURN = Rotation.from_euler("ZYX", [25.0, -40.0, 70.0], degrees=True).as_matrix()
INERTIA = TURN @ np.diag([0.004, 0.006, 0.009]) @ TURN.T
CENTER = np.array([0.0213456, -0.0107891, 0.0612345])


def _load(mass: float = 2.8051234, frame: str = "flange", scale: float = 1.0):
    body = InertialParameters.from_center_of_mass(mass, CENTER, scale * INERTIA)
    std = np.array([0.01, *[0.002] * 3, *[1e-4] * 6])
    return LoadEstimate(frame, body, np.diag(std**2), np.full(10, 100.0))


def _numbers(text: str) -> np.ndarray:
    return np.array([float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)])


def test_universal_robots_take_mass_centre_and_six_inertias() -> None:
    text = driver_text(_load(), "ur")
    assert text.startswith("set_target_payload(2.805, [")
    numbers = _numbers(text)
    assert numbers[1:4] == pytest.approx(CENTER, abs=5e-4)
    order = [INERTIA[i] for i in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    assert numbers[4:] == pytest.approx(order, abs=5e-5)


def test_franka_takes_columns() -> None:
    table = json.loads(driver_text(_load(), "franka"))
    assert list(table) == ["load_mass", "F_x_Cload", "load_inertia"]
    inertia = np.array(table["load_inertia"]).reshape(3, 3, order="F")
    assert inertia == pytest.approx(INERTIA, abs=5e-5)
    assert max(len(str(x)) for x in [*table["F_x_Cload"], *table["load_inertia"]]) < 12


def test_kuka_takes_millimetres_and_principal_axes() -> None:
    text = driver_text(_load(), "kuka")
    assert re.fullmatch(
        r"\{M .*,CM \{X .*,Y .*,Z .*,A .*,B .*,C .*\},J \{X .*\}\}", text
    )
    mass, x, y, z, a, b, c, *moments = _numbers(text)
    assert mass == pytest.approx(2.805)
    assert [x, y, z] == pytest.approx(1e3 * CENTER, abs=0.5)
    # The controller's reading of A, B, C gives the inertia back.
    axes = Rotation.from_euler("ZYX", [a, b, c], degrees=True).as_matrix()
    assert axes @ np.diag(moments) @ axes.T == pytest.approx(INERTIA, abs=1e-4)


def test_ros_takes_a_set_payload_request() -> None:
    text = driver_text(_load(), "ros2")
    lines = [line.split(":") for line in text.splitlines() if line[0] != "#"]
    # Keys of ur_msgs/srv/SetPayload, nested by two blanks.
    assert [key for key, _ in lines] == [
        "mass", "center_of_gravity", "  x", "  y", "  z",
    ]  # fmt: skip
    assert [float(x) for key, x in lines if key[0] == " "] == pytest.approx(
        CENTER, abs=5e-4
    )


def test_numbers_stay_within_the_interval() -> None:
    load = _load()
    rounded = _numbers(driver_text(load, "ur"))
    assert abs(rounded[0] - load.mass) < 0.1 * load.std.mass
    assert np.all(np.abs(rounded[1:4] - CENTER) < 0.1 * load.std.center_of_mass)


def test_the_load_goes_to_the_flange() -> None:
    arm = aw.load_arm("ur10")
    link = arm.links[-1].name
    T = arm.find_frame("flange")[1]
    at_link = _load(frame=link)
    center = _numbers(driver_text(at_link, "ur", arm))[1:4]
    expected = T[:3, :3].T @ (CENTER - T[:3, 3])
    assert center == pytest.approx(expected, abs=1e-3)


def test_impossible_bodies_and_unknown_drivers_are_refused() -> None:
    for driver in ("ur", "franka", "kuka", "ros2"):
        with pytest.raises(NotPhysical, match="not exported"):
            driver_text(_load(mass=-1.0), driver)
    with pytest.raises(NotPhysical):
        driver_text(_load(scale=-1.0), "kuka")
    with pytest.raises(ArgumentError, match="none of ur, franka"):
        driver_text(_load(), "abb")
