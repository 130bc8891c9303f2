"""Results of practice, on disk, and transferred to similar motions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.files import replacing
from armwise.learning.trial import InverseModel, nominal_command
from armwise.tables import read_arrays

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.motions import Motion


Ending = Literal["trials done", "noise floor", "no improvement", "plant diverged"]

_QUERIES = 500
"""States corrected at a time: with some thousand practised ones, 4 MB of weights."""

LARGEST_TORQUE = 1e5
"""Torque in [N m] or [N] that no arm has."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned of one motion.

    Attributes:
        command: The best command so far, one row per control period, in [N m] or [N].
        next_command: The one the next trial would play.
        period: Control period in [s].
        velocity_error, position_error: Root-mean-square errors, one row per trial.
        floor: Root-mean-square velocity that differs between two attempts with the
            same command, per joint; what no learning can remove. NaN if unknown.
        ending: Why it stopped.
    """

    command: Float[np.ndarray, "samples dof"]
    next_command: Float[np.ndarray, "samples dof"]
    period: float
    velocity_error: Float[np.ndarray, "trials dof"]
    position_error: Float[np.ndarray, "trials dof"]
    floor: Float[np.ndarray, " dof"]
    ending: Ending = "trials done"

    def __repr__(self) -> str:
        """One line: how much the error fell."""
        size = np.linalg.norm(self.position_error, axis=1)
        return (
            f"<Learned: {self.trials} trials, position error {size[0]:.3g} → "
            f"{size.min():.3g}, {self.ending}>"
            if len(size)
            else "<Learned: no trial yet>"
        )

    @property
    def trials(self) -> int:
        """Attempts made so far, repetitions for the noise floor not counted."""
        return len(self.velocity_error)

    @property
    def best(self) -> int:
        """Index of the best trial."""
        return int(np.argmin(self.overall_error)) if self.trials else 0

    @property
    def overall_error(self) -> Float[np.ndarray, " trials"]:
        """Root-mean-square velocity error over all joints, trial by trial."""
        mean: np.ndarray = np.sqrt(np.mean(self.velocity_error**2, axis=1))
        return mean

    @property
    def overall_floor(self) -> float:
        """Root-mean-square repeatability over all joints."""
        return float(np.sqrt(np.mean(self.floor**2)))

    @property
    def improvement(self) -> float:
        """First error over best error."""
        errors = self.overall_error
        # A simulated, noise-free plant may reach an error of exactly zero.
        return float(errors[0] / max(errors.min(), np.finfo(float).tiny))

    def with_trial(
        self, velocity_error: np.ndarray, position_error: np.ndarray
    ) -> Learned:
        """Add a trial to the record."""
        return replace(
            self,
            velocity_error=np.vstack([self.velocity_error, velocity_error]),
            position_error=np.vstack([self.position_error, position_error]),
        )


def save_learned(learned: Learned, path: str | Path) -> None:
    """Write to an .npz file, all at once or not at all."""
    target = Path(path)
    fields = {
        "command": learned.command,
        "next_command": learned.next_command,
        "period": np.array(learned.period),
        "velocity_error": learned.velocity_error,
        "position_error": learned.position_error,
        "floor": learned.floor,
        "ending": np.array(learned.ending),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **fields)  # type: ignore[arg-type]


def load_learned(path: str | Path) -> Learned:
    """Read what `save_learned` wrote.

    Raises:
        ArgumentError: If the file is something else or damaged.
    """
    arrays = read_arrays(Path(path), "a learned command", ArgumentError)
    try:
        return _learned(arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{path} does not hold a learned command ({error}). Delete it, or name "
            "another file."
        ) from error


def _learned(arrays: dict[str, np.ndarray]) -> Learned:
    """What was learned, from a file that anyone may have changed: it becomes torque."""
    command = _numbers(arrays["command"], LARGEST_TORQUE)
    if command.ndim != 2 or not command.size:
        raise ValueError("its command is no table")
    dof, period = command.shape[1], float(arrays["period"])
    next_command = _numbers(arrays["next_command"], LARGEST_TORQUE)
    velocity_error = _numbers(arrays["velocity_error"])
    position_error = _numbers(arrays["position_error"])
    floor = np.asarray(arrays["floor"], dtype=float)
    ending = str(arrays["ending"])
    rows = (len(velocity_error), dof)
    is_sound = (
        next_command.shape == command.shape
        and velocity_error.shape == position_error.shape == rows
        and floor.shape == (dof,)
        # NaN: the floor was not measured.
        and bool(np.all(np.isnan(floor) | (floor >= 0.0)))
        and 0.0 < period <= 1.0
        and ending in get_args(Ending)
    )
    if not is_sound:
        raise ValueError("its tables do not fit each other")
    return Learned(
        command=command,
        next_command=next_command,
        period=period,
        velocity_error=velocity_error,
        position_error=position_error,
        floor=floor,
        ending=ending,  # type: ignore[arg-type]
    )


def _numbers(values: np.ndarray, largest: float = np.inf) -> np.ndarray:
    if values.dtype.kind != "f" or not np.all(np.isfinite(values)):
        raise ValueError("it holds something else than finite numbers")
    if np.any(np.abs(values) > largest):
        raise ValueError(f"it holds torques beyond {largest:g} N m")
    return values


# Corrections transferred to similar motions (`atkeson1986` §7.1).


@dataclass(frozen=True, eq=False)
class LocalCorrection:
    """A local model of what the global one leaves out, from practised motions.

    At a new state it fits each joint's left-over torque, by locally weighted
    regression on the practised states nearest to it, as a line in that joint's
    velocity, direction and acceleration: friction and wrong inertias are such lines,
    so motions that are faster, slower or shifted are served as well. Far from all
    practice it fades to nothing.

    Attributes:
        model: The global model it corrects.
        states: Practised (q, q̇, q̈), one row each.
        leftover: Torque the model did not explain there, in [N m] or [N].
        spread: Size of a step in each column of `states` that counts as far.
        reach: Distance, in spreads, over which practice counts.
    """

    model: InverseModel
    states: Float[np.ndarray, "rows 3*dof"]
    leftover: Float[np.ndarray, "rows dof"]
    spread: Float[np.ndarray, " 3*dof"]
    reach: float = 0.25

    @classmethod
    def from_practice(
        cls,
        model: Arm | InverseModel,
        practised: list[tuple[Motion, Learned]],
        reach: float = 0.25,
        # Judgement: neighbouring control periods are nearly the same state, and the
        # cost grows with the rows.
        every: int = 4,
    ) -> LocalCorrection:
        """Build from motions and what was learned of each.

        Args:
            model: The global model that learning started from.
            practised: Motions and their learned commands.
            reach: Distance, in spreads, over which practice counts.
            every: Keep one of so many control periods.
        """
        if not practised:
            raise ArgumentError("There is nothing practised to reuse.")
        inverse = Dynamics(model) if isinstance(model, Arm) else model
        states, leftover = [], []
        for motion, learned in practised:
            middle = (np.arange(len(learned.command)) + 0.5) * learned.period
            sample = motion.sample(middle)
            states.append(np.concatenate(sample, axis=1)[::every])
            nominal = nominal_command(inverse, motion, learned.period)
            leftover.append((learned.command - nominal)[::every])
        rows = np.concatenate(states)
        # The unit of distance: a quarter of the practised range, near its deviation.
        spread = np.maximum(np.ptp(rows, axis=0) / 4.0, 1e-6)
        return cls(inverse, rows, np.concatenate(leftover), spread, reach)

    def torque(
        self,
        q: Float[np.ndarray, "samples dof"],
        qd: Float[np.ndarray, "samples dof"],
        qdd: Float[np.ndarray, "samples dof"],
    ) -> Float[np.ndarray, "samples dof"]:
        """Return the correction at new states in [N m] or [N]."""
        query = np.concatenate([q, qd, qdd], axis=1)
        # In blocks: weights are one number per query and practised state.
        blocks = [
            self._block(query[k : k + _QUERIES]) for k in range(0, len(query), _QUERIES)
        ]
        return np.concatenate([np.zeros((0, self.leftover.shape[1])), *blocks])

    def _block(self, query: np.ndarray) -> np.ndarray:
        a, b = query / self.spread, self.states / self.spread
        square = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1) - 2.0 * a @ b.T
        # The mean, not the sum, over dimensions: `reach` then means the same for any
        # number of joints. Rounding may leave a square below zero.
        distance = np.maximum(square, 0.0) / query.shape[1]
        weight = np.exp(-0.5 * distance / self.reach**2)
        columns = [self._joint(weight, query, j) for j in range(self.leftover.shape[1])]
        return np.stack(columns, axis=1)

    def _joint(self, weight: np.ndarray, query: np.ndarray, j: int) -> np.ndarray:
        """Locally weighted ridge regression for one joint, all queries at once.

        The ridge is what makes it fade: far away all weights vanish beside it.
        """
        X = self._features(self.states, j)
        size = X.shape[1]
        squares = (X[:, :, None] * X[:, None]).reshape(-1, size**2)
        normal = (weight @ squares).reshape(-1, size, size)
        right = weight @ (X * self.leftover[:, j, None])
        # A thousandth of one full-weight row: enough to fade, too little to bias.
        normal[:, range(size), range(size)] += 1e-3 * np.trace(X.T @ X) / X.shape[0]
        line = np.linalg.solve(normal, right[..., None])[..., 0]
        value: np.ndarray = np.einsum("si,si->s", line, self._features(query, j))
        return value

    def _features(self, states: np.ndarray, j: int) -> np.ndarray:
        n = self.leftover.shape[1]
        qd, qdd = states[:, n + j], states[:, 2 * n + j]
        scale_qd, scale_qdd = self.spread[n + j], self.spread[2 * n + j]
        # A smooth sign: data at rest must not decide a direction.
        direction = np.tanh(qd / (0.05 * scale_qd))
        columns = [np.ones(len(states)), direction, qd / scale_qd, qdd / scale_qdd]
        return np.stack(columns, axis=1)

    def command(
        self, motion: Motion, period: float
    ) -> Float[np.ndarray, "samples dof"]:
        """Return the corrected feedforward for a motion, one row per period."""
        samples = max(1, round(motion.duration / period))
        sample = motion.sample((np.arange(samples) + 0.5) * period)
        corrected: np.ndarray = nominal_command(
            self.model, motion, period
        ) + self.torque(*sample)
        return corrected
