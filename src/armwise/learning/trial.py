"""One trial of a stored command: inverse models, zero-phase filter, correction."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.control import Playback, ResumableController, feedback_gain
from armwise.errors import ArgumentError, PlantDiverged
from armwise.motions import MotionSample
from armwise.plants import Measurement, Plant, run

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.motions import Motion
    from armwise.recordings import Recording


# Inverse models: the torque of a motion.


class InverseModel(Protocol):
    """Anything that says which torque a motion takes; `Dynamics` does."""

    def inverse_dynamics(
        self,
        q: Float[np.ndarray, "*batch dof"],
        qd: Float[np.ndarray, "*batch dof"],
        qdd: Float[np.ndarray, "*batch dof"],
    ) -> Float[np.ndarray, "*batch dof"]:
        """Return the torques [N m] or forces [N]."""
        ...


@dataclass(frozen=True, eq=False)
class DecoupledModel:
    """Every joint a constant inertia of its own: τ = I q̈ (`atkeson1986` Eq. 6.13).

    It looks reasonable and fails to learn; it is here to show that, and for geared
    arms whose motors outweigh their links.

    Attributes:
        inertia: I of each joint in [kg m²] or [kg].
    """

    inertia: Float[np.ndarray, " dof"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "inertia", feedback_gain(self.inertia, "inertia"))

    def inverse_dynamics(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
    ) -> Float[np.ndarray, "*batch dof"]:
        """Return the torques [N m] or forces [N]."""
        tau: np.ndarray = self.inertia * qdd
        return tau


# Zero-phase filter, for data and references alike.


@dataclass(frozen=True)
class ZeroPhase:
    """A Butterworth low-pass run forwards and backwards.

    Attributes:
        cutoff_hz: Where it begins to cut, in [Hz].
        order: Order of one pass.
    """

    cutoff_hz: float = 8.0
    order: int = 2

    def __post_init__(self) -> None:
        if not self.cutoff_hz > 0 or self.order < 1:
            raise ArgumentError("A low-pass needs a positive cut-off and order.")

    def apply(
        self, signal: Float[np.ndarray, "samples ..."], rate_hz: float
    ) -> Float[np.ndarray, "samples ..."]:
        """Filter along the first axis."""
        from scipy.signal import butter, sosfiltfilt

        # Nothing above the cut-off can be in the data: there is nothing to remove.
        if self.cutoff_hz >= rate_hz / 2:
            return signal
        # Second-order sections: a polynomial form loses digits at low cut-offs.
        sos = butter(self.order, self.cutoff_hz, fs=rate_hz, output="sos")
        # Three periods of the cut-off let the filter settle before the data begin.
        pad = min(len(signal) - 1, int(3 * rate_hz / self.cutoff_hz))
        filtered: np.ndarray = sosfiltfilt(sos, signal, axis=0, padlen=pad)
        return filtered

    def matrix(self, samples: int, rate_hz: float) -> Float[np.ndarray, "s s"]:
        """The same as a matrix acting on a whole trial."""
        return self.apply(np.eye(samples), rate_hz)


# The trial.

PlantSource = Plant | Callable[[int], Plant]
"""A plant, or what makes one for each trial (with noise of its own)."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What happened in one attempt, at every control instant.

    Attributes:
        command: Feedforward that was played, one row per period, in [N m] or [N].
        applied: Commanded torques, feedback included.
        q, qd: Measured motion, one row more than the command.
        reference_q, reference_qd: The reference motion at the same instants.
        period: Control period in [s].
        diverged: Whether the plant ran away; the rows end there.
    """

    command: Float[np.ndarray, "samples dof"]
    applied: Float[np.ndarray, "samples dof"]
    q: Float[np.ndarray, "instants dof"]
    qd: Float[np.ndarray, "instants dof"]
    reference_q: Float[np.ndarray, "instants dof"]
    reference_qd: Float[np.ndarray, "instants dof"]
    period: float
    diverged: bool = False

    @property
    def position_error(self) -> Float[np.ndarray, " dof"]:
        """Root-mean-square position error of each joint in [rad] or [m]."""
        return _rms(self.q - self.reference_q)

    @property
    def velocity_error(self) -> Float[np.ndarray, " dof"]:
        """Root-mean-square velocity error of each joint in [rad/s] or [m/s]."""
        return _rms(self.qd - self.reference_qd)


def attempt(
    source: PlantSource,
    number: int,
    feedback: ResumableController,
    motion: Motion,
    command: Float[np.ndarray, "samples dof"],
) -> Trial:
    """Play a command under feedback and take down what happened."""
    plant = source if isinstance(source, Plant) else source(number)
    playback = Playback(feedback, command)
    diverged = False
    try:
        recording = run(plant, playback, motion)
    except PlantDiverged as runaway:
        recording, diverged = runaway.recording, True  # type: ignore[assignment]
    applied = playback.applied[:, 0]
    rows = len(applied)
    # One instant more than commands: the state after the last one counts.
    instants = np.arange(rows + 1) * plant.control_period
    q, qd = _measured(recording, instants, plant.dof)
    target = motion.sample(instants)
    return Trial(
        command[:rows],
        applied,
        q,
        qd,
        target.q,
        target.qd,
        plant.control_period,
        diverged,
    )


def corrected_command(
    trial: Trial,
    model: InverseModel,
    lowpass: ZeroPhase | None,
    perfect: Float[np.ndarray, "samples dof"] | float = 0.0,
) -> Float[np.ndarray, "samples dof"]:
    """u − [R̂⁻¹(x, ẋ) − R̂⁻¹(x_d, ẋ_d)]: the command for the next attempt (Eq. 6.11).

    Data and references pass the same zero-phase filter; so does the feedback's part
    of the command. The torque of a period belongs to the middle of it.

    Args:
        trial: What happened.
        model: The inverse model R̂⁻¹.
        lowpass: The filter, if any.
        perfect: What the feedback gives when nothing is wrong, which the next
            command must leave to it; see `perfect_feedback`.

    Returns:
        The command; not a number where the plant ran away.
    """
    rate = 1.0 / trial.period
    if trial.diverged:
        return np.full_like(trial.command, np.nan)

    def smooth(signal: np.ndarray) -> np.ndarray:
        return signal if lowpass is None else lowpass.apply(signal, rate)

    def torque(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        q, qd = smooth(q), smooth(qd)
        # Position, velocity and acceleration at the same instant, between two samples:
        # a plain difference would put q̈ half a period late.
        middle_q, middle_qd = 0.5 * (q[1:] + q[:-1]), 0.5 * (qd[1:] + qd[:-1])
        qdd = np.diff(qd, axis=0) * rate
        return model.inverse_dynamics(middle_q, middle_qd, qdd)

    taken = torque(trial.q, trial.qd) - torque(trial.reference_q, trial.reference_qd)
    back = smooth(trial.applied - trial.command - perfect)
    corrected: np.ndarray = trial.command + back - taken
    return corrected


def perfect_feedback(
    feedback: ResumableController, motion: Motion, period: float
) -> Float[np.ndarray, "samples dof"]:
    """What a controller would add if the arm followed the motion exactly.

    Nothing for PD, the whole torque for computed torque. Computed by a copy.
    """
    ideal = deepcopy(feedback)
    ideal.reset(1, period)
    times = np.arange(max(1, round(motion.duration / period))) * period
    target = motion.sample(times)
    rows = []
    for k, t in enumerate(times.tolist()):
        now = MotionSample(*(part[k : k + 1] for part in target))
        rows.append(ideal.torque(t, now, Measurement(q=now.q, qd=now.qd))[0])
    return np.array(rows)


def nominal_command(
    model: InverseModel, motion: Motion, period: float
) -> Float[np.ndarray, "samples dof"]:
    """R̂⁻¹(x_d, ẋ_d) in the middle of every control period (Eq. 6.1)."""
    samples = max(1, round(motion.duration / period))
    middle = (np.arange(samples) + 0.5) * period
    return model.inverse_dynamics(*motion.sample(middle))


def _measured(
    recording: Recording, instants: np.ndarray, dof: int
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities at the control instants; differenced if need be."""
    q = np.stack([_at(recording, f"q_{j + 1}", instants) for j in range(dof)], axis=1)
    if "qd_1" not in recording:
        return q, np.gradient(q, instants, axis=0)
    qd = [_at(recording, f"qd_{j + 1}", instants) for j in range(dof)]
    return q, np.stack(qd, axis=1)


def _at(recording: Recording, name: str, instants: np.ndarray) -> np.ndarray:
    channel = recording[name]
    if channel.time.shape == instants.shape:
        return np.asarray(channel.values)
    return np.asarray(np.interp(instants, channel.time, channel.values))


def _rms(error: np.ndarray) -> np.ndarray:
    mean: np.ndarray = np.sqrt(np.mean(error**2, axis=0))
    return mean
