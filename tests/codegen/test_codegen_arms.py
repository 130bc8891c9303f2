"""Every bundled arm: its code compiles, and MuJoCo agrees with what it computes."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw

ARMS = sorted(aw.arms.bundled_arms())


@pytest.mark.parametrize("name", ARMS)
def test_agrees_with_mujoco(name, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    from armwise.plants.mujoco_arm import model_from_arm

    arm = aw.load_arm(name)
    vector = arm.parameters.copy()
    vector[arm.layout.drives] = 0.0
    arm = arm.with_parameters(vector)
    chosen = ["inverse_dynamics", "mass_matrix_and_gravity"]
    aw.generate(arm, tmp_path / "out", chosen, tries=1, allow_unphysical=True)
    library = aw.codegen.load_generated(tmp_path / "out", arm)
    if arm.defects():
        pytest.skip(f"MuJoCo takes no {name}: {next(iter(arm.defects().values()))}")
    model = model_from_arm(arm, None, None)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(model)
    for q, qd, qdd in np.random.default_rng(2).uniform(-1, 1, (3, 3, arm.dof)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(model, data)
        tau = library.inverse_dynamics(q, qd, qdd)
        scale = 1 + np.abs(tau).max()
        assert np.abs(data.qfrc_inverse - tau).max() / scale < 1e-9
        M = np.zeros((arm.dof, arm.dof))
        mujoco.mj_fullM(model, data, M)
        assert library.mass_matrix_and_gravity(q)[0] == pytest.approx(M, abs=1e-9)


def test_a_tree_with_slides(tmp_path):
    from tests.dynamics.trees import random_tree_urdf

    path = tmp_path / "tree.urdf"
    path.write_text(random_tree_urdf(np.random.default_rng(3), 5))
    arm = aw.load_arm(path)
    chosen = ["inverse_dynamics", "forward_dynamics", "jacobian"]
    aw.generate(arm, tmp_path / "out", chosen, tries=1)
    assert aw.codegen.load_generated(tmp_path / "out").check_against(arm) < 1e-10


def test_an_estimate_will_do(tmp_path):
    class Estimate:
        arm = aw.load_arm("two_link_uno")

    code = aw.generate(Estimate(), tmp_path / "out", ["inverse_dynamics"], tries=1)
    assert code.name == "two_link_uno"
