"""Laws of mechanics, on bundled arms, by finite differences and by symmetry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.arms import Drive
from armwise.arms.poses import rotation_about

ARMS = ["two_link_uno", "ddarm", "puma560", "panda"]
STEP = 1e-6


@pytest.fixture(params=ARMS, scope="module")
def dyn(request):
    return aw.Dynamics(aw.load_arm(request.param))


@pytest.fixture
def state(dyn):
    return np.random.default_rng(5).uniform(-1.5, 1.5, (3, 25, dyn.arm.dof))


def along(function, q, direction):
    """Derivative of a function of q along a direction, by central differences."""
    return (function(q + STEP * direction) - function(q - STEP * direction)) / (
        2 * STEP
    )


def gradient(function, q):
    units = np.eye(q.shape[-1])
    return np.stack([along(function, q, unit) for unit in units], axis=-1)


def test_mass_matrix_is_symmetric_and_positive(dyn, state):
    M = dyn.mass_matrix(state[0])
    np.testing.assert_allclose(M, M.swapaxes(-1, -2), rtol=1e-12, atol=1e-14)
    # Also of the published ddarm, one of whose links breaks the triangle inequality.
    assert np.linalg.eigvalsh(M).min() > 0


def test_rate_of_the_mass_matrix_minus_twice_coriolis_is_skew(dyn, state):
    q, qd, _ = state
    S = along(dyn.mass_matrix, q, qd) - 2 * dyn.coriolis_matrix(q, qd)
    np.testing.assert_allclose(S, -S.swapaxes(-1, -2), atol=1e-7)


def test_gravity_is_the_slope_of_the_potential(dyn, state):
    slope = gradient(dyn.potential_energy, state[0])
    np.testing.assert_allclose(dyn.gravity_torque(state[0]), slope, atol=1e-6)


def driven(dyn):
    """The same arm with friction and an offset of its own at every joint."""
    rng = np.random.default_rng(7)
    drives = [
        replace(j.drive, viscous=v, coulomb=c, offset=o)
        for j, (v, c, o) in zip(
            dyn.arm.joints, rng.uniform(0.2, 2.0, (len(dyn.arm.joints), 3)), strict=True
        )
    ]
    joints = [replace(j, drive=d) for j, d in zip(dyn.arm.joints, drives, strict=True)]
    return aw.Dynamics(replace(dyn.arm, joints=tuple(joints)))


def test_lagrange(dyn, state):
    """d/dt ∂T/∂q̇ − ∂T/∂q + ∂V/∂q = τ − friction: the energies alone give the left side.

    An energy balance would miss gyroscopic terms. Friction is what the description of
    the drives says, so nothing on the left comes from inverse dynamics.
    """
    q, qd, qdd = state
    dyn = driven(dyn)

    def momentum(s):
        # T is quadratic in q̇, so differences across ±1 are exact.
        here, speed = q + s * qd, qd + s * qdd
        ahead = [dyn.kinetic_energy(here, speed + e) for e in np.eye(dyn.arm.dof)]
        behind = [dyn.kinetic_energy(here, speed - e) for e in np.eye(dyn.arm.dof)]
        return np.stack(np.subtract(ahead, behind) / 2, axis=-1)

    rate = (momentum(STEP) - momentum(-STEP)) / (2 * STEP)
    torque = rate - gradient(lambda x: dyn.kinetic_energy(x, qd), q)
    torque += gradient(dyn.potential_energy, q)
    _, viscous, coulomb, offset = np.transpose([j.drive.vector for j in dyn.arm.joints])
    torque += viscous * qd + coulomb * np.sign(qd) + offset
    np.testing.assert_allclose(dyn.inverse_dynamics(q, qd, qdd), torque, atol=2e-6)


def test_kinetic_energy_is_half_of_velocity_times_momentum(dyn, state):
    q, qd, _ = state
    momentum = dyn.momentum_regressor(q, qd) @ dyn.arm.parameters
    np.testing.assert_allclose(
        dyn.kinetic_energy(q, qd), 0.5 * np.sum(qd * momentum, axis=-1), rtol=1e-10
    )
    np.testing.assert_allclose(
        momentum, np.einsum("nij,nj->ni", dyn.mass_matrix(q), qd), atol=1e-11
    )


def test_momentum_identity_needs_no_acceleration(dyn, state):
    """τ = d(M q̇)/dt − ∂T/∂q + g + friction, all linear in the parameters."""
    q, qd, _ = state
    slope = dyn.kinetic_gradient_regressor(q, qd) @ dyn.arm.parameters
    np.testing.assert_allclose(
        slope, gradient(lambda x: dyn.kinetic_energy(x, qd), q), atol=1e-6
    )


def test_slotine_li(dyn, state):
    q, qd, qddr = state
    qdr = np.random.default_rng(6).uniform(-1, 1, qd.shape)
    bare = dyn.arm.parameters.copy()
    bare[dyn.arm.layout.drives] = 0.0
    arm = dyn.arm.with_parameters(bare)
    clean = aw.Dynamics(arm)
    want = np.einsum("nij,nj->ni", clean.mass_matrix(q), qddr)
    want += np.einsum("nij,nj->ni", clean.coriolis_matrix(q, qd), qdr)
    want += clean.gravity_torque(q)
    got = dyn.slotine_li_regressor(q, qd, qdr, qddr) @ bare
    np.testing.assert_allclose(got, want, atol=1e-10)
    same = dyn.slotine_li_regressor(q, qd, qd, qddr)
    np.testing.assert_allclose(same, dyn.regressor(q, qd, qddr), atol=1e-12)


def test_forward_undoes_inverse(dyn, state):
    q, qd, qdd = state
    tau = dyn.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(dyn.forward_dynamics(q, qd, tau), qdd, atol=1e-8)


def test_turning_the_laboratory_changes_nothing(state, dyn):
    """Turn base and gravity together: every torque stays."""
    arm = dyn.arm
    R = rotation_about(np.array([0.6, -0.48, 0.64]), 1.1)
    T = np.eye(4)
    T[:3, :3] = R
    joints = [
        replace(j, origin=T @ j.origin) if j.parent < 0 else j for j in arm.joints
    ]
    turned = replace(arm, joints=tuple(joints), gravity=R @ arm.gravity)
    np.testing.assert_allclose(
        aw.Dynamics(turned, "numpy").inverse_dynamics(*state),
        dyn.inverse_dynamics(*state),
        rtol=1e-9, atol=1e-9,
    )  # fmt: skip


def test_drives_add_rotor_inertia_friction_and_offset():
    arm = aw.load_arm("two_link_uno")
    drive = Drive(rotor_inertia=0.5, viscous=0.2, coulomb=0.7, offset=-0.1)
    driven = replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 9, 2))
    more = aw.Dynamics(driven).inverse_dynamics(q, qd, qdd)
    bare = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    want = 0.5 * qdd + 0.2 * qd + 0.7 * np.sign(qd) - 0.1
    extra = np.array([j.drive.vector for j in arm.joints])
    want -= (
        extra[:, 0] * qdd + extra[:, 1] * qd + extra[:, 2] * np.sign(qd) + extra[:, 3]
    )
    np.testing.assert_allclose(more - bare, want, atol=1e-12)


def test_a_mimic_joint_is_a_constraint():
    """A follower's torque and inertia are felt by its leader (virtual work)."""
    from armwise.arms import Mimic

    arm = aw.load_arm("ddarm")
    joints = list(arm.joints)
    joints[2] = replace(joints[2], mimic=Mimic(1, -0.5, 0.3))
    coupled = replace(arm, joints=tuple(joints))
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 9, 2))
    C = np.array([[1, 0], [0, 1], [0, -0.5]])
    full = [q @ C.T + [0, 0, 0.3], qd @ C.T, qdd @ C.T]
    want = aw.Dynamics(arm).inverse_dynamics(*full) @ C
    dyn = aw.Dynamics(coupled)
    np.testing.assert_allclose(dyn.inverse_dynamics(q, qd, qdd), want, atol=1e-10)
    Y = dyn.regressor(q, qd, qdd)
    np.testing.assert_allclose(Y @ coupled.parameters, want, atol=1e-10)
    M = C.T @ aw.Dynamics(arm).mass_matrix(full[0]) @ C
    np.testing.assert_allclose(dyn.mass_matrix(q), M, atol=1e-10)


def test_a_coupled_motor_sees_a_sum_of_joints():
    arm = aw.load_arm("two_link_uno")
    drive = Drive(rotor_inertia=0.3, viscous=0.1, coulomb=0.5)
    names = arm.coordinate_names
    coupled = arm.with_coupling("motor", {names[0]: 1.0, names[1]: 2.0}, drive)
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 9, 2))
    w = np.array([1.0, 2.0])
    torque = 0.3 * (qdd @ w) + 0.1 * (qd @ w) + 0.5 * np.sign(qd @ w)
    extra = aw.Dynamics(coupled).inverse_dynamics(q, qd, qdd) - aw.Dynamics(
        arm
    ).inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(extra, torque[:, None] * w, atol=1e-12)
