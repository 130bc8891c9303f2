"""A real arm whose zero positions are right: little may be found wrong with them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.calibration import Structure, calibrate_recording
from armwise.recordings import Recording

DATA = Path(
    os.environ.get("ARMWISE_DATA", Path(__file__).parents[3] / "shared" / "data")
)
PANDA = DATA / "panda"


def read(name: str) -> np.ndarray:
    return np.loadtxt(PANDA / f"exciting_traj_{name}.txt")


@pytest.mark.slow
@pytest.mark.skipif(not PANDA.is_dir(), reason=f"no {PANDA}; set ARMWISE_DATA")
def test_a_panda_is_where_it_says():
    arm = load_arm("panda")
    recording = Recording.from_arrays(
        read("time"),
        q=read("positions").reshape(-1, 7),
        tau=read("torques").reshape(-1, 7),
    )
    found = calibrate_recording(
        Structure(arm, gains_known=True), recording, offset_range=0.5, cutoff_hz=5.0
    )
    told = np.isfinite(found.beta_std)
    assert list(told) == [False, True, True, True, True, False, False]
    assert np.rad2deg(np.abs(found.beta[told])).max() < 2.0
    assert np.rad2deg(found.beta_std[told]).max() < 1.0
    assert np.all(found.beta[~told] == 0.0)
