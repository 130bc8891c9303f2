"""Load and torque gains from the excess of joint torques over the bare arm's.

Recorded torques are true ones times a gain that is known to a few per cent at best, so
that a load is known no better than that: τ = exp(γⱼ) Yⱼ φ + friction, with γ as
uncertain as torque constants are (in the logarithm: 1 + γ would favour heavy loads, as
large products have large errors). Load, gains, friction and lag are estimated together,
each with what is known of it before (a Gaussian prior); what the log does not determine
of the gains remains in the load's covariance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters
from armwise.errors import ArgumentError, EstimateWarning, RecordingError
from armwise.files import json_text, write_atomically
from armwise.identification import Estimate
from armwise.loads.estimate import LoadEstimate, estimate_of
from armwise.loads.generalized_least_squares import (
    Bias,
    LoadSolution,
    scatter_of_stretches,
    solve_generalized,
)
from armwise.loads.noise_spectrum import RegressionRows, even_rate_hz
from armwise.loads.problem import require_arm
from armwise.loads.rigidity import assess_rigidity
from armwise.loads.torque_excess import STRETCHES, TorqueExcess, torque_excess
from armwise.recordings import Samples
from armwise.regression import GainStd, joint_gain_std, student_factor
from armwise.tables import read_json

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

# Torque gains: what is known of them before a load is estimated.

TorqueSignal = Literal["current", "sensor"]

# Judgement.
_COMMON = 0.4
"""Correlation of two joints' gain errors: one temperature, one way of scaling currents
for all amplifiers, one person who read the data sheet. Published sets for one arm are
wrong in the same direction; fully independent errors would average out over joints."""


@dataclass(frozen=True, eq=False)
class TorqueGains:
    """True torque of every joint over the recorded one, and how far it is known.

    Attributes:
        joint_names: Names of the joints.
        gain: Factors by which to multiply recorded torques (or currents).
        covariance: Of their relative errors.
        notes: What the user should know.
        is_calibrated: Whether a load determined them; else they are as recorded.
    """

    joint_names: tuple[str, ...]
    gain: Float[np.ndarray, " dof"]
    covariance: Float[np.ndarray, "dof dof"]
    notes: tuple[str, ...] = ()
    is_calibrated: bool = True

    @classmethod
    def as_recorded(
        cls, arm: Arm, std: GainStd | None = None, signal: TorqueSignal = "current"
    ) -> TorqueGains:
        """Gains of one, as uncertain as told, or as such a signal's are.

        Args:
            arm: The arm.
            std: Relative standard deviation; one number, or one per joint.
            signal: What torques were measured by.
        """
        each = joint_gain_std(std, arm.dof, signal)
        alike = _COMMON + (1.0 - _COMMON) * np.eye(arm.dof)
        return cls(
            arm.coordinate_names, np.ones(arm.dof), np.outer(each, each) * alike,
            is_calibrated=False,
        )  # fmt: skip

    def __repr__(self) -> str:
        """One line: the factors with their standard deviations."""
        factors = zip(self.gain[:8], self.std[:8], strict=True)
        listed = ", ".join(f"{gain:.4g} ± {std:.2g}" for gain, std in factors)
        more = ", …" if len(self.gain) > 8 else ""
        return f"<TorqueGains: {listed}{more}>"

    @property
    def std(self) -> Float[np.ndarray, " dof"]:
        """Standard deviation of each gain."""
        return self.gain * np.sqrt(np.diag(self.covariance))

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers, for a file."""
        return {
            "format": _GAINS_FORMAT,
            "joints": list(self.joint_names),
            "gain": self.gain.tolist(),
            "std": self.std.tolist(),
            "covariance": self.covariance.tolist(),
            "notes": list(self.notes),
        }


_GAINS_FORMAT = "armwise torque gains 1"


def write_torque_gains(gains: TorqueGains, path: str | Path) -> Path:
    """Write gains as JSON, for `identify_load(gains=)`."""

    write_atomically(Path(path), json_text(gains.to_dict()))
    return Path(path)


def read_torque_gains(path: str | Path, arm: Arm) -> TorqueGains:
    """Read gains that `write_torque_gains` wrote for this arm.

    Raises:
        ArgumentError: If the file holds none, or those of another arm.
    """
    table = read_json(Path(path), "torque gains", ArgumentError)
    try:
        if table.get("format") != _GAINS_FORMAT:
            raise ValueError(f"its format is not {_GAINS_FORMAT!r}")
        names = tuple(map(str, table["joints"]))
        gain = np.array(table["gain"], dtype=float)
        covariance = np.array(table["covariance"], dtype=float)
        is_sound = (
            gain.shape == (len(names),)
            and covariance.shape == (len(names),) * 2
            and bool(np.all(gain > 0.0) and np.all(gain < 1e9))
            and np.allclose(covariance, covariance.T)
            and float(np.linalg.eigvalsh(covariance).min()) > -1e-9
        )
        if not is_sound:
            raise ValueError("its numbers are none of torque gains")
    except (ValueError, KeyError, TypeError, np.linalg.LinAlgError) as problem:
        raise ArgumentError(
            f"{path} holds no torque gains ({problem}). Write them with armwise "
            "calibrate-torques -o."
        ) from None
    if names != arm.coordinate_names:
        raise ArgumentError(
            f"{path} holds gains of the joints {', '.join(names)}, but {arm.name} has "
            f"{', '.join(arm.coordinate_names)}."
        )
    return TorqueGains(names, gain, covariance, tuple(table.get("notes", ())))


@dataclass(frozen=True, eq=False)
class WeighedLoad:
    """What is known of a load before: at least its mass.

    Attributes:
        values: The ten parameters about the frame's origin.
        std: How well each is known; infinite: not at all.
    """

    values: Float[np.ndarray, " 10"]
    std: Float[np.ndarray, " 10"]

    @classmethod
    def of_mass(cls, mass: float, center: ArrayLike | None = None) -> WeighedLoad:
        """A body that was put on scales, its centre measured or not."""
        values, std = (
            np.zeros(10),
            mass * np.repeat([_SCALES, _REACH, _REACH**2], _SIZES),
        )
        values[0] = mass
        if center is not None:
            body = InertialParameters.from_center_of_mass(
                mass, np.asarray(center, dtype=float), np.zeros((3, 3))
            )
            values = body.vector.copy()
            std[1:4] = mass * _RULER
            std[4:] = mass * _GYRATION**2
        return cls(values, std)


_SCALES = 1e-3
"""Relative standard deviation of a weighed mass: kitchen scales."""

_RULER = 2e-3
"""Standard deviation of a measured centre of mass in [m]."""

_REACH = 0.5
"""Distance in [m] from its frame within which a load of unknown centre is held."""

_SIZES = (1, 3, 6)
"""Numbers of mass, first moments and inertias among the ten parameters."""

_GYRATION = 0.1
"""Radius of gyration in [m] of a load of which only mass and centre are known."""

_UNKNOWN_LAG = 0.005
"""Standard deviation in [s] of a torque's delay of which nothing is known: a few
periods of a robot's bus."""

_FARTHEST = 2.0
"""Logarithm of the largest gain that is looked for, beside a first guess: a factor of 7
is another unit, and no torque constant."""

_ROUNDS = 8
"""Linearisations of gain times load; each takes the error to a tenth."""


@dataclass(frozen=True, eq=False)
class TorqueSolution:
    """A load and the gains of the torques it was estimated from.

    Attributes:
        load: The load.
        gains: What is known of the gains afterwards.
    """

    load: LoadEstimate
    gains: TorqueGains


def load_from_torques(
    data: Samples,
    model: Arm | Estimate | None,
    frame: str,
    bare: Samples | None,
    gains: TorqueGains | None = None,
    known: WeighedLoad | None = None,
) -> TorqueSolution:
    """Find a load by the torques that it adds to the joints'.

    With `bare`, the same motion without load: the torques are subtracted instant by
    instant, so that friction, which depends on the motion, cancels; what is left of it
    (a change between the runs, what the load adds) has columns of its own. Without
    `bare`, the model predicts the arm's own torque: an estimate with its uncertainty,
    or an arm that was identified, which is taken to be exact.

    Raises:
        RecordingError: If torques are missing.
        ArgumentError: If the two motions are not the same.
    """
    arm = require_arm(data, model.arm if isinstance(model, Estimate) else model)
    _require_torque(data, "These samples")
    if arm.find_frame(frame)[0] == BASE:
        raise ArgumentError(f"{frame!r} is fixed to the base and carries nothing.")
    gains = gains or TorqueGains.as_recorded(arm)
    data = replace(data, tau=data.tau * gains.gain)
    if bare is not None:
        _require_torque(bare, "The bare samples")
        bare = replace(bare, tau=bare.tau * gains.gain)
    model = model if isinstance(model, Estimate) else arm
    excess = torque_excess(data, model, frame, bare, gains.gain)
    solution = _solve(excess, arm, frame, gains, known)
    if bare is not None or not isinstance(model, Estimate) or not gains.is_calibrated:
        return solution
    load = solution.load
    warning = EstimateWarning(
        "estimate-of-other-gains",
        f"mass {load.mass:.3g} ± {load.std.mass:.2g} kg: the estimate comes from "
        "torques without these gains, and its bodies are a compromise between joints. "
        "Give the log it was identified from, too (--bare; any motion).",
    )
    return replace(solution, load=replace(load, warnings=(*load.warnings, warning)))


def _solve(
    excess: TorqueExcess,
    arm: Arm,
    frame: str,
    gains: TorqueGains,
    known: WeighedLoad | None,
) -> TorqueSolution:
    """Estimate load, gains, friction and lag by Gauss–Newton on gain times load."""
    data, Y, dof = excess.samples, excess.load, arm.dof
    values, vectors = np.linalg.eigh(gains.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # γ = root · z, z of unit size
    middle = np.zeros(10) if known is None else known.values
    load_std = np.full(10, np.inf) if known is None else known.std
    lag_stds = (data.lag_std, data.preparation.lag_doubt)
    # Infinite: it was looked for and not found.
    lag = min([_UNKNOWN_LAG, *(std for std in lag_stds if std is not None)])
    trust = np.ones((len(data), dof)) if excess.trust is None else excess.trust
    phi, gamma, noise = middle.copy(), np.zeros(dof), None
    count = excess.own_count
    own = np.zeros((len(data), dof)) if excess.own is None else excess.own
    error = np.zeros(count)
    columns = excess.columns.copy()
    for _ in range(_ROUNDS):
        factor = np.exp(gamma)[None, :, None]
        columns[:, :, :count] = factor * excess.columns[:, :, :count]
        itself = factor[:, :, 0] * own
        torque = (factor * Y) @ phi
        scaled = torque + itself + columns[:, :, :count] @ error
        stretched = scaled[:, :, None] * root[None]
        late = -_rate(data, torque)[:, :, None]
        unknowns = np.concatenate([factor * Y, stretched, late, columns], axis=2)
        target = excess.torque - itself + gamma * scaled - (factor * Y) @ middle
        rows = RegressionRows(
            regressor=trust[:, :, None] * unknowns,
            target=trust * target,
            starts=data.starts,
            rate_hz=even_rate_hz(data.time, data.starts),
            channels=arm.coordinate_names,
            highest_hz=data.preparation.cutoff_hz or np.inf,
            prior_std=np.concatenate(
                [load_std, np.ones(dof), [lag], excess.column_std]
            ),
            size=float(np.sqrt(np.mean(data.tau**2, axis=0)).max()),
        )
        solution = solve_generalized(rows, excess.bias, start=noise)
        noise = solution.noise
        step = middle + solution.values[:10] - phi
        phi = middle + np.nan_to_num(solution.values[:10])
        gamma = root @ np.nan_to_num(solution.values[10 : 10 + dof])
        error = np.nan_to_num(solution.values[11 + dof : 11 + dof + count])
        gamma = np.clip(gamma, -_FARTHEST, _FARTHEST)  # wide priors may overshoot once
        std = np.sqrt(np.diag(solution.covariance)[:10])
        if np.all(np.abs(step) <= 0.01 * std, where=np.isfinite(step)):
            break
    if known is not None and np.any(np.abs(gamma) == _FARTHEST):
        raise ArgumentError(
            f"A load of {known.values[0]:.4g} kg does not go with these torques: they "
            f"would be wrong by a factor of {np.exp(_FARTHEST):.0f} or more. Is its "
            "mass in kg, and are torques in N m (currents: with a first guess)?"
        )
    solution = _widened(solution, rows, excess.bias)
    shown = replace(rows, target=rows.target + trust * ((factor * Y) @ middle))
    corrected = replace(
        solution,
        values=np.concatenate(
            [np.where(np.isfinite(solution.values[:10]), phi, np.nan),
             solution.values[10:]]
        ),
    )  # fmt: skip
    rigidity = assess_rigidity(shown, corrected.values)
    load = estimate_of(shown, data.time, corrected, frame, rigidity, excess.warnings)
    z = slice(10, 10 + dof)
    spread = np.nan_to_num(solution.covariance[z, z])
    # Directions of no effect keep what was known of them.
    unseen = ~np.isfinite(np.diag(solution.covariance)[z])
    spread[unseen, unseen] = 1.0
    after = TorqueGains(
        gains.joint_names,
        gains.gain * np.exp(-gamma),
        root @ spread @ root.T,
    )
    warning = _gain_warning(load, solution, rows, gains)
    return TorqueSolution(replace(load, warnings=(*load.warnings, *warning)), after)


def _widened(solution: LoadSolution, rows: RegressionRows, bias: Bias) -> LoadSolution:
    """Widen what scatters more from stretch to stretch than the noise explains.

    Friction at rest, gears that wind up: what no column describes is not noise.
    """
    scatter = scatter_of_stretches(rows, solution, bias, STRETCHES)
    # A variance of few stretches is itself in doubt: Student's t against a Gaussian.
    scatter *= student_factor(STRETCHES - 1, 0.95) / 1.96
    std = np.sqrt(np.diag(solution.covariance))
    ratio = np.where(std > 0.0, scatter / np.maximum(std, 1e-300), 1.0)
    stretch = np.where(np.isfinite(ratio), np.maximum(ratio, 1.0), 1.0)
    return replace(
        solution, covariance=solution.covariance * np.outer(stretch, stretch)
    )


def _gain_warning(
    load: LoadEstimate,
    solution: LoadSolution,
    rows: RegressionRows,
    gains: TorqueGains,
) -> tuple[EstimateWarning, ...]:
    """Say so where the gains decide how well the mass is known."""
    if gains.is_calibrated or not np.isfinite(load.std.mass) or load.mass <= 0.0:
        return ()
    # With the gains held where they are, the mass would be as well known as this.
    used = np.isfinite(np.diag(solution.covariance))
    used[10 : 10 + len(gains.joint_names)] &= True
    inner = np.flatnonzero(used)
    information = np.linalg.pinv(
        solution.covariance[np.ix_(inner, inner)], hermitian=True
    )
    is_gain = (inner >= 10) & (inner < 10 + len(gains.joint_names))
    others = np.linalg.pinv(information[np.ix_(~is_gain, ~is_gain)], hermitian=True)
    alone = float(np.sqrt(max(others[0, 0], 0.0)))
    if alone > 0.7 * load.std.mass:
        return ()
    typical = 100.0 * float(np.median(np.sqrt(np.diag(gains.covariance))))
    return (
        EstimateWarning(
            "gains-dominate",
            f"mass {load.mass:.3g} ± {load.std.mass:.2g} kg, mostly because the gains "
            f"of the torques are known to {typical:.2g} % only; a log with a known "
            f"load would bring this to ± {alone:.2g} kg: armwise calibrate-torques.",
        ),
    )


def _rate(data: Samples, torque: np.ndarray) -> np.ndarray:
    """Change of a torque in [N m/s], segment by segment."""
    rate = np.zeros_like(torque)
    for part in data.segments:
        if part.stop - part.start > 1:
            rate[part] = np.gradient(torque[part], axis=0) * data.rate_hz
    return rate


def _require_torque(samples: Samples, what: str) -> None:
    if not samples.has_torque:
        raise RecordingError(
            f"{what} hold neither a wrench nor joint torques; a load cannot be found "
            "from motion alone."
        )
