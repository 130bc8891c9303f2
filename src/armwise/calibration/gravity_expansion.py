"""Gravity torques as linear functions: trigonometric expansion, and parabolas.

Offsets turn gravity in the axes of each link: cosines and sines of their sums enter the
torques linearly. A single joint's cosine is read off its best parabola.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.arms import BASE, Arm
from armwise.calibration.sensor_control import Parts
from armwise.calibration.structure import Structure
from armwise.dynamics import Dynamics, successive_ranks
from armwise.errors import NotIdentifiable

if TYPE_CHECKING:
    from jaxtyping import Float


def is_planar_chain(arm: Arm) -> bool:
    """Whether it is a chain of revolute z axes, all parallel, across gravity.

    z, since the offsets' cosines and sines are read off mx and my.
    """
    chain = [joint.parent for joint in arm.joints] == [BASE, *range(arm.dof - 1)]
    if not chain or not all(joint.is_revolute for joint in arm.joints):
        return False
    if not all(np.allclose(joint.axis, (0.0, 0.0, 1.0)) for joint in arm.joints):
        return False
    poses = [Dynamics(arm).link_pose(np.zeros(arm.dof), x.name) for x in arm.links]
    axes = np.array(
        [T[:3, :3] @ j.axis for T, j in zip(poses, arm.joints, strict=True)]
    )
    size = np.linalg.norm(arm.gravity)
    if size == 0.0 or arm.dof == 0:
        return False
    parallel = np.allclose(axes, axes[0], atol=1e-9)
    # 3° from vertical gravity would turn a joint by a twentieth of its weight.
    across = np.linalg.norm(np.cross(axes[0], arm.gravity / size)) > 0.05
    return bool(parallel and across)


class GravityExpansion:
    """The arm's generated regressor at θ = α q, gravity split from inertia.

    A chain of parallel axes turned by offsets looks as if gravity pulled each link's
    centre of mass along another direction: mx and my of gravity carry cos and sin of
    the offsets' sums (`astley1996` Eq. 4.39). Inertial terms get parameters of their
    own. Centres of mass, and the next joints, are assumed to lie on the links' x axes.

    Args:
        structure: The arm.
        gain: α, (batch, dof), in [rad] per unit of the reading.
        sense: Sign of the torque that raises each reading, (batch, dof).
    """

    def __init__(
        self, structure: Structure, gain: np.ndarray, sense: np.ndarray
    ) -> None:
        self._dynamics = structure.dynamics
        self._gain, self._sense = gain, sense
        self._gravity = structure.arm.layout.inertial("mx", "my").tolist()
        self._inertia = _inertial_columns(structure)
        self.count = len(self._gravity) + len(self._inertia)

    def tracking(
        self, x: np.ndarray, xd: np.ndarray, xdr: np.ndarray, xddr: np.ndarray
    ) -> Float[np.ndarray, "batch dof p"]:
        """Y for the reference acceleration, in the sensors' sense."""
        q, qd, qdr, qddr = (y * self._gain for y in (x, xd, xdr, xddr))
        still = np.zeros_like(q)
        weight = self._dynamics.slotine_li_regressor(q, still, still, still)
        whole = self._dynamics.slotine_li_regressor(q, qd, qdr, qddr)
        return self._joined(weight, whole - weight)

    def parts(self, x: np.ndarray, xd: np.ndarray) -> Parts:
        """Momentum of the inertial terms; gravity and what velocities do."""
        q, qd = x * self._gain, xd * self._gain
        still = np.zeros_like(q)
        dynamics = self._dynamics
        weight = dynamics.slotine_li_regressor(q, still, still, still)
        moving = dynamics.slotine_li_regressor(q, qd, still, still) - weight
        moving = moving - dynamics.kinetic_gradient_regressor(q, qd)
        H = dynamics.momentum_regressor(q, qd)
        return Parts(self._joined(np.zeros_like(H), H), self._joined(weight, moving))

    def offsets(
        self, parameters: Float[np.ndarray, "batch p"]
    ) -> Float[np.ndarray, "batch dof"]:
        """β of every joint in [rad], from mx and my of gravity."""
        pairs = parameters[:, : len(self._gravity)].reshape(len(parameters), -1, 2)
        sums = np.arctan2(pairs[:, :, 1], pairs[:, :, 0])
        steps = np.diff(sums, axis=1, prepend=0.0)
        return np.asarray(np.angle(np.exp(1j * steps)))

    def _joined(self, weight: np.ndarray, motion: np.ndarray) -> np.ndarray:
        both = [weight[:, :, self._gravity], motion[:, :, self._inertia]]
        Y: np.ndarray = np.concatenate(both, axis=2) * self._sense[:, :, None]
        return Y


def _inertial_columns(structure: Structure) -> list[int]:
    """Parameters whose inertial torques are independent of each other's."""
    random = np.random.default_rng(0)
    q, qd, qdd = random.normal(size=(3, 60, structure.arm.dof))
    dynamics = structure.dynamics
    still = np.zeros_like(q)
    motion = dynamics.regressor(q, qd, qdd) - dynamics.regressor(q, still, still)
    layout = structure.arm.layout
    rows = motion[:, :, layout.links].reshape(-1, layout.link_size)
    return sorted(successive_ranks(rows).indices)


# Cosines read off parabolas: the gain of one joint's sensor.


class CosineFit(NamedTuple):
    """A cosine read off a parabola: a + b q + c q² ≈ m cos(α q + β).

    Attributes:
        gain: α in [rad] per unit of q, positive.
        phase: β in [rad].
        moment: m, positive.
    """

    gain: float
    phase: float
    moment: float


def fit_by_arccos(
    coefficients: Float[np.ndarray, " 3"], reach: tuple[float, float]
) -> CosineFit:
    """The thesis' way: the parabola's peak gives m, arccos gives angles, a line α.

    Args:
        coefficients: a, b, c (`astley1996` Eq. 4.23).
        reach: Smallest and largest q that were visited.

    Raises:
        NotIdentifiable: If the parabola is flat: gravity does not bend the torque.
    """
    a, b, c = (float(x) for x in coefficients)
    # Rounding of a straight line's coefficients.
    if abs(c) < 1e-9 * max(abs(a), abs(b), 1e-300):
        raise NotIdentifiable(
            "The torque is a straight line in the reading: gravity does not act on "
            "this joint, or it moved too little."
        )
    top = -b / (2.0 * c)
    moment = a + b * top + c * top**2
    if moment * c >= 0.0:
        raise NotIdentifiable(
            "The torque bends away from zero, as no cosine does: friction or coupling "
            "is larger than gravity on this joint."
        )
    q = np.linspace(*reach, 101)
    angle = np.arccos(np.clip((a + b * q + c * q**2) / moment, -1.0, 1.0))
    angle = np.where(q < top, -angle, angle)
    gain, phase = np.polyfit(q, angle, 1)
    turned = phase if moment > 0.0 else phase + np.pi
    return CosineFit(float(gain), float(np.angle(np.exp(1j * turned))), abs(moment))


def fit_exactly(
    coefficients: Float[np.ndarray, " 3"], reach: tuple[float, float]
) -> CosineFit:
    """The cosine whose best parabola over the reach is this one.

    The arccos line takes the parabola for the cosine itself, and so mistakes the
    gain by some percent; three coefficients determine the cosine without that error.
    """
    from scipy.optimize import least_squares

    first = fit_by_arccos(coefficients, reach)
    q = np.linspace(*reach, 101)
    powers = np.vander(q, 3, increasing=True)
    projector = np.linalg.pinv(powers)
    scale = max(abs(first.moment), 1e-12)

    def residual(x: np.ndarray) -> np.ndarray:
        curve = x[2] * scale * np.cos(x[0] * first.gain * q + x[1])
        return np.asarray((projector @ curve - coefficients) / scale)

    stretch, phase, height = least_squares(
        residual, [1.0, first.phase, 1.0], xtol=1e-12, ftol=1e-12
    ).x
    gain, moment = stretch * first.gain, height * scale
    # The arccos line is off by some percent: a factor of three is another solution.
    if not 0.3 < stretch < 3.0 or moment <= 0.0:
        return first
    return CosineFit(float(gain), float(np.angle(np.exp(1j * phase))), float(moment))


def approximation_error(
    degree: int, gain: float = 0.8, phase: float = 0.3, reach: float = 1.0
) -> float:
    """Largest error of the best polynomial for cos(α q + β) on |q| ≤ reach (Fig. 4.5).

    Relative to the cosine's whole travel over that reach, its "total magnitude".
    """
    q = np.linspace(-reach, reach, 2001)
    curve = np.cos(gain * q + phase)
    best = np.polynomial.Chebyshev.fit(q, curve, degree)
    return float(np.abs(best(q) - curve).max() / np.ptp(curve))
