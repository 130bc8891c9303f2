"""Every function against Pinocchio, on random trees and both backends."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from tests.dynamics.trees import random_tree_urdf

pin = pytest.importorskip("pinocchio")

TOLERANCE = 1e-9
SAMPLES = 3
PIN_TO_OURS = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
"""Pinocchio orders Ixx Ixy Iyy Ixz Iyz Izz; ours is Ixx Ixy Ixz Iyy Iyz Izz."""


class Oracle:
    """Pinocchio on the same file, in our joint order."""

    def __init__(self, path: str, arm: aw.Arm) -> None:
        self.model = pin.buildModelFromUrdf(path)
        self.data = self.model.createData()
        ids = [self.model.getJointId(j.name) for j in arm.joints]
        self.order = [self.model.joints[k].idx_v for k in ids]
        self.blocks = [k - 1 for k in ids]

    def take(self, *vectors):
        mixed = [np.zeros(self.model.nv) for _ in vectors]
        for target, vector in zip(mixed, vectors, strict=True):
            target[self.order] = vector
        return mixed

    def square(self, matrix):
        return matrix[np.ix_(self.order, self.order)]

    def regressor(self, q, v, a):
        Y = pin.computeJointTorqueRegressor(self.model, self.data, q, v, a)
        Y = Y.reshape(self.model.nv, -1, 10)[np.ix_(self.order, self.blocks)]
        return Y[..., PIN_TO_OURS].reshape(self.model.nv, -1)


def close(ours, theirs, name):
    scale = 1 + np.abs(theirs).max(initial=0.0)
    worst = np.abs(ours - theirs).max(initial=0.0) / scale
    assert worst < TOLERANCE, f"{name}: {worst:.1e}"


def compare(path: str, backend: str, seed: int) -> None:
    arm = aw.load_arm(path)
    dyn = aw.Dynamics(arm, backend)
    oracle = Oracle(path, arm)
    model, data = oracle.model, oracle.data
    n = arm.dof
    states = np.random.default_rng(seed).uniform(-2, 2, (4, SAMPLES, n))
    q, qd, qdd, tau = states
    ours = {
        "id": dyn.inverse_dynamics(q, qd, qdd),
        "fd": dyn.forward_dynamics(q, qd, tau),
        "M": dyn.mass_matrix(q),
        "g": dyn.gravity_torque(q),
        "h": dyn.velocity_torque(q, qd),
        "T": dyn.kinetic_energy(q, qd),
        "V": dyn.potential_energy(q),
        "Y": dyn.regressor(q, qd, qdd),
        "tip": dyn.link_pose(q, arm.links[-1].name),
        "J": dyn.jacobian(q, arm.links[-1].name),
        "C": dyn.coriolis_matrix(q, qd),
    }
    frame = model.getFrameId(arm.links[-1].name)
    for k in range(SAMPLES):
        x, v, a, t = oracle.take(*states[:, k])
        M = pin.crba(model, data, x)
        M = np.triu(M) + np.triu(M, 1).T
        rest = np.zeros(n)
        gravity = pin.computeGeneralizedGravity(model, data, x)
        theirs = {
            "id": pin.rnea(model, data, x, v, a)[oracle.order],
            "fd": pin.aba(model, data, x, v, t)[oracle.order],
            "M": oracle.square(M),
            "g": gravity[oracle.order],
            "h": (pin.rnea(model, data, x, v, rest) - gravity)[oracle.order],
            "T": pin.computeKineticEnergy(model, data, x, v),
            "V": pin.computePotentialEnergy(model, data, x),
            "Y": oracle.regressor(x, v, a),
        }
        J = pin.computeFrameJacobian(
            model, data, x, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        theirs["J"] = np.reshape(J, (6, -1))[:, oracle.order]
        pin.framesForwardKinematics(model, data, x)
        theirs["tip"] = data.oMf[frame].homogeneous
        for name, value in theirs.items():
            mine = ours[name][k]
            if name == "Y":
                mine = mine[:, : value.shape[1]]
            close(mine, value, f"{name} of {n} joints")
        close(ours["C"][k] @ qd[k], ours["h"][k], "C q̇")


@pytest.mark.slow
@pytest.mark.parametrize("group", range(10))
def test_a_hundred_random_trees(tmp_path, group):
    rng = np.random.default_rng(1000 + group)
    for k in range(10):
        joints = int(rng.integers(1, 13))
        path = tmp_path / f"tree{k}.urdf"
        path.write_text(random_tree_urdf(rng, joints))
        compare(str(path), "numpy", k)


@pytest.mark.parametrize("joints", [1, 2, 4, 7])
def test_generated_c_on_random_trees(tmp_path, joints):
    rng = np.random.default_rng(joints)
    path = tmp_path / "tree.urdf"
    path.write_text(random_tree_urdf(rng, joints))
    compare(str(path), "c", joints)


def test_regressor_times_parameters_is_the_torque(tmp_path):
    path = tmp_path / "tree.urdf"
    path.write_text(random_tree_urdf(np.random.default_rng(3), 6))
    arm = aw.load_arm(path)
    rng = np.random.default_rng(0)
    arm = arm.with_parameters(arm.parameters + rng.uniform(0, 1, arm.parameters.size))
    q, qd, qdd = rng.uniform(-2, 2, (3, 20, 6))
    dyn = aw.Dynamics(arm, "numpy")
    np.testing.assert_allclose(
        dyn.regressor(q, qd, qdd) @ arm.parameters,
        dyn.inverse_dynamics(q, qd, qdd),
        rtol=1e-10, atol=1e-10,
    )  # fmt: skip
