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
from armwise.files import write_atomically
from armwise.identification import Estimate
from armwise.programs import SCALAR_PRELUDE, core_source, count_uniform, fill
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

_MARGIN = 1.5
"""Least threshold over the largest residual of a log without contact: residuals repeat
themselves with the motion, and another motion has others."""

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
    """Torque that counts as contact: factor · (base + slope |τ| + dry exp(−|q̇|/v)).

    Attributes:
        base: Of each joint in [N m] or [N].
        slope: Per torque of gravity and velocities.
        dry: What friction adds while a joint turns back, in [N m] or [N].
        factor: Of each joint.
        false_alarms_per_hour: Of all joints together, to expect in motions like those
            they were learnt from; NaN where they were not learnt.
    """

    base: Float[np.ndarray, " dof"]
    slope: Float[np.ndarray, " dof"]
    dry: Float[np.ndarray, " dof"]
    factor: Float[np.ndarray, " dof"]
    false_alarms_per_hour: float = float("nan")

    def at(self, torque: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Thresholds at states: torque of gravity and velocities, speed."""
        return np.asarray(self.factor * self.spread(torque, qd))

    def spread(self, torque: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The same without the factor."""
        near = self.dry * np.exp(-np.abs(qd) / _REVERSING)
        return np.asarray(self.base + self.slope * np.abs(torque) + near)


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
        bandwidth_hz: Of the low-pass through which the torque is seen; a step of twice
            the threshold is noticed after 0.11 / bandwidth.
        thresholds: What counts as contact; `learn` finds it from a log without any.
    """

    def __init__(
        self,
        model: Arm | Estimate,
        *,
        rate_hz: float = 1000.0,
        bandwidth_hz: float = 20.0,
        thresholds: Thresholds | None = None,
    ) -> None:
        if not 0.0 < bandwidth_hz < 0.2 * rate_hz:
            raise ArgumentError(
                f"bandwidth_hz must lie between 0 and a fifth of the {rate_hz:g} Hz, "
                f"not {bandwidth_hz:g}."
            )
        self.estimate = model if isinstance(model, Estimate) else None
        self.arm = model.arm if isinstance(model, Estimate) else model
        if self.arm.couplings:
            raise ArgumentError(
                f"{self.arm.name} has coupled joints, which the observer does not know."
            )
        self.rate_hz, self.bandwidth_hz = rate_hz, bandwidth_hz
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
        self._over = np.zeros(self.arm.dof, dtype=bool)
        self.contact = np.zeros(self.arm.dof, dtype=bool)

    def update(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """Take one sample, arrays (n,); return the external torque (n,)."""
        arrays = [np.asarray(x, dtype=float)[None] for x in (q, qd, tau)]
        momentum, own, modelled = self._terms(*arrays)
        self._advance(momentum[0], own[0])
        if self.thresholds is not None:
            self._decide(self.thresholds.at(modelled[0], arrays[1][0]))
        return self.torque.copy()

    def observe(self, samples: Samples) -> ObservedTorque:
        """Follow a whole log, each uninterrupted part from the beginning."""
        momentum, own, modelled = self._terms(samples.q, samples.qd, samples.tau)
        limit = np.full(samples.q.shape, np.inf)
        if self.thresholds is not None:
            limit = self.thresholds.at(modelled, samples.qd)
        torque = np.zeros(samples.q.shape)
        for part in samples.segments:
            torque[part] = self._filtered(momentum[part], own[part])
        over = np.abs(torque) > limit
        # Two samples on end: one alone may be a reading gone wrong.
        contact = over & np.concatenate([over[:1] & False, over[:-1]])
        for part in samples.segments:
            contact[part.start] = False
        return ObservedTorque(samples.time, torque, limit, contact)

    def _filtered(self, momentum: np.ndarray, own: np.ndarray) -> np.ndarray:
        """What `_advance` gives sample by sample, of a whole segment at once."""
        from scipy.signal import lfilter

        step = 1.0 / self.rate_hz
        change = np.zeros(momentum.shape)
        change[1:] = np.diff(momentum, axis=0) - step * own[1:]
        fade = 1.0 / (1.0 + self._gain * step)
        behind = lfilter([1.0], [1.0, -fade], change, axis=0)
        return np.asarray(self._gain * fade * behind)

    def learn(self, samples: Samples, false_alarms_per_hour: float = 0.1) -> Thresholds:
        """Find thresholds from a log without contact, and keep them.

        Their shape is that of the model's own interval (an estimate's `predict_std`, or
        what the log shows of a plain arm). Their size follows from the largest
        residuals of every half second, which are distributed as extremes are (Gumbel):
        so that there are as many false alarms as asked for, and at least half as much
        again as the largest residual of the log.

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
        self.thresholds = None
        observed = self.observe(samples)
        _, _, modelled = self._terms(samples.q, samples.qd, samples.tau)
        base, slope, dry = _shown(modelled, samples.qd, observed.torque)
        if self.estimate is not None:
            # Where the log is quieter than the model's interval, the interval counts:
            # other motions may not be as quiet.
            std = self.estimate.predict_std(samples)
            least = _envelope(np.abs(modelled), std)
            base, slope = np.maximum(base, least[0]), np.maximum(slope, least[1])
        size = np.sqrt(np.mean(samples.tau**2, axis=0))
        error = np.sqrt(np.mean(observed.torque**2, axis=0))
        worst = int(np.argmax(error / np.maximum(size, 1e-12)))
        if error[worst] > _ANOTHER * size[worst]:
            raise NotIdentifiable(
                f"The model misses the torque of {self.arm.coordinate_names[worst]} by "
                f"{error[worst] / max(size[worst], 1e-12):.0f} times its size in the "
                "log without contact. Is it this arm's log, and in N m?"
            )
        base = np.maximum(base, 1e-3 * size + 1e-9)
        shape = Thresholds(base, slope, dry, np.ones(self.arm.dof))
        ratio = np.abs(observed.torque) / shape.spread(modelled, samples.qd)
        extremes = np.array([ratio[block].max(axis=0) for block in blocks])
        # Gumbel's law by its moments: mean = location + 0.577 scale, variance π²/6.
        scale = extremes.std(axis=0, ddof=1) * np.sqrt(6.0) / np.pi + 1e-12
        location = extremes.mean(axis=0) - 0.5772 * scale
        each = false_alarms_per_hour / self.arm.dof * _BLOCK / 3600.0
        level = location - scale * np.log(-np.log1p(-min(each, 0.5)))
        factor = np.maximum.reduce(
            [level, _MARGIN * extremes.max(axis=0), np.full(self.arm.dof, _SPREAD)]
        )
        beyond = -np.expm1(-np.exp(-(factor - location) / scale))
        alarms = float(beyond.sum() * 3600.0 / _BLOCK)
        self.thresholds = Thresholds(base, slope, dry, factor, alarms)
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
        part = self.thresholds.at(modelled, qd)[0] / np.abs(np.asarray(push))
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
        if not name.isidentifier():
            raise ArgumentError(f"{name!r} is no name in C.")
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
            f"static const double {key}[] = {{{_listed(value)}}};"
            for key, value in self._dynamics.uniforms.items()
        ]
        limits = self.thresholds
        values = {
            "NAME": name,
            "GUARD": name.upper(),
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
            "VISCOUS": _listed(self._viscous),
            "COULOMB": _listed(self._coulomb),
            "OFFSET": _listed(self._offset),
            "TERMS": len(self._terms_used),
            "TERM_JOINT": _whole([term.joint for term, _ in self._terms_used]),
            "TERM_FORM": _whole([_FORMS.index(t.form) for t, _ in self._terms_used]),
            "TERM_VALUE": _listed([value for _, value in self._terms_used] or [0.0]),
            "TERM_SCALE": _listed([t.scale for t, _ in self._terms_used] or [1.0]),
            "BASE": _listed(limits.base),
            "SLOPE": _listed(limits.slope),
            "DRY": _listed(limits.dry),
            "FACTOR": _listed(limits.factor),
            "SMOOTHING": repr(_SMOOTHING),
            "REVERSING": repr(_REVERSING),
            "STEP": repr(1.0 / self.rate_hz),
            "GAIN": repr(self._gain),
        }
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = []
        for ending in (".h", ".c"):
            text = fill(_TEMPLATES / f"observer{ending}.in", **values)
            write_atomically(target / f"{name}{ending}", text)
            paths.append(target / f"{name}{ending}")
        return paths

    @property
    def _gain(self) -> float:
        return 2.0 * np.pi * self.bandwidth_hz

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
            lost[:, j] += coefficient * term.kind.shape(motion, term.scale)
        return lost

    def _advance(self, momentum: np.ndarray, own: np.ndarray) -> None:
        if self._sum is None:
            self._sum = momentum.copy()
            return
        step = 1.0 / self.rate_hz
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

_PROGRAMS = ("mass_matrix", "coriolis_matrix", "gravity_torque")


def _listed(values: np.ndarray | list[float]) -> str:
    return ", ".join(repr(float(x)) for x in values)


def _whole(values: list[int]) -> str:
    return ", ".join(map(str, values)) or "0"


def _shown(
    torque: np.ndarray, qd: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Base, slope and dry part of a deviation as residuals show it; none negative."""
    from scipy.optimize import nnls

    parts = np.empty((3, torque.shape[1]))
    for j in range(torque.shape[1]):
        near = np.exp(-np.abs(qd[:, j]) / _REVERSING)
        columns = np.column_stack([np.ones(len(qd)), np.abs(torque[:, j]), near])
        # The mean size of a Gaussian variable is 0.8 of its deviation.
        parts[:, j] = nnls(columns, np.abs(residual[:, j]))[0] / 0.8
    return parts[0], parts[1], parts[2]


def _envelope(size: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    return base, slope
