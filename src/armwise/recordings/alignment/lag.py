"""Delay, earlier low-pass and useful band between motion and torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.recordings.samples import LONGEST_LAG
from armwise.recordings.smoothing import shifted
from armwise.recordings.spectra import band_powers
from armwise.regression import (
    friction_direction,
    hysteresis_terms,
    interval_factor,
    load_rows,
    stuck_or_creeping,
    student_factor,
    torque_slope,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from armwise.recordings.samples import Samples
    from armwise.regression import Columns, TorqueProjection

# With ten, the variance of a lag is itself known to √(2/9), about a half.
BLOCKS = 10
"""Stretches of time left out in turn (a jackknife) for the standard error of a lag:
few enough that each is longer than the noise is correlated."""

# Judgement: 0.4² = 0.16 of the power.
EXPLAINED = 0.4
"""Largest residual, as a fraction of the torque's amplitude, in a band worth keeping:
there, motion still explains five sixths of the torque's power."""

# Judgement: a fall of 30 %, in the median over the joints.
CLEARLY_BETTER = 0.7
"""Fraction to which an earlier low-pass must bring the residual's power before it is
assumed: one more parameter that only fits noise gains far less."""


def find_lag(projection: TorqueProjection, bandwidth_hz: float) -> float:
    """Find roughly, to a few milliseconds, the delay that explains the torque best.

    Args:
        projection: What the motion explains.
        bandwidth_hz: Low-pass through which Coulomb friction is seen in [Hz].
    """
    tau, rate = projection.signals.tau, projection.signals.rate_hz
    # The valley of the residual's power is as wide as the motion is slow: steps of 5 ms
    # do not miss it.
    lags = np.linspace(-LONGEST_LAG, LONGEST_LAG, 41)
    delayed = [shifted(tau, lag * rate) for lag in lags]
    seen = projection.without_sticking()
    residual = seen.residuals(np.stack(delayed, axis=2), bandwidth_hz)
    scores = _score(np.sum(residual**2, axis=0).T)
    return float(np.clip(_minimum(lags, scores), -LONGEST_LAG, LONGEST_LAG))


@dataclass(frozen=True, eq=False)
class LagFit:
    """A delay of the torque behind the motion, fitted beside all parameters.

    Attributes:
        seconds: The delay in [s].
        std: Its standard error in [s], by leaving out stretches of time, with how far
            it depends on columns that no parameter has.
        slow_friction: For each joint, friction where it hardly moves beyond friction
            where it moves, as a fraction of the latter; NaN where neither is known.
        fast: The delay and its standard error again, from rows of fast motion alone;
            None where the delay was not fitted.
        is_fragile: Whether rows near reversals, or columns that no parameter has, make
            another one of it: friction that grows with the load, or elastic joints.
    """

    seconds: float
    std: float
    slow_friction: Float[np.ndarray, " joints"]
    fast: tuple[float, float] | None = None
    is_fragile: bool = False


# Judgement: more than what a few rows, or twenty columns, change by themselves.
_OTHER_ROWS, _OTHER_COLUMNS = 0.5, 1.0
"""Standard errors by which a delay may differ from that of more rows, or columns."""


def fit_lag(
    samples: Samples, columns: Columns, lag: float, is_open: bool = True
) -> LagFit:
    """Fit the delay of the torque together with all that explains it.

    Rows in which friction reverses or a joint hardly moves have no weight: friction
    that is taken for one thing and is another would look like a delay. So would
    friction that grows with the load, and joints that wind up: there are columns of
    either where the delay is surer beside them.

    Args:
        samples: Motion and torque; the torque's delay not yet taken out.
        columns: What explains the torque.
        lag: A rough delay to start from in [s], or the known one.
        is_open: Whether the delay is to be fitted.
    """
    widened = replace(columns, has_lags=True)
    if not is_open:
        step = _stepped(samples, widened, lag, is_open=False)
        slow = _slow_friction(widened, step.late, step.fit, step.errors)
        return LagFit(step.seconds, step.std, slow)
    settled = _settled(samples, widened)
    step, (bare, *_, beside_all) = _fitted(settled, widened, lag)
    near = _stepped(
        samples, widened, step.seconds, step.shown, has_errors=False
    ).seconds
    is_fragile = abs(near - step.seconds) > _OTHER_ROWS * step.std
    doubt = abs(beside_all.seconds - step.seconds)
    is_fragile |= step.has_shown or doubt > _OTHER_COLUMNS * step.std
    # How far it would be another one beside all columns is part of its error, and so
    # are others far from it that explain as much.
    std = float(np.hypot(step.std, doubt))
    others = _as_good(settled, widened, bare.seconds)
    late = _delayed(samples, bare.seconds)
    slow = _slow_friction(widened, late, np.append(bare.fit[:-1], 0.0), bare.errors)
    fast, fast_std = _of_fast_motion(settled, widened, step)
    std, fast_std = max(std, others), max(fast_std, others)
    return LagFit(step.seconds, std, slow, (fast, fast_std), is_fragile)


# Judgement: two standard errors of ten blocks. Slow motion of a real arm whose delay is
# known to 9 ms is explained 2 % worse at 40 ms, hardly surely, and 10 % at 80 ms.
_WORSE, _APART = 2.0, 0.08
"""Standard errors by which delays so far in [s] from the best one must be worse."""


def _as_good(samples: Samples, columns: Columns, lag: float) -> float:
    """How far delays in [s] lie from one that explain the torque as well, at most.

    A valley that noise makes is as narrow as its band, however flat the land around: at
    constant speed a delay is another posture, which other masses explain.
    """
    best, weights = _errors_at(samples, columns, lag)
    distance = 0.0
    for apart in (_APART, -_APART):
        if abs(lag + apart) > LONGEST_LAG:
            continue
        other, _ = _errors_at(samples, columns, lag + apart, weights)
        rise = np.log(np.maximum(other, 1e-300) / np.maximum(best, 1e-300))
        error = np.std(rise, ddof=1) / np.sqrt(rise.size)
        if rise.size > 1 and np.mean(rise) < _WORSE * error:
            distance = max(distance, abs(apart))
    return distance


def _errors_at(
    samples: Samples,
    columns: Columns,
    lag: float,
    weights: Sequence[float] | None = None,
) -> tuple[Float[np.ndarray, " blocks"], Sequence[float]]:
    """Squared error of every block with a delay, and the joints' weights."""
    sums = _normal_matrices(columns, _delayed(samples, lag, is_open=False))
    indices = _column_indices(columns)
    totals = [own.sum(axis=0) for own in sums]
    weights = _residual_variance(indices, totals) if weights is None else weights
    grams = _joined(indices, sums, list(weights))
    fit = np.append(_solved(grams.sum(axis=0)), -1.0)
    return np.einsum("i,bij,j->b", fit, grams, fit), weights


# On a stranger's MuJoCo plants at 100 to 500 Hz the delay was 0.5 to 1.5 ms early, with
# a standard error of 0.3, and is 0.1 to 0.5 ms; half a period changes nothing, three
# quarters most of it.
_RINGING = 1.0
"""Periods of the torque's low-pass before and after a reversal in which friction that
did not turn over in a step at the very moment, but crept or stuck, still rings."""

_FEWEST_SETTLED = 0.5
"""Fraction of a joint's rows that must be left for the others not to be used."""


def _settled(samples: Samples, columns: Columns) -> Samples:
    """Leave out rows that the torque's low-pass fills with a reversal of friction."""
    bandwidth = samples.torque_bandwidth_hz
    if bandwidth is None or not samples.speed_resolution:
        return samples
    rows = columns.dynamics.mechanism.drive_rows
    speed = samples.qd @ rows.T
    turns = np.abs(speed) < columns.dead_band(samples)
    turns[1:] |= speed[1:] * speed[:-1] <= 0.0
    reach = round(_RINGING / bandwidth * samples.rate_hz)
    total = np.cumsum(np.pad(turns, ((reach + 1, reach), (0, 0))), axis=0)
    is_near = total[2 * reach + 1 :] != total[: -2 * reach - 1]
    # A motor that several joints turn masks all of them.
    is_near = is_near @ (rows != 0.0)
    is_near &= is_near.mean(axis=0) < 1.0 - _FEWEST_SETTLED
    # Whatever is left: what a joint that stands is held by may be early or late.
    is_near |= stuck_or_creeping(samples)
    still = np.zeros(is_near.shape) if samples.still is None else samples.still
    return replace(samples, still=np.where(is_near, 1.0, still))


# On MuJoCo's plants with Stribeck's friction the median error falls from 0.1 to 0.3 ms,
# at a twentieth and a tenth, to 0.02 ms at three tenths; at four, scatter grows.
_FAST = 0.3
"""Fraction of a joint's top speed from which on its friction is hardly anything but
viscous and Coulomb's, whatever it is below."""

# Judgement: two thirds of it.
_LESS_FAST = 0.2
"""Such a fraction at which the delay shall be the same, or it is not known better."""


def _of_fast_motion(
    samples: Samples, columns: Columns, step: _Step
) -> tuple[float, float]:
    """Fit the delay to rows of fast motion: friction that falls with speed is no delay.

    Args:
        samples: Motion and torque; the torque's delay not yet taken out.
        columns: What explains the torque.
        step: The delay by all rows.

    Returns:
        The delay in [s] and its standard error, with how far it depends on what fast
        motion is.
    """
    rows = columns.dynamics.mechanism.drive_rows
    speed = np.abs(samples.qd @ rows.T)
    # A percentile, not the maximum: one spike must not set the scale.
    speed /= np.maximum(np.percentile(speed, 99.5, axis=0), 1e-300)
    fits = []
    # The last step is from the delay that the one before has shown.
    for least in (_LESS_FAST, _FAST):
        # A motor that several joints turn masks all of them.
        is_slow = (speed < least) @ (rows != 0.0)
        still = np.zeros(is_slow.shape) if samples.still is None else samples.still
        part = replace(samples, still=np.where(is_slow, 1.0, still))
        is_last = least == _FAST
        step = _stepped(part, columns, step.seconds, step.shown, has_errors=is_last)
        fits.append(step)
    return step.seconds, float(np.hypot(step.std, step.seconds - fits[0].seconds))


def lag_beside_hysteresis(
    samples: Samples, columns: Columns, lag: float
) -> tuple[float, float]:
    """Fit the delay beside friction that builds up over a distance, too.

    Such friction follows the motion late. Taken for a step at each reversal it looks
    like a delay of the whole torque.

    Returns:
        The delay and its standard error in [s].
    """
    terms = hysteresis_terms(columns.arm)
    widened = replace(columns, friction=terms, has_lags=True)
    step, (*_, beside_all) = _fitted(samples, widened, lag)
    return step.seconds, float(np.hypot(step.std, beside_all.seconds - step.seconds))


class _Shown(NamedTuple):
    """Columns that a first fit shows.

    Attributes:
        slope: Slope in [N m/s] of the torque that the motion explains.
        friction: Friction of the drives that grows with their load; none where the
            delay does not ask for it.
        bent: Torque of all joints per compliance of each; likewise.
    """

    slope: Float[np.ndarray, "samples joints"]
    friction: Float[np.ndarray, "kinds samples drives"]
    bent: Float[np.ndarray, "elastic samples joints"]

    @property
    def loads(self) -> int:
        """How many columns friction of the load has."""
        return self.friction.shape[0] * self.friction.shape[2]

    def parts(self) -> list[_Shown]:
        """Without columns, with either kind and with both, the fewest first."""
        none, straight = self.friction[:0], self.bent[:0]
        frictions = (none, self.friction)
        bents = (straight, self.bent) if len(self.bent) else (straight,)
        return [_Shown(self.slope, one, bent) for bent in bents for one in frictions]


class _Step(NamedTuple):
    """A Gauss–Newton step for the delay.

    Attributes:
        seconds: The delay in [s].
        std: Its standard error in [s].
        fit: Coefficients of the columns but those that a first fit shows, the delay's
            last.
        errors: Their standard errors.
        late: Samples read so late as before the step.
        shown: What the step was made with.
    """

    seconds: float
    std: float
    fit: np.ndarray
    errors: np.ndarray
    late: Samples
    shown: _Shown | None

    @property
    def has_shown(self) -> bool:
        """Whether friction of the load or elastic joints were beside it."""
        return self.shown is not None and self.shown.loads + len(self.shown.bent) > 0


# Standard errors of the same ten blocks differ by less than a quarter where columns
# explain nothing; on MuJoCo's plants they fall to a half beside an elastic joint's
# column, and to a tenth beside friction of the load.
_SURER = 0.75
"""Standard error of a delay beside further columns, as a fraction of that beside
fewer, below which it is the delay."""


def _fitted(
    samples: Samples, columns: Columns, lag: float
) -> tuple[_Step, list[_Step]]:
    """Fit the delay, from a rough one; also beside none to all of what is shown."""
    late = _delayed(samples, lag)
    sums = _normal_matrices(columns, late)
    # Weights that need few digits: each joint's torque.
    size = [max(float(own[:, -1, -1].sum()), 1e-300) for own in sums]
    totals = [own.sum(axis=0) for own in sums]
    fit = _solved(_joined(_column_indices(columns), totals, size))[:-1]
    # The slope of the torque that the motion explains: that of the measured one may be
    # noise for the most part, and would show a delay of nothing, surely.
    slope = torque_slope(replace(late, tau=_torque(columns, late, fit)))
    links = fit * _is_link(columns)[: fit.size]
    shown = _Shown(
        slope,
        _load_friction(columns, late, links),
        _compliances(columns, late, links),
    )
    # Two Gauss–Newton steps: the first lands within the square of its length.
    first = _stepped(samples, columns, lag, shown, has_errors=False).seconds
    steps = _stepped_beside(samples, columns, first, shown)
    step = steps[0]
    for other in steps[1:]:
        step = other if other.std < _SURER * step.std else step
    return _stepped(samples, columns, step.seconds, step.shown), steps


def _stepped(
    samples: Samples,
    columns: Columns,
    lag: float,
    shown: _Shown | None = None,
    *,
    is_open: bool = True,
    has_errors: bool = True,
) -> _Step:
    """Make one step from a delay that is nearly right, or none from a known one.

    Args:
        samples: Motion and torque; the torque's delay not yet taken out.
        columns: What explains the torque.
        lag: The delay to step from in [s].
        shown: What a first fit shows.
        is_open: Whether the delay is to be fitted.
        has_errors: Whether standard errors are needed: ten times the work.
    """
    late = _delayed(samples, lag, is_open)
    grams = _grams(columns, late, shown)
    return _step(columns, late, lag, shown, _left_out(grams, has_errors))


def _stepped_beside(
    samples: Samples, columns: Columns, lag: float, shown: _Shown
) -> list[_Step]:
    """Make a step with each part of what a first fit shows, the fewest first."""
    late = _delayed(samples, lag)
    grams = _grams(columns, late, shown)
    own = columns.count - columns.lags.size
    steps = []
    for part in shown.parts():
        loads = own + np.arange(part.loads)
        bent = own + shown.loads + np.arange(len(part.bent))
        index = np.concatenate([np.arange(own), loads, bent, [-2, -1]])
        fits = _left_out(grams[:, index[:, None], index], has_errors=True)
        steps.append(_step(columns, late, lag, part, fits))
    return steps


def _step(
    columns: Columns,
    late: Samples,
    lag: float,
    shown: _Shown | None,
    fits: Float[np.ndarray, "fits coefficients"],
) -> _Step:
    """Say what coefficients without each block, and of all, make of the delay."""
    own = np.r_[: columns.count - columns.lags.size, -1]
    errors = _jackknife_std(fits[:-1])
    # Beyond the longest lag there is nothing to be read.
    seconds = float(np.clip(lag + fits[-1, -1], -LONGEST_LAG, LONGEST_LAG))
    return _Step(seconds, float(errors[-1]), fits[-1, own], errors[own], late, shown)


def _grams(
    columns: Columns, samples: Samples, shown: _Shown | None
) -> Float[np.ndarray, "blocks columns columns"]:
    """Inner products of all columns per block, joints weighted by their residuals."""
    blocks = _normal_matrices(columns, samples, shown)
    indices = _column_indices(columns, shown)
    # The scale of each joint from its own residual, so that all count.
    variance = _residual_variance(indices, [own.sum(axis=0) for own in blocks])
    return _joined(indices, blocks, variance)


def _left_out(
    grams: Float[np.ndarray, "blocks columns columns"], has_errors: bool
) -> Float[np.ndarray, "fits coefficients"]:
    """Coefficients of all columns without each block, if asked for, and of all."""
    whole = grams.sum(axis=0)
    without = [_solved(whole - one) for one in grams] if has_errors else []
    return np.stack([*without, _solved(whole)])


def _jackknife_std(without: Float[np.ndarray, "blocks ..."]) -> np.ndarray:
    """Standard errors, from what is left without each block; infinite without any."""
    if not len(without):
        return np.full(without.shape[1:], np.inf)
    # Delete-a-block jackknife: (B − 1)/B Σ (d − mean)² = (B − 1) var.
    std = np.sqrt((BLOCKS - 1) * np.var(without, axis=0))
    # Intervals are those of many stretches; a variance from ten asks for more.
    return np.asarray(std * student_factor(BLOCKS - 1, 0.95) / interval_factor())


def _torque(
    columns: Columns, samples: Samples, weights: Float[np.ndarray, " columns"]
) -> Float[np.ndarray, "samples joints"]:
    """Torque in [N m] that the columns but the lags explain with coefficients."""
    torque = np.empty(samples.tau.shape)
    for block in columns.blocks([samples]):
        for j, matrix in enumerate(block.joints):
            # All but the slope, which stands before the torque.
            torque[block.rows, j] = weights[columns.support[j][:-1]] @ matrix[:-2]
    return torque


def _is_link(columns: Columns) -> np.ndarray:
    """Which columns the links have a part in."""
    return np.asarray(np.any(columns.user[:, columns.arm.layout.links] != 0.0, axis=1))


def _load_friction(
    columns: Columns, samples: Samples, links: Float[np.ndarray, " columns"]
) -> Float[np.ndarray, "kinds samples drives"]:
    """Friction in proportion to the load of each drive, of a unit coefficient.

    The load is what the links take, and what they would take while not accelerated:
    without noise, friction that follows the second was 0.2 to 0.6 ms of delay beside
    the first alone, and is below 0.02 ms beside both.

    Args:
        columns: What explains the torque.
        samples: Motion.
        links: Coefficients of the links' columns, which say what the load is.
    """
    steady = replace(samples, qdd=np.zeros(samples.qdd.shape))
    rows = columns.dynamics.mechanism.drive_rows
    direction, loads = friction_direction(samples, rows), load_rows(rows).T
    torques = (_torque(columns, motion, links) for motion in (samples, steady))
    return np.stack([direction * np.abs(torque @ loads) for torque in torques])


# Their products grow with the cube of the joints: of a humanoid's 32 they would take as
# long as all else.
_MOST_ELASTIC = 12
"""Joints beyond which none is tried for being elastic."""


def _compliances(
    columns: Columns, samples: Samples, links: Float[np.ndarray, " columns"]
) -> Float[np.ndarray, "elastic samples joints"]:
    """Torque of all joints per compliance of each in [rad/(N m)].

    An elastic joint's link lies behind its encoder in proportion to its load.

    Args:
        columns: What explains the torque.
        samples: Motion.
        links: Coefficients of the links' columns, which say what the load is.
    """
    arm = columns.arm
    if arm.dof > _MOST_ELASTIC:
        return np.empty((0, len(samples), arm.dof))
    parameters = np.zeros(arm.layout.size)
    # Any parameters with these coefficients.
    own = columns.user[: links.size, arm.layout.links]
    parameters[arm.layout.links] = np.linalg.lstsq(own, links, rcond=1e-9)[0]
    torque = columns.link_torque(samples, parameters)
    load = torque(samples.q, samples.qd, samples.qdd)
    slope = torque_slope(replace(samples, tau=load))
    bend = torque_slope(replace(samples, tau=slope))
    bent = []
    for j, unit in enumerate(np.eye(samples.dof)):
        # 1e-6 rad to one side: see `WhitenedRows.compliances`.
        step = 1e-6 / max(float(np.abs(load[:, j]).max()), 1e-9)
        behind = torque(
            samples.q - step * load[:, j, None] * unit,
            samples.qd - step * slope[:, j, None] * unit,
            samples.qdd - step * bend[:, j, None] * unit,
        )
        bent.append((behind - load) / step)
    return np.stack(bent)


def _delayed(samples: Samples, seconds: float, is_open: bool = True) -> Samples:
    """Read the torque so much later; leave the delay open, or not."""
    tau = shifted(samples.tau, seconds * samples.rate_hz)
    # A torque whose delay is known has no slope in `torque_rate`, hence no step.
    preparation = replace(samples.preparation, lag_std=np.inf if is_open else None)
    # Two more than the delay: cubic interpolation's neighbours. Ends are held there.
    reach = int(np.ceil(LONGEST_LAG * samples.rate_hz)) + 2
    shown = slice(reach, len(samples) - reach) if len(tau) > 4 * reach else slice(None)
    return replace(samples, tau=tau, preparation=preparation)[shown]


def _normal_matrices(
    columns: Columns, samples: Samples, shown: _Shown | None = None
) -> list[Float[np.ndarray, "blocks own own"]]:
    """Inner products of each joint's own columns and torque, per block of time.

    Its lag stands before the torque; before that friction of its load, then elastic
    joints. Without what a first fit shows the slope is that of the measured torque, and
    there are none of these.
    """
    edges = np.linspace(0, len(samples), BLOCKS + 1).astype(int)
    parts = [slice(a, b) for a, b in pairwise(edges.tolist()) if b > a]
    indices = _column_indices(columns, shown)
    sums = [np.zeros((len(parts), own.size, own.size)) for own in indices]
    turned = columns.dynamics.mechanism.drive_rows.T
    for block in columns.blocks([samples], parts):
        b = int(np.searchsorted(edges, block.rows.start, side="right")) - 1
        for j, matrix in enumerate(block.joints):
            rows = matrix
            if shown is not None:
                drives = np.flatnonzero(turned[j])
                friction = shown.friction[:, block.rows, drives] * turned[j, drives]
                further = friction.transpose(0, 2, 1).reshape(-1, matrix.shape[1])
                slope = -shown.slope[block.rows, j]
                bent = shown.bent[:, block.rows, j]
                rows = np.vstack([matrix[:-2], further, bent, slope, matrix[-1:]])
            rows = rows if block.trust is None else rows * block.trust[:, j]
            sums[j][b] += rows @ rows.T
    return sums


def _column_indices(
    columns: Columns, shown: _Shown | None = None
) -> list[Int[np.ndarray, " own"]]:
    """Where each joint's inner products stand among all.

    Friction of the drives' load follows all columns, and elastic joints that; joints
    share one lag, before the torque.
    """
    own = columns.count - columns.lags.size
    turned = columns.dynamics.mechanism.drive_rows.T
    kinds = 0 if shown is None else len(shown.friction)
    elastic = 0 if shown is None else len(shown.bent)
    first = own + turned.shape[1] * np.arange(kinds)
    # Elastic joints, the lag and the torque are every joint's.
    last = own + turned.shape[1] * kinds + np.arange(elastic + 2)
    indices = []
    for row, support in zip(turned, columns.support, strict=True):
        further = (first[:, None] + np.flatnonzero(row)).reshape(-1)
        indices.append(np.concatenate([support[:-1], further, last]))
    return indices


def _joined(
    indices: Sequence[Int[np.ndarray, " own"]],
    sums: Sequence[Float[np.ndarray, "*blocks own own"]],
    variance: Sequence[float],
) -> Float[np.ndarray, "*blocks columns columns"]:
    """Inner products of all columns, each joint's torque in units of its own noise."""
    size = int(indices[0][-1]) + 1
    # Joint by joint: all of them for all columns would be a gigabyte for 32 joints.
    grams = np.zeros((*sums[0].shape[:-2], size, size))
    for index, own, scale in zip(indices, sums, variance, strict=True):
        grams[..., index[:, None], index] += own / scale
    return grams


def _solved(gram: np.ndarray) -> np.ndarray:
    """Coefficients of all columns, the lag last, from their inner products."""
    scale = np.sqrt(np.maximum(np.diag(gram)[:-1], 1e-300))
    scaled = gram[:-1, :-1] / np.outer(scale, scale)
    # A ridge of 1e-9 of a column: what depends on others shares their part.
    scaled[np.diag_indices_from(scaled)] += 1e-9
    return np.asarray(np.linalg.solve(scaled, gram[:-1, -1] / scale) / scale)


def _residual_variance(
    indices: Sequence[Int[np.ndarray, " own"]],
    sums: Sequence[Float[np.ndarray, "own own"]],
) -> list[float]:
    """Square sum of each joint's residual when the joints are fitted together."""
    torques = [float(own[-1, -1]) for own in sums]
    variance = [max(torque, 1e-300) for torque in torques]
    for _ in range(2):
        x = np.append(_solved(_joined(indices, sums, variance)), -1.0)
        own = [x[index] for index in indices]
        # A millionth of the torque: exact data must not get an infinite weight.
        variance = [
            max(float(k @ gram @ k), 1e-12 * torque + 1e-300)
            for k, gram, torque in zip(own, sums, torques, strict=True)
        ]
    return variance


def _slow_friction(
    columns: Columns, samples: Samples, fit: np.ndarray, errors: np.ndarray
) -> Float[np.ndarray, " joints"]:
    """Friction of rows that were left out for their speed, beyond the fitted one."""
    unmasked = replace(samples, still=None)
    sums = np.zeros((2, samples.dof))
    direction = friction_direction(samples)
    pairs = zip(columns.blocks([samples]), columns.blocks([unmasked]), strict=True)
    for masked, block in pairs:
        if block.trust is None or masked.trust is None:
            continue
        for j, matrix in enumerate(block.joints):
            weights = np.append(fit[columns.support[j][:-1]], fit[-1])
            is_slow = block.trust[:, j] > masked.trust[:, j]
            sign = direction[block.rows, j] * is_slow
            sums[0, j] += sign @ (matrix[-1] - weights @ matrix[:-1])
            sums[1, j] += sign @ sign
    coulomb = np.full(samples.dof, np.nan)
    # A motor that several joints turn has no friction of one joint alone.
    for k in columns.coulomb:
        joints = [j for j in range(samples.dof) if k in columns.support[j]]
        # Three standard errors: noise beside noise would be a large fraction of it.
        if len(joints) == 1 and abs(fit[k]) > 3.0 * errors[k]:
            coulomb[joints[0]] = abs(fit[k])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sums[0] / sums[1] / coulomb)


def find_bandwidth(
    projection: TorqueProjection,
    torque: Float[np.ndarray, "samples joints"],
    highest_hz: float,
) -> float:
    """Find how far the torque was low-passed before it was recorded, in [Hz].

    Coulomb friction turns over in a step; its rounding tells the filter, where joints
    do not stick. The highest value is returned unless a lower one explains the torque
    clearly better.

    Args:
        projection: What the motion explains.
        torque: Torque without its lag.
        highest_hz: Largest bandwidth tried.
    """
    # Half octaves down to a 45th; between them a parabola interpolates.
    candidates = highest_hz / 2.0 ** np.arange(0.0, 6.0, 0.5)
    # A filter that takes more than a quarter of the log to settle cannot be seen in it.
    duration = len(torque) / projection.signals.rate_hz
    candidates = candidates[candidates > 4.0 / duration]
    if not candidates.size:
        return highest_hz
    seen = projection.without_sticking()
    residuals = seen.residuals_at(torque, candidates.tolist())
    powers = np.stack([(residual**2).sum(axis=0) for residual in residuals])
    # A joint that always sticks has no rows, and no say.
    powers = powers[:, powers[0] > 0.0]
    if not powers.size:
        return highest_hz
    scores = _score(powers)
    best = int(np.argmin(scores))
    # The median: one joint with odd friction must not decide for the others.
    gain = np.median(powers[best] / np.maximum(powers[0], 1e-300))
    if gain > CLEARLY_BETTER:
        return highest_hz
    return float(2.0 ** _minimum(np.log2(candidates), scores))


def explained_band(
    residual: Float[np.ndarray, "samples joints"],
    torque: Float[np.ndarray, "samples joints"],
    rate_hz: float,
    highest_hz: float,
) -> float:
    """Return up to which frequency the motion explains the torque, in [Hz].

    The residual's amplitude stays below the fraction EXPLAINED of the torque's up to
    there, in the median over the joints.
    """
    scaled = torque / np.maximum(np.linalg.norm(torque, axis=0), 1e-12)
    ratios = []
    for unexplained, whole in zip(residual.T, scaled.T, strict=True):
        # Windows of 2 s instead of 4: what is looked at may be a few seconds long.
        centres, power = band_powers(whole, rate_hz, 2.0)
        noise = band_powers(unexplained, rate_hz, 2.0)[1]
        ratios.append(noise / np.maximum(power, 1e-300))
    ratio = np.median(ratios, axis=0)
    # Judgement: from the best explained band upwards; the lowest bands hold few
    # periods, and their ratio is chance.
    strongest = int(np.argmin(np.where(centres < 0.25 * highest_hz, ratio, np.inf)))
    above = np.flatnonzero(ratio[strongest:] > EXPLAINED**2)
    if not above.size:
        return highest_hz
    return float(min(centres[strongest + above[0]], highest_hz))


def _score(powers: np.ndarray) -> np.ndarray:
    """Weigh the joints' residual powers alike, however badly one is explained."""
    return np.asarray(np.log(np.maximum(powers, 1e-300)).sum(axis=-1))


def _minimum(x: np.ndarray, y: np.ndarray) -> float:
    """Return where a parabola through the three lowest neighbours is lowest."""
    # A minimum on the edge takes the parabola beside it; the shift is then clipped.
    i = int(np.clip(np.argmin(y), 1, len(y) - 2))
    before, middle, after = y[i - 1], y[i], y[i + 1]
    bend = before - 2.0 * middle + after
    # Three values on a line, or bent downwards, have no minimum: stay in the middle.
    shift = 0.5 * (before - after) / bend if bend > 0 else 0.0
    return float(x[i] + np.clip(shift, -1.0, 1.0) * (x[1] - x[0]))
