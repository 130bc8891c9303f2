"""The bar of `aah1986` Table 2 at the wrist: signals, predictions, integrals, axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters
from armwise.dynamics import HeldBody
from armwise.plants import WristSensor
from armwise.plants.sensors import Mount, Sampler
from armwise.plants.state import State
from armwise.recordings import Samples, low_pass
from papers.atkeson_loads import (
    BAR,
    BAR_INERTIA,
    CUTOFF_HZ,
    DDARM_MOTION,
    GRIPPER,
    PUMA_MOTION,
    ddarm_rig,
    identified,
    puma_rig,
    set_ups,
)
from papers.load_rig import LoadRig, Run, Vibration

if TYPE_CHECKING:
    from jaxtyping import Float


JOINT = 3
"""Joint 4, which Fig. 3 shows."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """A wrench as measured and as an estimated load explains it.

    Attributes:
        data: What was measured, low-passed.
        wrench: What the estimate says in [N] and [N m].
    """

    data: Samples
    wrench: Float[np.ndarray, "samples 6"]

    @property
    def measured(self) -> Float[np.ndarray, "samples 6"]:
        """What the sensor said."""
        assert self.data.wrench is not None
        return self.data.wrench

    @property
    def explained(self) -> Float[np.ndarray, " 6"]:
        """Share of each signal's variance that is explained, 1 for all of it."""
        left = np.sum((self.measured - self.wrench) ** 2, axis=0)
        spread = np.sum((self.measured - self.measured.mean(axis=0)) ** 2, axis=0)
        return np.asarray(1.0 - left / spread)


@cache
def prediction(is_puma: bool, seed: int = 42) -> Prediction:
    """Estimate from the test motions (PUMA) or the motion itself; predict another run.

    Plain least squares on differentiated data, as in the paper.
    """
    set_up = set_ups()[1 if is_puma else 2]
    rig, motion = set_up.rig, PUMA_MOTION if is_puma else DDARM_MOTION
    zeros = rig.joint_errors(1, seed)
    runs = [
        rig.record(m, BAR, 1, seed + 1 + k, zeros)[0]
        for k, m in enumerate(set_up.motions)
    ]
    load = identified(set_up, runs, "paper").parameters.vector
    data = rig.record(motion, BAR, 1, seed, zeros)[0].differentiated(set_up.cutoff_hz)
    A = HeldBody(rig.arm, rig.frame).regressor(data.q, data.qd, data.qdd)
    return Prediction(data, A @ load)


@cache
def joint_4(seed: int = 42) -> tuple[Samples, Float[np.ndarray, "3 samples"]]:
    """Fig. 3: derived q, q̇, q̈, and what joint 4 was told to do."""
    data = puma_rig().record(PUMA_MOTION, BAR, 1, seed)[0]
    samples = data.differentiated(CUTOFF_HZ["puma"])
    plan = PUMA_MOTION.sample(samples.time)
    return samples, np.stack([part[:, JOINT] for part in plan])


def integral_fit(rig: LoadRig, run: Run, is_integrated: bool) -> InertialParameters:
    """The load by plain least squares: with accelerations, or integrated from 0 to t.

    ∫ w dt = [B(t) − B(0)] φ + ∫ V dt φ with the momentum B φ (Eq. 25–27).
    """
    from scipy.integrate import cumulative_trapezoid

    data = run.differentiated(CUTOFF_HZ["puma"])
    body, wrench = HeldBody(rig.arm, rig.frame), data.wrench
    assert wrench is not None
    if is_integrated:
        step = 1.0 / rig.rate_hz
        B = body.momentum_regressor(data.q, data.qd)
        V = body.velocity_regressor(data.q, data.qd)
        Y = B - B[0] + cumulative_trapezoid(V, dx=step, axis=0, initial=0.0)
        wrench = cumulative_trapezoid(wrench, dx=step, axis=0, initial=0.0)
    else:
        Y = body.regressor(data.q, data.qd, data.qdd)
    found = np.linalg.lstsq(Y.reshape(-1, 10), wrench.reshape(-1), rcond=None)[0]
    return InertialParameters(found) - GRIPPER


@cache
def integral_errors(runs: int = 12) -> dict[str, Float[np.ndarray, " 2"]]:
    """Root-mean-square inertia error [kg m²], differentiated and integrated.

    On a PUMA whose sensor only has noise, or an unknown zero, or drifts as well.
    """
    still = replace(
        puma_rig(), joint_error_std=0.0, vibration=Vibration(0.0), resonance_hz=np.inf
    )
    rigs = {
        "noise": replace(still, bias_std=(0.0, 0.0), drift=(0.0, 0.0)),
        "bias": replace(still, drift=(0.0, 0.0)),
        "drift": replace(still, bias_std=(0.0, 0.0)),
    }
    found = {}
    for name, rig in rigs.items():
        errors = [
            [_inertia_error(integral_fit(rig, run, way)) for way in (False, True)]
            for run in rig.record(PUMA_MOTION, BAR, runs, seed=3)
        ]
        found[name] = np.sqrt(np.mean(np.square(errors), axis=0))
    return found


@cache
def whole_rig_errors(runs: int = 12) -> tuple[float, float]:
    """Inertia errors [kg m²] on Table 2's PUMA: differentiated, and integrated."""
    rig = puma_rig()
    errors = [
        [_inertia_error(integral_fit(rig, run, way)) for way in (False, True)]
        for run in rig.record(PUMA_MOTION, BAR, runs, seed=3)
    ]
    plain, integrated = np.sqrt(np.mean(np.square(errors), axis=0))
    return float(plain), float(integrated)


def axis_errors(
    gaps: np.ndarray, noise: float = 1e-4, runs: int = 400, seed: int = 0
) -> tuple[Float[np.ndarray, " gaps"], Float[np.ndarray, " gaps"]]:
    """Error of a principal axis [°] when moments differ by `gaps` [kg m²].

    Args:
        gaps: λ1 − λ2 of Eq. 23.
        noise: Standard deviation of each of the three entries in [kg m²].
        runs: How many times.
        seed: Of the noise.

    Returns:
        Root mean square over the runs, and what the first order says: noise / gap.
    """
    random = np.random.default_rng(seed)
    found = []
    for gap in gaps:
        entries = random.normal(0.0, noise, (runs, 3))
        # With the axis along x the angle is that of the eigenvector's small part.
        angle = 0.5 * np.arctan2(
            2.0 * entries[:, 1], gap + entries[:, 0] - entries[:, 2]
        )
        found.append(np.rad2deg(np.sqrt(np.mean(angle**2))))
    return np.array(found), np.rad2deg(noise / gaps)


def _inertia_error(load: InertialParameters) -> float:
    return float(np.abs(load.central_inertia - BAR_INERTIA).max())


# A load on the spring of a force sensor, tapped and moved (Fig. 9).

RATE_HZ = 1000.0
RESONANCE_HZ = 30.0
DAMPING = {False: 0.05, True: 0.5}
"""Without and with rubber washers; the paper shows curves but no numbers."""

TAP = 20.0
"""Size of a tap in [N]."""


@dataclass(frozen=True, eq=False)
class Record:
    """What one channel of the sensor said.

    Attributes:
        time: In [s].
        force: In [N].
    """

    time: Float[np.ndarray, " samples"]
    force: Float[np.ndarray, " samples"]

    @property
    def ringing(self) -> float:
        """Time from the largest deflection to the last above a tenth of it in [s]."""
        size = np.abs(self.force)
        top = int(size.argmax())
        last = int(np.flatnonzero(size > 0.1 * size[top])[-1])
        return float(self.time[last] - self.time[top])

    @property
    def unrest(self) -> float:
        """What is faster than 15 Hz, root mean square in [N]."""
        rate = 1.0 / float(self.time[1] - self.time[0])
        return float(np.std(self.force - low_pass(self.force, 15.0, rate)))


@cache
def tapped(has_washers: bool) -> Record:
    """Tap the load at 20 ms, for 5 ms."""

    def hit(state: State) -> np.ndarray:
        is_on = 0.02 <= state.time < 0.025
        return np.full((1, 6), TAP if is_on else 0.0)

    def wrench(_: str) -> Sampler:
        return hit

    sensor = WristSensor(
        "wrist", resonance_hz=RESONANCE_HZ, damping=DAMPING[has_washers]
    )
    mount = Mount(1, 1, 1.0 / RATE_HZ, np.random.default_rng(0), wrench)
    read, state = sensor.mounted(mount), State.at_rest(1, 1)
    time = np.arange(round(0.6 * RATE_HZ)) / RATE_HZ
    force = []
    for t in time:
        state.time = float(t)
        force.append(float(read(state)[0, 2]))
    return Record(time, np.array(force))


@cache
def moved_wrench(has_washers: bool) -> Record:
    """Move the bar on a direct-drive arm that shakes near the sensor's resonance."""
    rig = replace(
        ddarm_rig(),
        vibration=Vibration(1e-5, (9.0, 19.0, 28.0)),
        damping=DAMPING[has_washers],
        resonance_hz=RESONANCE_HZ,
    )
    run = rig.record(DDARM_MOTION, BAR, 1, seed=5)[0]
    return Record(run.time, run.wrench[:, 2])
