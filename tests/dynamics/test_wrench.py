"""The wrench on a held body: Eq. 8 of `aah1986`, and its form without accelerations."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.arms import Frame, InertialParameters
from armwise.arms.inertia import inertial_transform
from armwise.arms.poses import pose, rotation_from_rpy
from armwise.dynamics import mechanism_of, moment_rates
from armwise.dynamics.wrench import HeldBody, wrench_regressor
from armwise.errors import ArgumentError


def _states(dof: int, count: int = 20) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(3, count, dof))


def _arm(name: str) -> aw.Arm:
    from dataclasses import replace

    arm = aw.load_arm(name)
    T = pose(rotation_from_rpy([0.3, -0.7, 1.1]), [0.02, -0.05, 0.11])
    return replace(arm, frames=(*arm.frames, Frame("hand", arm.dof - 1, T)))


def _cross(v: np.ndarray) -> np.ndarray:
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def _dot(w: np.ndarray) -> np.ndarray:
    """[·ω] of the paper: I ω = [·ω](Ixx, Ixy, Ixz, Iyy, Iyz, Izz)ᵀ."""
    x, y, z = w
    return np.array([[x, y, z, 0, 0, 0], [0, x, 0, y, z, 0], [0, 0, x, 0, y, z]])


def test_regressor_is_equation_8_of_the_paper() -> None:
    for a, w, dw in np.random.default_rng(1).normal(size=(10, 3, 3)):
        expected = np.zeros((6, 10))
        expected[:3, 0] = a
        expected[:3, 1:4] = _cross(dw) + _cross(w) @ _cross(w)
        expected[3:, 1:4] = _cross(-a)
        expected[3:, 4:] = _dot(dw) + _cross(w) @ _dot(w)
        np.testing.assert_allclose(wrench_regressor(a, w, dw), expected, atol=1e-13)


@pytest.mark.parametrize("name", ["puma600", "ddarm", "panda"])
def test_joint_torques_are_the_jacobian_transposed_times_the_wrench(name: str) -> None:
    arm = _arm(name)
    q, qd, qdd = _states(arm.dof)
    dyn = aw.Dynamics(arm)
    link, T = arm.find_frame("hand")
    own = dyn.regressor(q, qd, qdd)[:, :, dyn.arm.layout.link(link)]
    R = dyn.link_pose(q, "hand")[:, :3, :3]
    A = HeldBody(arm, "hand").regressor(q, qd, qdd)
    in_base = np.concatenate([R @ A[:, :3], R @ A[:, 3:]], axis=1)
    torques = np.swapaxes(dyn.jacobian(q, "hand"), 1, 2) @ in_base
    np.testing.assert_allclose(torques, own @ inertial_transform(T), atol=1e-10)


@pytest.mark.parametrize("name", ["puma600", "ddarm", "panda"])
def test_rates_of_moments_are_those_of_the_points_that_they_weigh(name: str) -> None:
    """The Jacobian's, of two masses on different links, along any axes."""
    arm = _arm(name)
    dyn, skeleton = aw.Dynamics(arm), mechanism_of(arm).skeleton
    axes = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0][:2]
    masses = {0: (0.7, np.array([0.1, -0.2, 0.3])), 2: (1.3, np.array([0.0, 0.1, 0.2]))}
    moments = np.zeros((arm.dof, 4))
    for link, (mass, point) in masses.items():
        inner = skeleton.segments[link].from_user @ [*point, 1.0]
        moments[link] = mass * np.append(1.0, inner[:3])
    for q in _states(arm.dof, 5)[0]:
        expected = np.zeros((2, arm.dof))
        for link, (mass, point) in masses.items():
            J = dyn.jacobian(q, arm.links[link].name)
            lever = dyn.link_pose(q, arm.links[link].name)[:3, :3] @ point
            expected += mass * axes @ (J[:3] + np.cross(J[3:].T, lever).T)
        rates = moment_rates(skeleton, list(q), moments.tolist(), axes)
        np.testing.assert_allclose(rates, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["puma600", "ddarm", "panda"])
def test_rate_of_momentum_and_velocity_terms_make_the_wrench(name: str) -> None:
    body = HeldBody(_arm(name), "hand")
    q, qd, qdd = _states(body.arm.dof)
    h = 1e-5

    def momentum(t: float) -> np.ndarray:
        return body.momentum_regressor(q + qd * t + qdd * t * t / 2, qd + qdd * t)

    rate = (momentum(h) - momentum(-h)) / (2 * h)
    np.testing.assert_allclose(
        rate + body.velocity_regressor(q, qd), body.regressor(q, qd, qdd), atol=1e-6
    )


def test_force_at_rest_is_minus_the_weight() -> None:
    body = HeldBody(_arm("puma600"), "hand")
    phi = InertialParameters.from_center_of_mass(2.0, [0.1, 0, 0], np.eye(3) * 1e-3)
    q = np.array([0.3, -0.5, 0.2, 0.1, 0.9, -0.4])
    wrench = body.regressor(q, 0 * q, 0 * q) @ phi.vector
    R = aw.Dynamics(body.arm).link_pose(q, "hand")[:3, :3]
    weight = 2.0 * body.arm.gravity @ R
    np.testing.assert_allclose(wrench[:3], -weight, atol=1e-12)
    np.testing.assert_allclose(wrench[3:], np.cross([0.1, 0, 0], -weight), atol=1e-12)


def test_motion_of_the_frame_gives_the_same_regressor() -> None:
    body = HeldBody(_arm("puma600"), "hand")
    q, qd, qdd = _states(6)
    motion = body.motion(q, qd, qdd)
    alone = wrench_regressor(motion[:, 0], motion[:, 1], motion[:, 2])
    np.testing.assert_allclose(alone, body.regressor(q, qd, qdd), atol=1e-10)
    numpy = HeldBody(body.arm, "hand", "numpy").regressor(q, qd, qdd)
    np.testing.assert_allclose(numpy, body.regressor(q, qd, qdd), atol=1e-10)


def test_a_place_on_the_base_and_a_wrong_shape_are_refused() -> None:
    arm = _arm("puma600")
    with pytest.raises(ArgumentError, match="fixed to the base"):
        HeldBody(arm, arm.base)
    with pytest.raises(ArgumentError, match="6 values, one per joint of puma600"):
        HeldBody(arm, "hand").regressor(np.zeros(5), np.zeros(5), np.zeros(5))
