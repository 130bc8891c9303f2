"""Excitation of a load: a motion within limits that determines its inertia best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import HeldBody
from armwise.errors import ArgumentError
from armwise.excitation import Bounds, bounds_of
from armwise.loads.estimate import SCALE, LoadEstimate
from armwise.motions import Fourier

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


_SAMPLES = 160
"""Samples of a period for the information matrix: sixteen per period of the tenth
harmonic, twice the fifth that the default has (accelerations enter squared)."""

_REACH = np.pi / 2
"""How far a joint goes to either side in [rad], whatever its limits: turning a wrist
further shows gravity from no new side."""

_RATE_HZ = 200.0
"""Samples per second that the expected standard deviations are for."""


@dataclass(frozen=True, eq=False)
class LoadExcitation:
    """A planned motion, and the accuracy to expect of it.

    Attributes:
        motion: The motion; begins and ends at rest.
        std: Standard deviations of the ten parameters to expect, in [kg], [kg m] and
            [kg m²], with the noise it was designed for.
        notes: Limits that were assumed, as the arm's description has none.
    """

    motion: Fourier
    std: Float[np.ndarray, " 10"]
    notes: tuple[str, ...] = ()


def design_load_excitation(
    arm: Arm,
    frame: str = "wrist",
    *,
    duration: float = 10.0,
    harmonics: int = 5,
    periods: int = 1,
    noise_std: tuple[float, float] = (0.1, 0.005),
    effort: float = 0.9,
    candidates: int = 400,
    seed: int = 0,
    known: LoadEstimate | None = None,
    start: ArrayLike | None = None,
) -> LoadExcitation:
    """Plan a motion within the arm's limits that determines a load's parameters best.

    Minimises the largest standard deviation among the inertia's components, the zeros
    of the sensor being unknown: random Fourier series, scaled to the limits, then
    small changes to the best of them.

    Args:
        arm: The arm; its limits bound position, velocity and acceleration.
        frame: Frame of the sensor.
        duration: In [s].
        harmonics: Highest multiple of the base frequency.
        periods: Times the series repeats within the duration.
        noise_std: White noise of force [N] and torque [N m].
        effort: Fraction of the limits to use.
        candidates: Motions to try.
        seed: Of the search.
        known: What is known of the load already, in the same frame: the motion then
            determines what it leaves open.
        start: Where the arm stands, in [rad] or [m]; the motion begins and ends there.
            None: about the middle of its range.
    """
    if duration <= 0 or harmonics < 3 or candidates < 2:
        raise ArgumentError(
            "A load excitation needs a positive duration, three harmonics or more to "
            "begin at rest, and at least two candidates."
        )
    if known is not None and known.frame != frame:
        raise ArgumentError(
            f"What is known of the load is in the frame {known.frame!r}, not {frame!r}."
        )
    random = np.random.default_rng(seed)
    bounds = bounds_of(arm)
    search = _Search(
        arm, bounds, HeldBody(arm, frame), periods / duration, periods, harmonics,
        noise_std, effort, _known_information(known), _start(arm, start),
    )  # fmt: skip
    shape = (2, arm.dof, harmonics)
    least, best = np.inf, np.zeros(shape)
    for trial in range(candidates):
        # Half the trials explore; the others refine, by a fifth of a typical size.
        explores = trial < candidates // 2
        step = random.normal(size=shape)
        candidate = step if explores else best + 0.2 * step * np.abs(best).mean()
        cost = search.cost(candidate)
        if cost < least:
            least, best = cost, candidate
    motion = search.motion(best)
    # Ranges are bounded by _REACH here, torques are not looked at, and accelerations
    # follow from speed and harmonics.
    notes = tuple(note for note in bounds.notes if note.startswith("No speed"))
    return LoadExcitation(motion, search.std(motion), notes)


def _start(arm: Arm, start: ArrayLike | None) -> Float[np.ndarray, " dof"] | None:
    """The pose to begin in, within the arm's limits."""
    if start is None:
        return None
    q = np.asarray(start, dtype=float)
    if q.shape != (arm.dof,) or not np.all(np.isfinite(q)):
        raise ArgumentError(f"start is {arm.dof} joint positions, not {q.size}.")
    outside = (q < arm.limits("lower")) | (q > arm.limits("upper"))
    if outside.any():
        name = arm.coordinate_names[int(np.argmax(outside))]
        raise ArgumentError(f"start is beyond the limits of {name}.")
    return q


def _known_information(known: LoadEstimate | None) -> Float[np.ndarray, "10 10"]:
    """Inverse covariance of the scaled parameters; nothing where they are unknown."""
    information = np.zeros((10, 10))
    if known is None:
        return information
    covariance = known.covariance / np.outer(SCALE, SCALE)
    used = np.flatnonzero(np.isfinite(np.diag(covariance)))
    block = np.ix_(used, used)
    # Pseudo-inverse: constraints of the fit may make a direction exactly known.
    information[block] = np.linalg.pinv(covariance[block], hermitian=True)
    return information


@dataclass(frozen=True, eq=False)
class _Search:
    arm: Arm
    bounds: Bounds
    body: HeldBody
    frequency: float
    periods: int
    harmonics: int
    noise_std: tuple[float, float]
    effort: float
    prior_information: Float[np.ndarray, "10 10"]
    start: Float[np.ndarray, " dof"] | None = None

    def cost(self, coefficients: np.ndarray) -> float:
        """Standard deviation of the least certain inertia, in [kg m²]."""
        return float(np.max(self.std(self.motion(coefficients))[4:]))

    def std(self, motion: Fourier) -> np.ndarray:
        """Standard deviations of the ten parameters to expect of a motion."""
        t = np.linspace(0.0, 1.0 / self.frequency, _SAMPLES, endpoint=False)
        A = self.body.regressor(*motion.sample(t)) * SCALE
        # The unknown zero of each channel takes up its mean.
        A = (A - A.mean(axis=0)) / np.repeat(self.noise_std, 3)[:, None]
        information = np.einsum("tcp,tcq->pq", A, A) / _SAMPLES
        # A motion that leaves a parameter undetermined gets a huge cost, not an error.
        information += 1e-12 * np.trace(information) * np.eye(10)
        count = _RATE_HZ * motion.duration
        total = count * information + self.prior_information
        return SCALE * np.sqrt(np.diag(np.linalg.inv(total)))

    def motion(self, coefficients: np.ndarray) -> Fourier:
        """Scale every joint to its limits, from rest to rest.

        Velocity at the start is Σ k sₖ, acceleration Σ k² cₖ: both are projected out.
        """
        k = np.arange(1, self.harmonics + 1)
        sine, cosine = coefficients / k
        sine = sine - np.outer(sine @ k, k) / (k @ k)
        squares = (k**2).astype(float)
        cosine = cosine - np.outer(cosine @ squares, squares) / (squares @ squares)
        middle, reach = self._range()
        unit = Fourier(np.zeros(self.arm.dof), sine, cosine, self.frequency, 1)
        t = np.linspace(0.0, unit.duration, 400)
        path = unit.sample(t)
        q, qd, qdd = (np.abs(part).max(axis=0) for part in path)
        limits = reach, self.bounds.velocity, self.bounds.acceleration
        ratios = [x / limit for x, limit in zip((q, qd, qdd), limits, strict=True)]
        if self.start is not None:
            # Room from where it stands, up and down; the series counts from its start.
            away = path[0] - path[0][0]
            low, high = self.arm.limits("lower"), self.arm.limits("upper")
            room_up = np.minimum(high - self.start, 2.0 * _REACH)
            room_down = np.minimum(self.start - low, 2.0 * _REACH)
            up = away.max(axis=0) / np.maximum(room_up, 1e-9)
            ratios[0] = np.maximum(up, -away.min(axis=0) / np.maximum(room_down, 1e-9))
        gain = self.effort / np.maximum(np.max(ratios, axis=0), 1e-9)
        if self.start is not None:
            middle = self.start - gain * path[0][0]
        return Fourier(
            middle, sine * gain[:, None], cosine * gain[:, None], self.frequency,
            self.periods,
        )  # fmt: skip

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = self.arm.limits("lower"), self.arm.limits("upper")
        bounded = np.isfinite(lower) & np.isfinite(upper)
        # An endless joint has no middle: inf − inf is no number.
        ends = np.where(bounded, [lower, upper], 0.0)
        middle = 0.5 * ends.sum(axis=0)
        reach = np.where(bounded, 0.5 * (upper - lower), _REACH)
        return middle, np.minimum(reach, _REACH)
