"""Momentum observer: torque that something outside the arm exerts on its joints.

The generalised momentum p = M(q) q̇ changes by the motors' torque, by gravity and
velocities, and by what pushes the arm: ṗ = τ − τ_f + Cᵀq̇ − g + τ_ext. Integrated, no
acceleration is needed, and r = K (p − ∫ (τ − τ_f + Cᵀq̇ − g + r) dt) follows τ_ext as a
first-order low-pass would (De Luca and Mattone 2003). What counts as contact depends on
the state: on how well the model knows the torque there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification import Estimate
from armwise.programs import (
    SCALAR_PRELUDE,
    c_numbers,
    core_source,
    count_uniform,
    write_c,
)
from armwise.recordings import Samples
from armwise.regression import DriveMotion

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

_SMOOTHING = 0.01
"""Speed [rad/s] or [m/s] over which the direction of friction passes through zero."""

_REVERSING = 0.05
"""Speed [rad/s] or [m/s] below which friction may be anything up to its limit."""

_BLOCK = 0.5
"""Time in [s] whose largest residual is one draw of extremes: motions of arms change
about as fast, and residuals of a model with them."""

_MARGIN, _MODEL_MARGIN = 1.6, 3.0
"""Least threshold over the largest residual of a log without contact, where residuals
are noise and where they are errors of the model: these repeat themselves with the
motion, and another motion has others."""

_SLOW = 0.25
"""Time in [s] over which noise averages out and errors of a model stay."""

_FAR = 0.05
"""Fraction of what friction may be at a reversal, below which none is near."""

_BANDS_HZ = (5.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0)
"""Low-passes in [Hz] to choose from: below, a push of a tenth of a second is over
before it shows; above, differentiated positions are noise."""

_PUSH = 0.1
"""Push that is to be seen soonest, as a fraction of a joint's torque limit."""

# Judgement: even a description without friction misses no torque by this much.
_ANOTHER = 3.0
"""Residual over torque, in a log without contact, that is another arm's."""

_SPREAD = 3.0
"""Least threshold in standard deviations of the model, where a log was quieter."""

_PAUSE = 0.1
"""Time in [s] below which two contacts are one."""

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Torque that counts as contact: base + slope |τ| + dry · near.

    `near` is how near a joint is to a reversal, exp(−|q̇|/v), seen through the same
    low-pass as the torque: what friction does there shows as late.

    Attributes:
        base: Of each joint in [N m] or [N].
        slope: Per torque of gravity and velocities.
        dry: What friction adds while a joint turns back, in [N m] or [N].
        false_alarms_per_hour: Of all joints together, at most, in motions like those
            they were learnt from: what was asked for, even where margins would promise
            fewer than any log shows; NaN where they were not learnt.
    """

    base: Float[np.ndarray, " dof"]
    slope: Float[np.ndarray, " dof"]
    dry: Float[np.ndarray, " dof"]
    false_alarms_per_hour: float = float("nan")

    def at(self, torque: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Thresholds at states: torque of gravity and velocities, near a reversal."""
        return np.asarray(self.base + self.slope * np.abs(torque) + self.dry * near)


@dataclass(frozen=True, eq=False)
class ObservedTorque:
    """External torque along a log.

    Attributes:
        time: In [s].
        torque: r in [N m] or [N].
        threshold: What counts as contact, by state.
        contact: Whether a joint's torque exceeds it, in two samples on end.
    """

    time: Float[np.ndarray, " samples"]
    torque: Float[np.ndarray, "samples dof"]
    threshold: Float[np.ndarray, "samples dof"]
    contact: Float[np.ndarray, "samples dof"]

    @property
    def contacts(self) -> tuple[float, ...]:
        """Times in [s] at which a contact begins."""
        any_joint = np.any(self.contact, axis=1)
        begins = np.flatnonzero(any_joint & ~np.concatenate([[False], any_joint[:-1]]))
        return tuple(self.time[begins].tolist())

    @property
    def intervals(self) -> tuple[ContactInterval, ...]:
        """The same from beginning to end; pauses below a tenth of a second count."""
        at = np.flatnonzero(np.any(self.contact, axis=1))
        if not at.size:
            return ()
        groups = np.split(at, np.flatnonzero(np.diff(self.time[at]) > _PAUSE) + 1)
        intervals = []
        for rows in groups:
            ratio = np.abs(self.torque[rows]) / self.threshold[rows]
            joint = int(np.argmax(ratio.max(axis=0)))
            row = rows[int(np.argmax(ratio[:, joint]))]
            began, ended = float(self.time[rows[0]]), float(self.time[rows[-1]])
            torque = float(self.torque[row, joint])
            intervals.append(ContactInterval(began, ended, joint, torque))
        return tuple(intervals)


class ContactInterval(NamedTuple):
    """A contact: from when to when in [s], its largest torque in [N m] or [N] and the
    joint, counted from zero, at which that was largest over its threshold."""

    began: float
    ended: float
    joint: int
    torque: float


class MomentumObserver:
    """Follows the torque on an arm from outside, sample by sample.

    Args:
        model: An identified arm, best with its estimate: its interval is the threshold.
        rate_hz: Samples per second.
        bandwidth_hz: Of the low-pass through which the torque is seen, for all joints
            or one each; a step of twice the threshold is noticed after
            0.11 / bandwidth. None: `learn` chooses, joint by joint, that which shows a
            push of a tenth of the torque limit soonest.
        thresholds: What counts as contact; `learn` finds it from a log without any.
    """

    def __init__(
        self,
        model: Arm | Estimate,
        *,
        rate_hz: float = 1000.0,
        bandwidth_hz: ArrayLike | None = None,
        thresholds: Thresholds | None = None,
    ) -> None:
        self.estimate = model if isinstance(model, Estimate) else None
        self.arm = model.arm if isinstance(model, Estimate) else model
        if self.arm.couplings:
            raise ArgumentError(
                f"{self.arm.name} has coupled joints, which the observer does not know."
            )
        # None above a fifth of the rate, where a sample is a quarter of a turn.
        highest = 0.2 * rate_hz
        self._bands_hz = [b for b in _BANDS_HZ if b < highest] or [0.5 * highest]
        self._is_chosen = bandwidth_hz is not None
        band = min(20.0, 0.5 * highest) if bandwidth_hz is None else bandwidth_hz
        self.rate_hz = rate_hz
        self.bandwidth_hz = np.broadcast_to(
            np.asarray(band, dtype=float), (self.arm.dof,)
        ).copy()
        if not np.all((self.bandwidth_hz > 0.0) & (self.bandwidth_hz < highest)):
            raise ArgumentError(
                f"bandwidth_hz must lie between 0 and a fifth of the {rate_hz:g} Hz, "
                f"not {bandwidth_hz!r}."
            )
        self.thresholds = thresholds
        self._dynamics = Dynamics(self.arm)
        layout, values = self.arm.layout, self.arm.parameters
        self._viscous = values[layout.drive("viscous")]
        self._coulomb = values[layout.drive("coulomb")]
        self._offset = values[layout.drive("offset")]
        further = () if self.estimate is None else self.estimate.friction
        # Hysteresis has a memory of its own: it is part of what the threshold covers.
        self._terms_used = [x for x in further if x[0].form in _FORMS]
        self.reset()

    def reset(self) -> None:
        """Forget the motion so far."""
        self._sum: np.ndarray | None = None
        self.torque = np.zeros(self.arm.dof)
        self._near = np.zeros(self.arm.dof)
        self._over = np.zeros(self.arm.dof, dtype=bool)
        self.contact = np.zeros(self.arm.dof, dtype=bool)

    def update(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """Take one sample, arrays (n,); return the external torque (n,)."""
        arrays = [np.asarray(x, dtype=float)[None] for x in (q, qd, tau)]
        momentum, own, modelled = self._terms(*arrays)
        self._advance(momentum[0], own[0], _reversal(arrays[1][0]))
        if self.thresholds is not None:
            self._decide(self.thresholds.at(modelled[0], self._near))
        return self.torque.copy()

    def observe(self, samples: Samples) -> ObservedTorque:
        """Follow a whole log, each uninterrupted part from the beginning."""
        momentum, own, modelled = self._terms(samples.q, samples.qd, samples.tau)
        torque, near = np.zeros((2, *samples.q.shape))
        for j, gain in enumerate(self._gain):
            torque[:, j], near[:, j] = self._filtered(
                samples, momentum[:, j], own[:, j], samples.qd[:, j], gain
            )
        limit = np.full(samples.q.shape, np.inf)
        if self.thresholds is not None:
            limit = self.thresholds.at(modelled, near)
        over = np.abs(torque) > limit
        # Two samples on end: one alone may be a reading gone wrong.
        contact = over & np.concatenate([over[:1] & False, over[:-1]])
        for part in samples.segments:
            contact[part.start] = False
        return ObservedTorque(samples.time, torque, limit, contact)

    def _filtered(
        self,
        samples: Samples,
        momentum: np.ndarray,
        own: np.ndarray,
        qd: np.ndarray,
        gain: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `_advance` gives one joint sample by sample: torque, and near."""
        from scipy.signal import lfilter

        step = 1.0 / self.rate_hz
        fade = 1.0 / (1.0 + gain * step)
        torque, near = np.zeros(momentum.shape), _reversal(qd)
        for part in samples.segments:
            change = np.zeros(part.stop - part.start)
            change[1:] = np.diff(momentum[part]) - step * own[part][1:]
            torque[part] = gain * fade * lfilter([1.0], [1.0, -fade], change)
            begin = [fade * near[part.start]]
            near[part] = lfilter([1.0 - fade], [1.0, -fade], near[part], zi=begin)[0]
        return torque, near

    def learn(self, samples: Samples, false_alarms_per_hour: float = 0.1) -> Thresholds:
        """Find thresholds from a log without contact, and keep them.

        They grow with the torque as the log's residuals do, at least as the model's own
        interval (an estimate's `predict_std`). Their size follows from the largest
        residuals of every half second, which are distributed as extremes are (Gumbel):
        so that there are as many false alarms as asked for, and at least 1.6 times the
        largest residual of the log, 3 times where residuals are the model's errors and
        no noise. What joints that turn back add has a limit, that of friction, and no
        such tail.

        Args:
            samples: The log; best not the one the model was identified from, whose
                residuals are smaller than those of any other.
            false_alarms_per_hour: Of all joints together, in motions like the log's.

        Raises:
            NotIdentifiable: If the log is shorter than five seconds, or another arm's.
        """
        blocks = _blocks(samples, _BLOCK)
        if len(blocks) < 10:
            raise NotIdentifiable(
                "Thresholds need a log without contact of five seconds or more."
            )
        if not false_alarms_per_hour > 0.0:
            raise ArgumentError("false_alarms_per_hour must be positive.")
        momentum, own, modelled = self._terms(samples.q, samples.qd, samples.tau)
        size = np.sqrt(np.mean(samples.tau**2, axis=0))
        least = np.stack([1e-3 * size + 1e-9, np.zeros(self.arm.dof)])
        if self.estimate is not None:
            # Where the log is quieter than the model's interval, the interval counts:
            # other motions may not be as quiet.
            std = self.estimate.predict_std(samples)
            least = np.maximum(least, _envelope(np.abs(modelled), std))
        limit = _PUSH * self.arm.limits("effort")
        push = np.where(
            np.isfinite(limit), limit, _PUSH * np.abs(samples.tau).max(axis=0)
        )
        each = false_alarms_per_hour / self.arm.dof * _BLOCK / 3600.0
        parts = np.zeros((3, self.arm.dof))
        for j, name in enumerate(self.arm.coordinate_names):
            bands = [self.bandwidth_hz[j]] if self._is_chosen else self._bands_hz
            soonest = np.inf
            for band in bands:
                gain = 2.0 * np.pi * band
                torque, near = self._filtered(
                    samples, momentum[:, j], own[:, j], samples.qd[:, j], gain
                )
                residual, load = np.abs(torque), np.abs(modelled[:, j])
                error = float(np.sqrt(np.mean(residual**2)))
                if error > _ANOTHER * size[j]:
                    raise NotIdentifiable(
                        f"The model misses the torque of {name} by "
                        f"{error / max(size[j], 1e-12):.0f} times its size in the log "
                        "without contact. Is it this arm's log, and in N m?"
                    )
                slow = _slow_part(torque, _blocks(samples, _SLOW), gain)
                learnt = _learn_joint(
                    residual, load, near, least[:, j], blocks, slow, min(each, 0.5)
                )
                heaviest = learnt[0] + learnt[1] * np.quantile(load, 0.95) + error
                cost = _slowness(
                    heaviest, learnt[2], push[j] - abs(self._coulomb[j]), gain
                )
                if cost < soonest:
                    soonest, self.bandwidth_hz[j], parts[:, j] = cost, band, learnt
        base, slope, dry = parts
        self.thresholds = Thresholds(base, slope, dry, false_alarms_per_hour)
        self.reset()
        return self.thresholds

    def delay(self, push: ArrayLike, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """Time in [s] after which a step of torque exceeds its threshold, per joint.

        Through the observer's low-pass, and for two samples on end; infinite where it
        stays below. Errors of the model at that moment add to the push or take from it.

        Args:
            push: Torque from outside in [N m] or [N], (n,).
            q, qd: State, (n,).
        """
        if self.thresholds is None:
            raise ArgumentError("The observer has no thresholds: learn(samples) first.")
        q, qd = (np.asarray(x, dtype=float)[None] for x in (q, qd))
        _, _, modelled = self._terms(q, qd, np.zeros_like(q))
        part = self.thresholds.at(modelled, _reversal(qd))[0]
        part = part / np.abs(np.asarray(push))
        step = 1.0 / self.rate_hz
        with np.errstate(divide="ignore", invalid="ignore"):
            time = -np.log(1.0 - part) / self._gain + 2.0 * step
        return np.asarray(np.where(part < 1.0, time, np.inf))

    def wrench(self, q: ArrayLike, frame: str) -> Float[np.ndarray, " 6"]:
        """Force [N] and moment [N m] at a frame's origin that explain the torque now.

        In base axes; the smallest of those that do, where joints are fewer than six.
        """
        J = self._dynamics.jacobian(np.asarray(q, dtype=float)[None], frame)[0]
        return np.asarray(np.linalg.lstsq(J.T, self.torque, rcond=1e-6)[0])

    def generate(self, folder: str | Path, name: str = "observer") -> list[Path]:
        """Write this observer as C: NAME.h and NAME.c, thresholds included.

        Args:
            folder: Where to; made if need be.
            name: Prefix of all names in C.

        Raises:
            ArgumentError: If it has no thresholds yet.
        """
        if self.thresholds is None:
            raise ArgumentError("The observer has no thresholds: learn(samples) first.")
        programs = [self._dynamics.program(n) for n in _PROGRAMS]
        cores, tables = [], []
        for program in programs:
            cores.append(core_source(program))
            uniform = [x.name for x in program.inputs if x.is_uniform]
            listed = ", ".join(uniform) or "0"
            tables.append(
                f"static const double *const {program.name}_numbers[] = {{{listed}}};"
            )
            nonzero = ", ".join(map(str, program.outputs[0].nonzero)) or "0"
            tables.append(f"static const int {program.name}_at[] = {{{nonzero}}};")
        numbers = [
            f"static const double {key}[] = {{{c_numbers(value)}}};"
            for key, value in self._dynamics.uniforms.items()
        ]
        limits = self.thresholds
        values = {
            "ARM": self.arm.name,
            "N": self.arm.dof,
            "PRELUDE": SCALAR_PRELUDE,
            "CORES": "\n".join(cores),
            "NUMBERS": "\n".join(numbers),
            "TABLES": "\n".join(tables),
            **{
                f"{key}_STORED": len(program.outputs[0].nonzero)
                for key, program in zip(("M", "C", "G"), programs, strict=True)
            },
            "UNIFORMS": max(1, *(count_uniform(program) for program in programs)),
            "VISCOUS": c_numbers(self._viscous),
            "COULOMB": c_numbers(self._coulomb),
            "OFFSET": c_numbers(self._offset),
            "TERMS": len(self._terms_used),
            "TERM_JOINT": _whole([term.joint for term, _ in self._terms_used]),
            "TERM_FORM": _whole([_FORMS.index(t.form) for t, _ in self._terms_used]),
            "TERM_VALUE": c_numbers([value for _, value in self._terms_used] or [0.0]),
            "TERM_SCALE": c_numbers([t.scale for t, _ in self._terms_used] or [1.0]),
            "TERM_END": c_numbers(
                [min(t.straight_from, _LARGE) for t, _ in self._terms_used] or [1.0]
            ),
            "TERM_SLOPE": c_numbers(
                [term.slope_beyond for term, _ in self._terms_used] or [0.0]
            ),
            "BASE": c_numbers(limits.base),
            "SLOPE": c_numbers(limits.slope),
            "DRY": c_numbers(limits.dry),
            "SMOOTHING": repr(_SMOOTHING),
            "REVERSING": repr(_REVERSING),
            "STEP": repr(1.0 / self.rate_hz),
            "GAIN": c_numbers(self._gain),
        }
        return write_c(_TEMPLATES / "observer", folder, name, values)

    @property
    def _gain(self) -> np.ndarray:
        return np.asarray(2.0 * np.pi * self.bandwidth_hz)

    def _terms(
        self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Momentum; what changes it but for a push; torque of gravity and velocity."""
        dynamics = self._dynamics
        C = dynamics.coriolis_matrix(q, qd)
        g = dynamics.gravity_torque(q)
        momentum = np.einsum("tij,tj->ti", dynamics.mass_matrix(q), qd)
        direction = qd / np.sqrt(qd**2 + _SMOOTHING**2)
        friction = self._viscous * qd + self._coulomb * direction + self._offset
        friction = friction + self._further(q, qd, direction, g)
        own = tau - friction + np.einsum("tij,ti->tj", C, qd) - g
        return momentum, own, g + np.einsum("tij,tj->ti", C, qd)

    def _further(
        self, q: np.ndarray, qd: np.ndarray, direction: np.ndarray, load: np.ndarray
    ) -> np.ndarray:
        """Friction of an estimate's further terms, gears carrying gravity's torque."""
        lost = np.zeros(qd.shape)
        for term, coefficient in self._terms_used:
            j = term.joint
            motion = DriveMotion(
                q[:, j], qd[:, j], direction[:, j], load[:, j], np.zeros_like
            )
            lost[:, j] += coefficient * term.torque(motion)
        return lost

    def _advance(self, momentum: np.ndarray, own: np.ndarray, near: np.ndarray) -> None:
        if self._sum is None:
            self._sum, self._near = momentum.copy(), near
            return
        step = 1.0 / self.rate_hz
        fade = 1.0 / (1.0 + self._gain * step)
        self._near = fade * self._near + (1.0 - fade) * near
        # Implicit in r: stable at any bandwidth.
        self._sum = self._sum + step * own
        gain = self._gain
        self.torque = gain * (momentum - self._sum) / (1.0 + gain * step)
        self._sum = self._sum + step * self.torque

    def _decide(self, limit: np.ndarray) -> None:
        over = np.abs(self.torque) > limit
        # Two samples on end: one alone may be a reading gone wrong.
        self.contact, self._over = over & self._over, over


def _blocks(samples: Samples, length: float) -> list[slice]:
    """Whole blocks of a length in [s], within uninterrupted segments."""
    size = max(1, round(length * samples.rate_hz))
    return [
        slice(first, first + size)
        for part in samples.segments
        for first in range(part.start, part.stop - size + 1, size)
    ]


_FORMS = (
    "asymmetric",
    "stribeck",
    "root",
    "quadratic",
    "load",
    "load_driving",
    "load_back_driven",
)
"""Friction terms without a memory, in the order of the generated C."""

_LARGE = 1e300
"""A speed that no joint has: infinity has no number in C."""

_PROGRAMS = ("mass_matrix", "coriolis_matrix", "gravity_torque")


def _whole(values: list[int]) -> str:
    return ", ".join(map(str, values)) or "0"


def _reversal(qd: np.ndarray) -> np.ndarray:
    """How near joints are to turning back: 1 at rest, 0 far from it."""
    return np.asarray(np.exp(-np.abs(qd) / _REVERSING))


def _learn_joint(
    residual: np.ndarray,
    load: np.ndarray,
    near: np.ndarray,
    least: np.ndarray,
    blocks: list[slice],
    slow: float,
    each: float,
) -> tuple[float, float, float]:
    """Base, slope and dry part of one joint's threshold.

    Args:
        residual, load, near: Sizes of residual and of the modelled torque, and how near
            the joint is to a reversal, (samples,).
        least: Deviation of the model that the log must not undercut: base, slope.
        blocks: Times whose largest residual is a draw.
        slow: Fraction of the residual that is the model's error and no noise.
        each: Alarms a block to accept.
    """
    from scipy.optimize import nnls

    far = near < _FAR
    if far.mean() < 0.1:  # a joint that rests: then resting is its usual state
        far = np.ones(len(near), dtype=bool)
    columns = np.column_stack([np.ones(int(far.sum())), load[far]])
    # The mean size of a Gaussian variable is 0.8 of its deviation.
    base, slope = np.maximum(nnls(columns, residual[far])[0] / 0.8, least)
    spread = base + slope * load
    ratio = np.where(far, residual / spread, 0.0)
    extremes = np.array([ratio[block].max() for block in blocks])
    extremes = extremes[extremes > 0.0]
    margin = _MARGIN + slow * (_MODEL_MARGIN - _MARGIN)
    level = _level(extremes, slow, each)
    factor = max(level, margin * float(extremes.max()), _SPREAD)
    limit = factor * spread
    beyond = (margin * residual - limit)[~far] / near[~far]
    dry = max(float(beyond.max(initial=0.0)), 0.0)
    ratio = residual / (limit + dry * near)
    extremes = np.array([ratio[block].max() for block in blocks])
    wider = max(1.0, _level(extremes, slow, each))
    return wider * factor * base, wider * factor * slope, wider * dry


def _slow_part(torque: np.ndarray, blocks: list[slice], gain: float) -> float:
    """Fraction of a residual's square that outlasts a quarter of a second.

    Beyond what the observer's low-pass leaves there of white noise.
    """
    means = np.array([torque[block].mean() for block in blocks])
    part = float(np.mean(means**2)) / max(float(np.mean(torque**2)), 1e-300)
    # Mean square of the average of noise that e^(−gain |t|) correlates.
    span = gain * _SLOW
    white = 2.0 / span * (1.0 - (1.0 - np.exp(-span)) / span)
    return float(np.clip((part - white) / (1.0 - white), 0.0, 1.0))


def _level(extremes: np.ndarray, slow: float, each: float) -> float:
    """What an extreme exceeds with this probability, by Gumbel's law.

    The law is for exponential tails. Those of noise are steeper, and their squares have
    them: by the extremes themselves the level would be a third more than noise ever
    reaches. Nothing such is known of a model's errors.
    """
    power = 2.0 - slow
    draws = extremes**power
    # Mean = location + 0.577 scale, variance = π²/6 scale².
    scale = float(draws.std(ddof=1)) * np.sqrt(6.0) / np.pi + 1e-12
    location = float(draws.mean()) - 0.5772 * scale
    level = location - scale * np.log(-np.log1p(-each))
    return float(max(0.0, level) ** (1.0 / power))


def _slowness(limit: float, dry: float, push: float, gain: float) -> float:
    """Time in [s] in which a push shows that brings a joint to rest, to compare.

    Friction takes part of it, and half of what a reversal adds is there at once, half
    grows as the push shows. Where it never does, its part of the limit instead.
    """
    reached, height = limit + 0.5 * dry, push - 0.5 * dry
    if height > 0.0 and reached < 0.999 * height:
        return float(-np.log(1.0 - reached / height) / gain)
    return 1e3 * (limit + dry) / max(push, 1e-12)


def _envelope(size: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Base and slope of a deviation over a torque, joint by joint; none negative."""
    base, slope = np.empty(size.shape[1]), np.empty(size.shape[1])
    for j in range(size.shape[1]):
        deviation = np.where(np.isfinite(std[:, j]), std[:, j], np.nan)
        finite = np.isfinite(deviation)
        if not finite.any():
            raise NotIdentifiable(
                f"The model knows nothing of the torque of joint {j + 1} in this log."
            )
        x, y = size[finite, j], deviation[finite]
        # Never below the residual's own: a line of best fit would pass through zero.
        base[j] = float(y.min())
        slope[j] = float(np.sum(x * (y - base[j])) / max(np.sum(x * x), 1e-12))
    return np.stack([base, slope])
