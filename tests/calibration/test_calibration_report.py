"""Reports on calibrations."""

from __future__ import annotations

import json

import numpy as np
import pytest

from armwise.calibration import (
    AdaptiveCalibration,
    Calibration,
    Flaws,
    calibrate_recording,
)
from armwise.calibration.gravity_expansion import CosineFit
from armwise.calibration.sensor_control import Trace
from armwise.errors import ArgumentError
from armwise.report.calibration import (
    make_calibration_report,
    write_calibration_report,
)
from tests.calibration.hands import ALPHA, recorded, structure


@pytest.fixture(scope="module")
def found():
    known = structure()
    aware = type(known)(known.arm, known.known, known.positive, flaws=Flaws(bend=0.01))
    return calibrate_recording(aware, recorded(), alpha=ALPHA)


def test_a_page_shows_gravity_and_torques(found, tmp_path):
    page = write_calibration_report(found, tmp_path / "r.html").read_text()
    assert "Gravity, measured and fitted" in page
    assert "joint_2.bow" in page
    assert list(tmp_path.iterdir()) == [tmp_path / "r.html"]


def test_machines_read_the_same(found, tmp_path):
    path = write_calibration_report(found, tmp_path / "r.json")
    read = json.loads(path.read_text())
    joints = read["sensors"]["joints"]
    assert joints[0]["gain α [rad/unit]"] == pytest.approx(found.alpha[0])
    assert read["torques"]["torque_std"]["joint_1"] > 0.0


def test_measured_gravity_is_fitted_gravity(found):
    shown = found.evidence
    left = (shown.measured_gravity - shown.gravity)[shown.is_used]
    assert np.std(left) < 0.005 * np.ptp(shown.gravity)
    assert np.abs(shown.q).max() < np.pi


def test_values_from_elsewhere_have_no_curves():
    report = make_calibration_report(Calibration.from_values(structure()))
    assert "not stored" in report.sections[-1].blocks[0].text


def test_an_adaptation_is_shown_as_it_went():
    time = np.arange(400) * 0.01
    x = np.sin(time)[:, None, None] * np.ones((1, 1, 1))
    trace = Trace(time, x, 0.99 * x, np.gradient(x, axis=0), x, np.ones((20, 1, 4)))
    one = np.ones((1, 1))
    fit = CosineFit(0.8, 0.3, 1.0)
    found = AdaptiveCalibration(
        one, one, one, one, one, one, one, {"gain_1": trace}, [], ((fit,),)
    )
    report = make_calibration_report(found)
    assert [s.name for s in report.sections] == [
        "sensors", "evolution", "gravity", "errors",
    ]  # fmt: skip
    assert [c.name for c in report.sections[1].blocks[0].curves] == [
        "inertia", "a", "b", "c",
    ]  # fmt: skip


def test_other_suffixes_are_refused(found, tmp_path):
    with pytest.raises(ArgumentError, match=r"\.html"):
        write_calibration_report(found, tmp_path / "r.pdf")
