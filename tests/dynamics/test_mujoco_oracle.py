"""Bundled arms against MuJoCo's own inverse dynamics and mass matrix."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.plants.mujoco_arm import model_from_arm

mujoco = pytest.importorskip("mujoco")

ARMS = ["panda", "ur10", "puma560", "two_link_uno", "hand_controller", "iiwa"]


@pytest.mark.parametrize("name", ARMS)
def test_bundled_arm(name):
    arm = aw.load_arm(name)
    parameters = arm.parameters.copy()
    parameters[arm.layout.drives] = 0.0
    arm = arm.with_parameters(parameters)
    model = model_from_arm(arm, None, None)
    data = mujoco.MjData(model)
    dyn = aw.Dynamics(arm)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, qd, qdd = rng.uniform(-1, 1, (3, arm.dof))
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        mujoco.mj_inverse(model, data)
        tau = dyn.inverse_dynamics(q, qd, qdd)
        scale = 1 + np.abs(tau).max()
        assert np.abs(data.qfrc_inverse - tau).max() / scale < 1e-9
        M = np.zeros((arm.dof, arm.dof))
        mujoco.mj_fullM(model, data, M)
        np.testing.assert_allclose(dyn.mass_matrix(q), M, atol=1e-9)
