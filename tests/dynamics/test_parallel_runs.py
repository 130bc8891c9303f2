"""Runs of parallel joints, with branches and slides: Pinocchio must agree."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.dynamics.compound import find_stations
from armwise.dynamics.mechanism import mechanism_of

pin = pytest.importorskip("pinocchio")


def tree_with_runs(rng: np.random.Generator, joints: int) -> str:
    """A tree most of whose joints are parallel to the one that carries them."""
    links, arcs = ['<link name="base"/>'], []
    for i in range(joints):
        c = " ".join(map(repr, rng.uniform(-0.2, 0.2, 3).tolist()))
        links.append(
            f'<link name="l{i}"><inertial><origin xyz="{c}"/>'
            f'<mass value="{rng.uniform(0.5, 3)!r}"/><inertia ixx="0.06" ixy="0.01" '
            'ixz="-0.005" iyy="0.05" iyz="0.002" izz="0.04"/></inertial></link>'
        )
        parent = "base" if i == 0 else f"l{rng.integers(max(0, i - 2), i)}"
        turn = f"{np.pi / 2!r} 0 0" if rng.random() < 0.3 else "0 0 0.4"
        kind = "prismatic" if rng.random() < 0.15 else "revolute"
        at = " ".join(map(repr, rng.uniform(-0.5, 0.5, 3).tolist()))
        arcs.append(
            f'<joint name="j{i}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="l{i}"/><origin xyz="{at}" rpy="{turn}"/><axis xyz="0 0 1"/>'
            '<limit lower="-3" upper="3" velocity="5" effort="100"/></joint>'
        )
    return f'<robot name="runs">{"".join(links + arcs)}</robot>'


@pytest.mark.parametrize("seed", range(12))
def test_runs_against_pinocchio(seed, tmp_path):
    rng = np.random.default_rng(seed)
    path = tmp_path / "runs.urdf"
    path.write_text(tree_with_runs(rng, int(rng.integers(2, 9))))
    arm = aw.load_arm(path)
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    order = [model.joints[model.getJointId(n)].idx_v for n in arm.coordinate_names]
    dyn = aw.Dynamics(arm, backend="numpy")
    for q, qd, qdd in rng.uniform(-2, 2, (3, 3, arm.dof)):
        there = np.empty((3, arm.dof))
        there[:, order] = q, qd, qdd
        tau = pin.rnea(model, data, *there)[order]
        scale = 1 + np.abs(tau).max()
        gap = np.abs(dyn.inverse_dynamics(q, qd, qdd) - tau).max() / scale
        assert gap < 1e-11
        M = pin.crba(model, data, there[0])
        M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(order, order)]
        assert dyn.mass_matrix(q) == pytest.approx(M, abs=1e-11)
        g = pin.computeGeneralizedGravity(model, data, there[0])[order]
        assert dyn.gravity_torque(q) == pytest.approx(g, abs=1e-10)


def test_trees_do_have_runs(tmp_path):
    path = tmp_path / "runs.urdf"
    path.write_text(tree_with_runs(np.random.default_rng(0), 8))
    skeleton = mechanism_of(aw.load_arm(path)).skeleton
    stations = find_stations(skeleton, list(np.zeros(8)))
    assert sum(not s.is_first for s in stations) >= 2


def test_a_run_saves_rotations():
    counts = aw.Dynamics(aw.load_arm("ur5")).program("mass_matrix").counts
    assert counts["multiplications"] <= 120
    assert counts["trigonometric"] <= 10
