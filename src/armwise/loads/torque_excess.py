"""Excess of joint torques over the bare arm's: what a load has to explain.

The arm's own torque is measured, in an empty run of the same motion or of another, or
modelled, by an estimate or a description. What is left of its friction, its bodies and
its zeros stays in as columns with Gaussian priors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, inertial_transform
from armwise.dynamics import Dynamics, base_parameters
from armwise.errors import ArgumentError, EstimateWarning
from armwise.identification import Estimate
from armwise.loads.generalized_least_squares import Bias
from armwise.recordings import Samples
from armwise.regression import Columns

if TYPE_CHECKING:
    from jaxtyping import Float

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

STRETCHES = 12
"""Stretches of a run, to see how far what was learnt from it differs among them."""

_LOAD_FRICTION = 0.1
"""Standard deviation of load-dependent friction, as a fraction of the gear's load:
efficiencies of harmonic drives and planetary gears lie between 80 and 100 %."""

_ZERO = 0.1
"""Zero of a torque signal, as a fraction of a joint's torque: what does not change with
the pose is rather the weight that a short motion hardly tilts."""

_LOAD_ROUNDS = 3
"""Fits of the gears' load: the first knows of no friction that grows with it and takes
it for bodies; on current-driven arms the second changes the load by 4 to 6 %, the third
by 0.5 %, a fourth by 0.05 % (medians)."""


@dataclass(frozen=True, eq=False)
class TorqueExcess:
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


def torque_excess(
    data: Samples,
    model: Arm | Estimate,
    frame: str,
    bare: Samples | None,
    gain: Float[np.ndarray, " dof"],
) -> TorqueExcess:
    """Subtract the bare arm's torque, measured if there is an empty run, else modelled.

    Args:
        data: The motion with the load, torques times their gains.
        model: The arm, or an estimate of it.
        frame: The frame that carries the load.
        bare: The motion without load, torques times their gains.
        gain: The gains.

    Raises:
        ArgumentError: If the empty run is another motion and there is no estimate.
    """
    if isinstance(model, Estimate):
        if bare is None:
            return _over_estimate(data, model, frame, gain)
        return _over_other_motion(data, bare, model, frame)
    if bare is None:
        return _over_description(data, model, frame)
    return _over_bare(*align_runs(data, bare), model, frame)


def _over_bare(data: Samples, bare: Samples, arm: Arm, frame: str) -> TorqueExcess:
    """Subtract the empty run; its own fit corrects where the two motions differ."""
    dynamics = Dynamics(arm)
    grows = _load_friction(bare, dynamics)
    torque, own = _without_own(data, bare, grows, dynamics)
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
                    _load_friction(data, dynamics), grows, strict=True
                )
            ),
        ],
        _moves(data),
    )
    load = _load_regressor(dynamics, arm, data, frame)
    zeros, zeros_std = _zeros(data, size)
    return TorqueExcess(
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
    data: Samples, bare: Samples, grows: list[np.ndarray], dynamics: Dynamics
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
    now = bare.direction()
    trust = _trust(bare, dynamics)
    columns = np.zeros((len(bare), bare.dof, bare.dof * STRETCHES))
    stretch = np.arange(len(bare)) * STRETCHES // len(bare)
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
            [rows[stretch == k].T @ rows[stretch == k] for k in range(STRETCHES)]
        )
        values, noise = _ridge_by_residual(grams.sum(axis=0), trust[:, j].sum())
        without = [_ridge(grams.sum(axis=0) - gram, noise) for gram in grams]
        moved = change[:, j, used] * scale
        own = slice(0, moved.shape[1])
        torque[:, j] -= moved @ values[own]
        doubt = (np.array(without) - values)[:, own] * np.sqrt(1.0 - 1.0 / STRETCHES)
        columns[:, j, j * STRETCHES : (j + 1) * STRETCHES] = moved @ doubt.T
    return torque, columns


def _ridge(gram: np.ndarray, noise: float) -> np.ndarray:
    """Least squares of unknowns of unit size."""
    normal = gram[:-1, :-1] + noise**2 * np.eye(len(gram) - 1)
    return np.asarray(np.linalg.solve(normal, gram[:-1, -1]))


def _ridge_by_residual(gram: np.ndarray, count: float) -> tuple[np.ndarray, float]:
    """Least squares of unknowns of unit size, and the noise that this goes by.

    What is known before weighs against the rows as their own residual says.
    """
    size = np.sqrt(gram[-1, -1] / max(count, 1.0))
    noise = 1e-3 * size
    for _ in range(3):
        values = _ridge(gram, noise)
        residual = np.append(values, -1.0)
        power = residual @ gram @ residual / max(count, 1.0)
        noise = max(np.sqrt(max(power, 0.0)), 1e-6 * size, 1e-150)
    return values, float(noise)


def _over_estimate(
    data: Samples, estimate: Estimate, frame: str, gain: np.ndarray
) -> TorqueExcess:
    """Subtract what an identified model predicts, and let it err by its covariance.

    It was identified from torques with the same gains, so that its own torque is in
    recorded units: the gains multiply the load's only.
    """
    arm, dynamics = estimate.arm, Dynamics(estimate.arm)
    torque = data.tau - gain * estimate.predict(data)
    covariance = estimate.base_covariance
    is_known = np.isfinite(np.diag(covariance))
    inner = covariance[np.ix_(is_known, is_known)]
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    base = _base_columns(data, estimate)
    own = (base[:, :, is_known] @ root) * gain[:, None]
    columns, std = _per_joint(_own_friction(data, dynamics), _moves(data))
    # What the identification left open stays so: a wide prior, not a value.
    opened = base[:, :, ~is_known]
    return TorqueExcess(
        data,
        torque,
        _load_regressor(dynamics, arm, data, frame),
        np.concatenate([own, opened, columns], axis=2),
        np.concatenate([np.ones(own.shape[2]), np.full(opened.shape[2], 10.0), std]),
        _trust(data, dynamics),
        bias="none",  # the estimate has offsets, with their uncertainty
    )


def _over_other_motion(
    data: Samples, bare: Samples, estimate: Estimate, frame: str
) -> TorqueExcess:
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
    return TorqueExcess(
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


def _over_description(data: Samples, arm: Arm, frame: str) -> TorqueExcess:
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
    zeros, zeros_std = _zeros(data, _sizes(data)[0])
    return TorqueExcess(
        data,
        data.tau - own,
        _load_regressor(dynamics, arm, data, frame),
        np.concatenate([columns, zeros], axis=2),
        np.concatenate([std, zeros_std]),
        _trust(data, dynamics),
        warnings=(warning,),
        bias="none",
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

    The torque is that of rigid bodies that explain the recorded one, joint by joint,
    as near to the described ones as it lets them. The recorded torque itself will not
    do: of a joint that hardly carries anything it is friction, and its size times the
    direction is the load itself, not its friction.
    """
    arm, direction = dynamics.arm, data.direction()
    Y = dynamics.regressor(data.q, data.qd, data.qdd)
    slow = dynamics.regressor(data.q, data.qd, np.zeros_like(data.qdd))
    is_link, is_body = np.zeros((2, arm.layout.size), dtype=bool)
    is_link[arm.layout.links] = is_body[arm.layout.links] = True
    # Rotors sit before the gear: they explain torque, but do not load it.
    is_body[arm.layout.drive("rotor_inertia")] = True
    described = np.where(is_body, arm.parameters, 0.0)
    (size, speed), trust = _sizes(data), _trust(data, dynamics)
    whole, steady = (np.abs(x @ (is_link * described)) for x in (Y, slow))
    for j in range(data.dof):
        effect = np.sqrt(np.mean(Y[:, j] ** 2, axis=0))
        used = is_body & (effect > 1e-6 * effect[is_body].max(initial=1e-300))
        scale = _OWN_CHANGE * size[j] / effect[used]
        bodies = described.copy()
        for _ in range(_LOAD_ROUNDS):
            rows = np.column_stack([
                Y[:, j, used] * scale,
                # Friction as the filtered torque shows it.
                direction[:, j] * size[j],
                data.qd[:, j] * size[j] / speed[j],
                _LOAD_FRICTION * whole[:, j] * direction[:, j],
                _LOAD_FRICTION * steady[:, j] * direction[:, j],
                np.full(len(data), _ZERO * size[j]),
                data.tau[:, j] - Y[:, j] @ described,
            ])  # fmt: skip
            rows *= trust[:, j : j + 1]
            values, _ = _ridge_by_residual(rows.T @ rows, trust[:, j].sum())
            bodies[used] = described[used] + scale * values[: len(scale)]
            whole[:, j] = np.abs(Y[:, j] @ (is_link * bodies))
            steady[:, j] = np.abs(slow[:, j] @ (is_link * bodies))
    return [whole * direction, steady * direction]


def _load_regressor(
    dynamics: Dynamics, arm: Arm, data: Samples, frame: str
) -> Float[np.ndarray, "samples dof 10"]:
    link, T_link_frame = arm.find_frame(frame)
    own = dynamics.regressor(data.q, data.qd, data.qdd)[:, :, arm.layout.link(link)]
    load: np.ndarray = own @ inertial_transform(T_link_frame)
    return load


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
            "from the same start, or give an estimate of the empty arm (armwise "
            "identify) in place of the arm: the bare motion may then be any."
        )
