"""Laws of inertial parameters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from armwise.arms import InertialParameters, inertial_transform
from armwise.arms.poses import inverse, pose, rotation_from_rpy
from armwise.errors import NotPhysical

numbers = st.floats(-3, 3, allow_nan=False, width=32)
points = arrays(float, (6, 3), elements=numbers)
masses = arrays(float, 6, elements=st.floats(0.125, 4, width=32))
poses = st.builds(
    lambda rpy, xyz: pose(rotation_from_rpy(rpy), xyz),
    st.tuples(numbers, numbers, numbers),
    st.tuples(numbers, numbers, numbers),
)


def cloud(mass: np.ndarray, r: np.ndarray) -> InertialParameters:
    """Point masses, summed the long way."""
    inertia = sum(
        (
            m * (x @ x * np.eye(3) - np.outer(x, x))
            for m, x in zip(mass, r, strict=True)
        ),
        np.zeros((3, 3)),
    )
    six = inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    return InertialParameters(np.concatenate([[mass.sum()], mass @ r, six]))


@given(masses, points)
def test_any_cloud_of_points_is_physical(mass: np.ndarray, r: np.ndarray) -> None:
    body = cloud(mass, r)
    assert body.is_physical(1e-6)
    smallest = np.linalg.eigvalsh(body.pseudo_inertia)[0]
    assert smallest > -1e-9 * body.pseudo_inertia.max()


@given(masses, points, poses)
def test_moving_the_points_moves_the_parameters(
    mass: np.ndarray, r: np.ndarray, T: np.ndarray
) -> None:
    body = cloud(mass, r)
    moved = cloud(mass, r @ T[:3, :3].T + T[:3, 3])
    scale = 1 + np.abs(moved.vector).max()
    np.testing.assert_allclose(
        body.transformed(T).vector, moved.vector, atol=1e-11 * scale
    )
    np.testing.assert_allclose(
        inertial_transform(T) @ body.vector, moved.vector, atol=1e-11 * scale
    )
    back = moved.transformed(inverse(T))
    np.testing.assert_allclose(back.vector, body.vector, atol=1e-10 * scale)


@given(masses, points)
def test_center_of_mass_form_is_the_same_body(mass: np.ndarray, r: np.ndarray) -> None:
    body = cloud(mass, r)
    again = InertialParameters.from_center_of_mass(
        body.mass, body.center_of_mass, body.central_inertia
    )
    np.testing.assert_allclose(again.vector, body.vector, atol=1e-12 * mass.sum() * 10)
    moments, axes = body.principal
    np.testing.assert_allclose(
        axes @ np.diag(moments) @ axes.T, body.central_inertia, atol=1e-9
    )
    assert np.linalg.det(axes) == pytest.approx(1.0)


@given(masses, points, masses, points)
def test_two_bodies_are_one_body(
    m1: np.ndarray, r1: np.ndarray, m2: np.ndarray, r2: np.ndarray
) -> None:
    both = cloud(np.concatenate([m1, m2]), np.concatenate([r1, r2]))
    total = cloud(m1, r1) + cloud(m2, r2)
    np.testing.assert_allclose(total.vector, both.vector, atol=1e-9)


def body(mass: float, *moments: float) -> InertialParameters:
    return InertialParameters.from_center_of_mass(mass, np.zeros(3), np.diag(moments))


@pytest.mark.parametrize(
    ("inertia", "says"),
    [
        (body(-1.0, 1, 1, 1), "mass -1 kg is negative"),
        (body(1.0, -0.1, 1, 1), "principal moment is negative"),
        (body(1.0, 0.1, 0.2, 0.4), "break the triangle"),
        (body(0.0, 0.1, 0.1, 0.1), "no mass, yet moments"),
        (InertialParameters(np.full(10, np.nan)), "not finite"),
    ],
)
def test_defects_are_named(inertia: InertialParameters, says: str) -> None:
    assert says in (inertia.defect() or "")
    assert not inertia.is_physical()
    with pytest.raises(NotPhysical, match="forearm"):
        inertia.require_physical("forearm")


def test_flat_and_thin_bodies_are_physical() -> None:
    assert body(1.0, 0.1, 0.2, 0.3).is_physical()
    assert body(1.0, 0.0, 0.2, 0.2).is_physical()
    assert body(1.0, 0.0, 0.0, 0.0).is_physical()
    assert InertialParameters.zero().is_physical()
