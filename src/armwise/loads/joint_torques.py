"""Load from joint torques: their excess over the bare arm's, measured or modelled.

Recorded torques are true ones times a gain that is known to a few per cent at best, so
that a load is known no better than that: τ = exp(γⱼ) Yⱼ φ + friction, with γ as
uncertain as torque constants are (in the logarithm: 1 + γ would favour heavy loads, as
large products have large errors). Load, gains, friction and lag are estimated together,
each with what is known of it before (a Gaussian prior); what the log does not determine
of the gains remains in the load's covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters, inertial_transform
from armwise.dynamics import Dynamics, base_parameters
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
from armwise.recordings import Samples
from armwise.regression import Columns, student_factor
from armwise.tables import read_json

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

# Torque gains: what is known of them before a load is estimated.

TorqueSignal = Literal["current", "sensor"]

SIGNAL_GAIN_STD: dict[str, float] = {"current": 0.1, "sensor": 0.02}
"""Relative standard deviation of a torque's gain by what was measured. Published torque
constants of one arm differ by 10 % and more, and change with the magnets' temperature;
data sheets of joint torque sensors give 1 to 2 %."""

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
        cls, arm: Arm, std: ArrayLike | None = None, signal: TorqueSignal = "current"
    ) -> TorqueGains:
        """Gains of one, as uncertain as told, or as such a signal's are.

        Args:
            arm: The arm.
            std: Relative standard deviation; one number, or one per joint.
            signal: What torques were measured by.
        """
        assumed = SIGNAL_GAIN_STD[signal] if std is None else std
        each = np.asarray(assumed, dtype=float)
        if each.ndim > 1 or each.size not in (1, arm.dof):
            raise ArgumentError(
                f"gain_std is one number or one per joint, {arm.dof}; not {each.size}."
            )
        each = np.broadcast_to(each, (arm.dof,))
        if not np.all(np.isfinite(each)) or np.any(each < 0.0) or np.any(each > 1.0):
            raise ArgumentError("gain_std must lie between 0 and 1 (100 %).")
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

# What the torque depends on beside the load: friction, lag, the arm's own parameters.

_LEAST_SPEED = 0.05
"""Root-mean-square speed of a joint beside the fastest joint's, below which it has no
friction column: it hardly moves, and its direction is that of noise."""

_FRICTION_CHANGE = 0.3
"""Change of friction between two runs, as a fraction of a joint's torque: gears warm
up. Wide: the motion's reversals determine it."""

_OWN_CHANGE = 0.3
"""How far each of the arm's own parameters may be off its description's, as a fraction
of a joint's torque: a fifth is usual, and some say nothing of rotors."""

_SLOW_SPEEDS = (0.04, 0.15)
"""Speeds below which friction rises, as fractions of a joint's top speed: drives
differ, and what lies between is a mixture of the two."""

_STRETCHES = 12
"""Stretches of a run, to see how far what was learnt from it differs among them."""

_LOAD_FRICTION = 0.1
"""Standard deviation of load-dependent friction, as a fraction of the gear's load:
efficiencies of harmonic drives and planetary gears lie between 80 and 100 %."""

_UNKNOWN_LAG = 0.005
"""Standard deviation in [s] of a torque's delay of which nothing is known: a few
periods of a robot's bus."""

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


@dataclass(frozen=True, eq=False)
class _Excess:
    """Torque that a load has to explain, in recorded units times the known gains.

    Attributes:
        samples: The motion with the load.
        torque: What is left of the torque without the arm's.
        load: Its regressor on the ten parameters.
        columns, column_std: Further unknowns, and what is known of them.
        trust: 1, or 0 where a joint's friction reverses; None: all rows count.
        own: Torque of the arm itself, in true units, that the gains multiply as they do
            the load's; the first columns are what it may err by. None: recorded units.
        own_count: How many columns these are.
        bias: Whether each segment has a zero of its own.
    """

    samples: Samples
    torque: Float[np.ndarray, "samples dof"]
    load: Float[np.ndarray, "samples dof 10"]
    columns: Float[np.ndarray, "samples dof more"]
    column_std: Float[np.ndarray, " more"]
    trust: Float[np.ndarray, "samples dof"] | None = None
    own: Float[np.ndarray, "samples dof"] | None = None
    own_count: int = 0
    warnings: tuple[EstimateWarning, ...] = ()
    bias: Bias = "segment"


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
    if bare is not None and isinstance(model, Estimate):
        excess = _over_other_motion(data, bare, model, frame, gains)
    elif bare is not None:
        excess = _over_bare(*align_runs(data, bare), arm, frame)
    elif isinstance(model, Estimate):
        excess = _over_estimate(data, model, frame, gains)
    else:
        excess = _over_description(data, arm, frame)
    return _solve(excess, arm, frame, gains, known)


def _over_bare(data: Samples, bare: Samples, arm: Arm, frame: str) -> _Excess:
    """Subtract the empty run; its own fit corrects where the two motions differ."""
    dynamics = Dynamics(arm)
    torque, own = _without_own(data, bare, dynamics)
    now, before = data.direction(), bare.direction()
    size, speed = _sizes(data)
    columns, std = _per_joint(
        [
            (now - before, size),
            (now, _FRICTION_CHANGE * size),
            (data.qd - bare.qd, size / speed),
            (data.qd, _FRICTION_CHANGE * size / speed),
            *(
                (loaded - empty, _FRICTION_CHANGE * size)
                for loaded, empty in zip(
                    _slow_friction(data), _slow_friction(bare), strict=True
                )
            ),
            *(
                (loaded - empty, np.full(arm.dof, _LOAD_FRICTION))
                for loaded, empty in zip(
                    _load_friction(data, dynamics),
                    _load_friction(bare, dynamics),
                    strict=True,
                )
            ),
        ],
        _moves(data),
    )
    load = _load_regressor(dynamics, arm, data, frame)
    zeros, zeros_std = _zeros(data, size)
    return _Excess(
        data,
        torque,
        load,
        np.concatenate([columns, own, zeros], axis=2),
        np.concatenate([std, np.ones(own.shape[2]), zeros_std]),
        _trust(data, dynamics) * _trust(bare, dynamics),
        bias="none",
    )


def _zeros(data: Samples, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of a zero of every joint in every segment, as large as they may be."""
    zeros = np.zeros((len(data), data.dof, data.dof * len(data.starts)))
    for k, part in enumerate(data.segments):
        zeros[part, :, k * data.dof : (k + 1) * data.dof] = np.eye(data.dof)
    # Ten times the torque itself: no bound, but a number.
    return zeros, np.tile(10.0 * size, len(data.starts))


def _trust(data: Samples, dynamics: Dynamics) -> Float[np.ndarray, "samples dof"]:
    """Which rows to learn from: 1, or 0 while a joint's friction reverses.

    A joint that sticks for a moment is held by friction, which then carries as much of
    the load as it likes: the rows around it say nothing of the load, and too much.
    """
    columns = Columns(dynamics.arm, dynamics=dynamics)
    trust = columns.trust(data, columns.signals(data)[1][4:])
    return np.ones((len(data), data.dof)) if trust is None else trust


def _without_own(
    data: Samples, bare: Samples, dynamics: Dynamics
) -> tuple[Float[np.ndarray, "samples dof"], Float[np.ndarray, "samples dof unknowns"]]:
    """Difference of the torques without what the arm itself adds to it, and its doubt.

    A loop that yields lets the loaded arm move otherwise, and a description that is off
    by a fifth takes what that changes for the load. Bodies that explain the empty run
    take its place, joint by joint: gains that differ make different bodies of one link.
    What they would be without each stretch of the run is in doubt.

    Returns:
        The torque, and columns of unknowns of unit size.
    """
    arm = dynamics.arm
    # Friction is no part of it: filtered torques show it otherwise than its equation.
    is_friction = np.zeros(arm.layout.size, dtype=bool)
    is_friction[arm.layout.drive("viscous", "coulomb", "offset")] = True
    base = [k for k in base_parameters(arm).indices if not is_friction[k]]
    full, empty = (dynamics.regressor(x.q, x.qd, x.qdd) for x in (data, bare))
    described = np.where(is_friction, 0.0, arm.parameters)
    torque = data.tau - bare.tau - (full - empty) @ described
    target = bare.tau - empty @ described
    change, empty = (full - empty)[:, :, base], empty[:, :, base]
    size, speed = _sizes(bare)
    now, grows = bare.direction(), _load_friction(bare, dynamics)
    trust = _trust(bare, dynamics)
    columns = np.zeros((len(bare), bare.dof, bare.dof * _STRETCHES))
    stretch = np.arange(len(bare)) * _STRETCHES // len(bare)
    for j in range(bare.dof):
        effect = np.sqrt(np.mean(empty[:, j] ** 2, axis=0))
        used = effect > 1e-6 * effect.max(initial=1e-300)
        scale = _OWN_CHANGE * size[j] / effect[used]
        friction = np.column_stack([
            now[:, j] * size[j],
            bare.qd[:, j] * size[j] / speed[j],
            *(_LOAD_FRICTION * part[:, j] for part in grows),
            np.full(len(bare), size[j]),
        ])  # fmt: skip
        rows = np.column_stack([empty[:, j, used] * scale, friction, target[:, j]])
        rows *= trust[:, j : j + 1]
        grams = np.stack(
            [rows[stretch == k].T @ rows[stretch == k] for k in range(_STRETCHES)]
        )
        # Weight of what is known before against the rows: their own residual's.
        noise = 1e-3 * size[j]
        for _ in range(3):
            values = _ridge(grams.sum(axis=0), noise)
            residual = np.append(values, -1.0)
            power = (
                residual @ grams.sum(axis=0) @ residual / max(trust[:, j].sum(), 1.0)
            )
            noise = max(np.sqrt(max(power, 0.0)), 1e-6 * size[j])
        without = [_ridge(grams.sum(axis=0) - gram, noise) for gram in grams]
        moved = change[:, j, used] * scale
        own = slice(0, moved.shape[1])
        torque[:, j] -= moved @ values[own]
        doubt = (np.array(without) - values)[:, own] * np.sqrt(1.0 - 1.0 / _STRETCHES)
        columns[:, j, j * _STRETCHES : (j + 1) * _STRETCHES] = moved @ doubt.T
    return torque, columns


def _ridge(gram: np.ndarray, noise: float) -> np.ndarray:
    """Least squares of unknowns of unit size."""
    normal = gram[:-1, :-1] + noise**2 * np.eye(len(gram) - 1)
    return np.asarray(np.linalg.solve(normal, gram[:-1, -1]))


def _over_estimate(
    data: Samples, estimate: Estimate, frame: str, gains: TorqueGains
) -> _Excess:
    """Subtract what an identified model predicts, and let it err by its covariance.

    It was identified from torques with the same gains, so that its own torque is in
    recorded units: the gains multiply the load's only.
    """
    arm = estimate.arm
    torque = data.tau - gains.gain * estimate.predict(data)
    covariance = estimate.base_covariance
    is_known = np.isfinite(np.diag(covariance))
    inner = covariance[np.ix_(is_known, is_known)]
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    base = _base_columns(data, estimate)
    own = (base[:, :, is_known] @ root) * gains.gain[:, None]
    columns, std = _per_joint(_own_friction(data, Dynamics(arm)), _moves(data))
    # What the identification left open stays so: a wide prior, not a value.
    opened = base[:, :, ~is_known]
    return _Excess(
        data,
        torque,
        _load_regressor(Dynamics(arm), arm, data, frame),
        np.concatenate([own, opened, columns], axis=2),
        np.concatenate([np.ones(own.shape[2]), np.full(opened.shape[2], 10.0), std]),
        bias="none",  # the estimate has offsets, with their uncertainty
    )


def _over_other_motion(
    data: Samples, bare: Samples, estimate: Estimate, frame: str, gains: TorqueGains
) -> _Excess:
    """Take both motions as rows, the arm's own parameters as unknowns of both.

    The estimate of the empty arm is where they are looked for; its uncertainty is not
    used, as the rows it comes from are here too.
    """
    arm, both = estimate.arm, Samples.concatenate([bare, data])
    dynamics = Dynamics(arm)
    base = _base_columns(both, estimate)
    size, _ = _sizes(both)
    effect = np.sqrt(np.mean((base / size[:, None]) ** 2, axis=(0, 1)))
    used = effect > 1e-9
    # One run after the other: the bodies of the loaded one are not the empty arm's.
    grows = [_load_friction(run, dynamics) for run in (bare, data)]
    friction, std = _per_joint(
        [
            (np.concatenate(pair), np.full(arm.dof, _LOAD_FRICTION))
            for pair in zip(*grows, strict=True)
        ],
        _moves(both),
    )
    load = _load_regressor(dynamics, arm, both, frame)
    load[: len(bare)] = 0.0
    return _Excess(
        both,
        both.tau,
        load,
        np.concatenate([base[:, :, used], friction], axis=2),
        # Ten times the torque itself: no bound, but a number.
        np.concatenate([10.0 / effect[used], std]),
        np.concatenate([_trust(run, dynamics) for run in (bare, data)]),
        own=estimate.predict(both),
        own_count=int(used.sum()),
        bias="none",
    )


def _base_columns(data: Samples, estimate: Estimate) -> np.ndarray:
    """Regressor of the base parameters an estimate has, joint by joint."""
    columns = estimate.columns
    leaders = columns.user[:, list(estimate.base.indices)]
    base = np.zeros((len(data), estimate.prior_arm.dof, leaders.shape[1]))
    for block in columns.blocks([data]):
        for i, (support, matrix) in enumerate(
            zip(columns.support, block.joints, strict=True)
        ):
            base[block.rows, i] = (leaders[support].T @ matrix[:-1]).T
    return base


def _over_description(data: Samples, arm: Arm, frame: str) -> _Excess:
    """Subtract the torque of an arm that was identified from such torques.

    Its parameters are then in recorded units: the gains multiply the load's only.
    """
    dynamics = Dynamics(arm)
    own = dynamics.inverse_dynamics(data.q, data.qd, data.qdd)
    columns, std = _per_joint(_own_friction(data, dynamics), _moves(data))
    warning = EstimateWarning(
        "arm-taken-as-exact",
        f"The parameters of {arm.name} are taken to be exact, and the interval does "
        "not know of their errors: give an estimate.json of armwise identify in place "
        "of the arm, or the same motion without load (--bare).",
    )
    return _Excess(
        data,
        data.tau - own,
        _load_regressor(dynamics, arm, data, frame),
        columns,
        std,
        warnings=(warning,),
    )


def _own_friction(
    data: Samples, dynamics: Dynamics
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Friction that a model may lack, and how large it may be."""
    size, speed = _sizes(data)
    now = data.direction()
    grows = np.full(data.dof, _LOAD_FRICTION)
    return [
        (now, size),
        (data.qd, size / speed),
        *((column, grows) for column in _load_friction(data, dynamics)),
    ]


def _slow_friction(data: Samples) -> list[np.ndarray]:
    """Friction that falls as motion starts: two columns a joint, fast and slow."""
    fastest = np.abs(data.qd).max(axis=0) + 1e-12
    now, speed = data.direction(), np.abs(data.qd)
    return [now * np.exp(-speed / (f * fastest)) for f in _SLOW_SPEEDS]


def _load_friction(data: Samples, dynamics: Dynamics) -> list[np.ndarray]:
    """Friction per unit of the torque that each gear carries: two columns a joint.

    Of all of it, or of what it carries without accelerating: what a gear's friction
    grows with differs from make to make, and the two explain a load otherwise.

    The torque is that of any rigid bodies that explain the recorded one, joint by
    joint, not the described ones. The recorded torque itself will not do: of a joint
    that hardly carries anything it is friction, and its size times the direction is the
    load itself, not its friction.
    """
    arm = dynamics.arm
    Y = dynamics.regressor(data.q, data.qd, data.qdd)
    slow = dynamics.regressor(data.q, data.qd, np.zeros_like(data.qdd))
    is_link = np.zeros(arm.layout.size, dtype=bool)
    is_link[arm.layout.links] = True
    direction = data.direction()
    whole, steady = np.empty((2, *data.tau.shape))
    for j in range(arm.dof):
        # Friction as the filtered torque shows it, beside the links' columns.
        friction = [direction[:, j], data.qd[:, j], np.ones(len(data))]
        columns = np.column_stack([Y[:, j, is_link], *friction])
        scale = np.linalg.norm(columns, axis=0)
        used = scale > 1e-9 * scale.max()
        # Combinations that hardly show are left out: 1e-3 of the largest.
        scaled = columns[:, used] / scale[used]
        values = np.zeros(used.size)
        values[used] = np.linalg.lstsq(scaled, data.tau[:, j], rcond=1e-3)[0]
        bodies = (values / np.where(used, scale, 1.0))[: -len(friction)]
        whole[:, j] = np.abs(Y[:, j, is_link] @ bodies)
        steady[:, j] = np.abs(slow[:, j, is_link] @ bodies)
    return [whole * direction, steady * direction]


def _load_regressor(
    dynamics: Dynamics, arm: Arm, data: Samples, frame: str
) -> Float[np.ndarray, "samples dof 10"]:
    link, T_link_frame = arm.find_frame(frame)
    own = dynamics.regressor(data.q, data.qd, data.qdd)[:, :, arm.layout.link(link)]
    load: np.ndarray = own @ inertial_transform(T_link_frame)
    return load


def _solve(
    excess: _Excess,
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
        )
        solution = solve_generalized(rows, excess.bias, start=noise)
        noise = solution.noise
        step = middle + solution.values[:10] - phi
        phi = middle + np.nan_to_num(solution.values[:10])
        gamma = root @ np.nan_to_num(solution.values[10 : 10 + dof])
        error = np.nan_to_num(solution.values[11 + dof : 11 + dof + count])
        gamma = np.clip(gamma, -2.0, 2.0)  # wide priors may overshoot once
        std = np.sqrt(np.diag(solution.covariance)[:10])
        if np.all(np.abs(step) <= 0.01 * std, where=np.isfinite(step)):
            break
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
    scatter = scatter_of_stretches(rows, solution, bias, _STRETCHES)
    # A variance of few stretches is itself in doubt: Student's t against a Gaussian.
    scatter *= student_factor(_STRETCHES - 1, 0.95) / 1.96
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
    if gains.is_calibrated or not np.isfinite(load.std.mass):
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


def _sizes(data: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Root mean square of each joint's torque and speed."""
    size = np.sqrt(np.mean(data.tau**2, axis=0))
    speed = np.sqrt(np.mean(data.qd**2, axis=0))
    return np.maximum(size, 1e-9), np.maximum(speed, 1e-9)


def _moves(data: Samples) -> np.ndarray:
    speed = np.sqrt(np.mean(data.qd**2, axis=0))
    moves: np.ndarray = speed > _LEAST_SPEED * max(float(speed.max()), 1e-9)
    return moves


def _per_joint(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], moves: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One column per joint and part, with its prior; none that is zero throughout."""
    samples, dof = parts[0][0].shape
    columns, stds = [], []
    for part, std in parts:
        for j in np.flatnonzero(moves):
            if np.sqrt(np.mean(part[:, j] ** 2)) > 1e-9:
                column = np.zeros((samples, dof))
                column[:, j] = part[:, j]
                columns.append(column)
                stds.append(std[j])
    if not columns:
        return np.zeros((samples, dof, 0)), np.zeros(0)
    return np.stack(columns, axis=2), np.array(stds)


def _require_torque(samples: Samples, what: str) -> None:
    if not samples.has_torque:
        raise RecordingError(
            f"{what} hold neither a wrench nor joint torques; a load cannot be found "
            "from motion alone."
        )


# The same motion recorded twice, on one time base.

_LARGEST_SHIFT = 0.5
"""Difference of the two clocks in [s] to search, either way: about what starting both
recordings by hand leaves."""


def align_runs(data: Samples, bare: Samples) -> tuple[Samples, Samples]:
    """Return both runs at the same instants of the motion.

    Clocks need not agree: each segment is shifted to where the positions fit best.

    Raises:
        ArgumentError: If it is not the same motion.
    """
    if len(data.starts) != len(bare.starts) or data.dof != bare.dof:
        raise ArgumentError(
            f"The loaded motion has {len(data.starts)} segments of {data.dof} joints, "
            f"the bare one {len(bare.starts)} of {bare.dof}; they must be the same "
            "motion."
        )
    pairs = [
        _align_segment(data[loaded], bare[empty])
        for loaded, empty in zip(data.segments, bare.segments, strict=True)
    ]
    data = Samples.concatenate([pair[0] for pair in pairs])
    bare = Samples.concatenate([pair[1] for pair in pairs])
    _require_same_motion(data, bare)
    return data, bare


def _align_segment(data: Samples, bare: Samples) -> tuple[Samples, Samples]:
    shift = _best_shift(data, bare)
    at = data.time + shift
    inside = np.flatnonzero((at >= bare.time[0]) & (at <= bare.time[-1]))
    if inside.size < 10:
        raise ArgumentError(
            "The bare motion and the loaded one do not overlap in time; they must be "
            "the same motion, begun alike."
        )
    data = data[int(inside[0]) : int(inside[-1]) + 1]
    at = data.time + shift

    def resampled(values: np.ndarray) -> np.ndarray:
        columns = [np.interp(at, bare.time, column) for column in values.T]
        return np.stack(columns, axis=1)

    return data, Samples(
        time=data.time,
        q=resampled(bare.q),
        qd=resampled(bare.qd),
        qdd=resampled(bare.qdd),
        tau=resampled(bare.tau),
        preparation=bare.preparation,
        arm=bare.arm,
        temperature=None if bare.temperature is None else resampled(bare.temperature),
    )


def _best_shift(data: Samples, bare: Samples) -> float:
    """Time [s] to add to the loaded run's clock for that of the bare one."""
    # Clocks either agree, or both start with the recording: search around both.
    coarse = np.linspace(-_LARGEST_SHIFT, _LARGEST_SHIFT, 101)
    best = min(
        (_distance(data, bare, base + s), base + s)
        for base in (0.0, float(bare.time[0] - data.time[0]))
        for s in coarse
    )[1]
    for width in (0.01, 0.001):  # one step of the grid before, in tenths
        fine = best + np.linspace(-width, width, 21)
        best = min((_distance(data, bare, float(s)), float(s)) for s in fine)[1]
    return best


def _distance(data: Samples, bare: Samples, shift: float) -> float:
    """Mean squared distance of the positions, where both were recorded."""
    rows = slice(None, None, max(1, len(data) // 300))  # 300 points show a shift
    at = data.time[rows] + shift
    inside = (at >= bare.time[0]) & (at <= bare.time[-1])
    if inside.mean() < 0.5:  # a short overlap always fits somewhere
        return float("inf")
    columns = [np.interp(at[inside], bare.time, column) for column in bare.q.T]
    difference = data.q[rows][inside] - np.stack(columns, axis=1)
    return float(np.sum(np.mean(difference**2, axis=0)))


def is_same_motion(data: Samples, bare: Samples) -> bool:
    """Whether two runs are one motion, which `align_runs` could subtract."""
    try:
        align_runs(data, bare)
    except ArgumentError:
        return False
    return True


def _require_same_motion(data: Samples, bare: Samples) -> None:
    difference = np.sqrt(np.mean((data.q - bare.q) ** 2, axis=0))
    # A tenth of the joint's own motion, and 0.02 rad for joints that hardly move: the
    # model corrects for what a servo's tracking error makes the two differ by.
    allowed = 0.1 * data.q.std(axis=0) + 0.02
    worst = int(np.argmax(difference - allowed))
    if difference[worst] > allowed[worst]:
        raise ArgumentError(
            f"The bare motion is not the loaded one: joint {worst + 1} differs by "
            f"{difference[worst]:.3f} rad (root mean square). Repeat the same motion, "
            "from the same start, or leave out bare and give an identified arm."
        )
