"""Rehearsal of a calibration by moving: simulated arms with unknown sensors.

The plant's masses differ from the description, its joints have dry friction, and its
sensors are of random gain, sign, offset and bend. The truth is kept, to compare with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Drive
from armwise.calibration.moves import gravity_loads, usual_effort
from armwise.calibration.structure import Structure, as_structure
from armwise.dynamics import Dynamics
from armwise.plants import (
    Actuator,
    AnalogSensor,
    Friction,
    JointElasticity,
    MujocoArm,
    Plant,
    SimulatedArm,
    perturbed,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.recordings import Recording

FULL_SCALE = 6.0
"""Readings in [V] that rehearsed joints may reach."""

_CONVERTER = 10.0
"""Readings in [V] at which converters end."""

_BEND = 0.004
"""Largest deviation of sensors from their line, as a fraction of the converter's."""

_NOISE = 3e-4
"""Noise of the readings in [V]: a bit of a 16-bit converter."""

_MASSES_OFF = 0.2
"""How far masses are off their description, relative."""


_FASTEST = 1e4
"""Acceleration in [rad/s²] that no motor gives its own gear at its largest torque: some
hundreds are usual. Descriptions often leave motors out."""


@dataclass(frozen=True, eq=False)
class UnknownSensors:
    """Random sensors: θ = α v + β about which v bends in an S.

    Attributes:
        alpha, beta: Of the line through the converter's ends.
        bend: Largest deviation as a fraction of the converter's range.

    Each (dof,), or a row for each arm of a batch.
    """

    alpha: Float[np.ndarray, "*batch dof"]
    beta: Float[np.ndarray, "*batch dof"]
    bend: Float[np.ndarray, "*batch dof"]

    @classmethod
    def drawn(cls, arm: Arm, random: np.random.Generator) -> UnknownSensors:
        """Of either sign; ranges within the joints' limits where they have any."""
        n = arm.dof
        half = random.uniform(0.7, 1.2, n)
        middle = random.uniform(-np.pi, np.pi, n)
        low, high = arm.limits("lower"), arm.limits("upper")
        # Joints that turn all round, or whose limits nobody set, may be anywhere.
        is_bounded = (high - low > 1e-6) & (high - low < 2.0 * np.pi)
        half = np.where(is_bounded, np.minimum(half, 0.45 * (high - low)), half)
        room = np.where(is_bounded, high - low - 2.0 * half, 0.0)
        inside = np.where(is_bounded, low, 0.0) + half + random.uniform(size=n) * room
        sign = random.choice([-1.0, 1.0], n)
        return cls(
            sign * half / FULL_SCALE,
            np.where(is_bounded, inside, middle),
            _BEND * random.uniform(-1.0, 1.0, n),
        )

    @classmethod
    def stacked(cls, arms: Sequence[UnknownSensors]) -> UnknownSensors:
        """A row for each arm."""
        return cls(*(np.array([getattr(x, k) for x in arms])
                     for k in ("alpha", "beta", "bend")))  # fmt: skip

    def of(self, b: int) -> UnknownSensors:
        """Those of one arm of a batch."""
        return UnknownSensors(self.alpha[b], self.beta[b], self.bend[b])

    def mounted(self) -> AnalogSensor:
        """For a plant."""
        return AnalogSensor(
            self.alpha, self.beta, self.bend, _NOISE, bits=16, full_scale=_CONVERTER
        )

    def lines(
        self, recordings: Sequence[Recording]
    ) -> tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]]:
        """α and β of one arm's best lines over the readings that were visited."""
        alpha, beta = np.empty_like(self.alpha), np.empty_like(self.beta)
        straight = np.linspace(-1.2 * _CONVERTER, 1.2 * _CONVERTER, 24_001)
        x = straight / _CONVERTER
        for j in range(alpha.size):
            visited = [r[f"volts_{j + 1}"].values for r in recordings]
            low = min(float(v.min()) for v in visited)
            high = max(float(v.max()) for v in visited)
            bow = 1.5 * np.sqrt(3.0) * (x - x**3)
            read = straight + self.bend[j] * _CONVERTER * bow
            grid = np.linspace(low, high, 2001)
            slope, offset = np.polyfit(grid, np.interp(grid, read, straight), 1)
            alpha[j] = self.alpha[j] * slope
            beta[j] = self.beta[j] + self.alpha[j] * offset
        return alpha, beta


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A plant, and the truth about its sensors.

    Attributes:
        plant: To be calibrated.
        sensors: What is to be estimated.
        posture: Where it is at power-up.
        effort: Largest torque of each joint in [N m].
    """

    plant: Plant
    sensors: UnknownSensors
    posture: Float[np.ndarray, "*batch dof"]
    effort: Float[np.ndarray, " dof"]


def rehearse(
    structure: Structure | Arm,
    seed: int | Sequence[int] = 0,
    *,
    mujoco: bool = False,
    backlash: float = 0.0,
) -> Rehearsal:
    """Build a plant that a calibration by moving can be tried on.

    Args:
        structure: The arm, or the arm and what is known of it, which is true of the
            plant too; joints without effort limits get motors that bear it.
        seed: Of everything random; several for a batch of arms side by side, each with
            masses and sensors of its own.
        mujoco: Whether MuJoCo simulates it.
        backlash: Play of the gears in [rad]; ours only.
    """
    structure = as_structure(structure)
    arm = structure.arm
    load, effort = gravity_loads(arm), usual_effort(arm)
    seeds = [seed] if isinstance(seed, int) else list(seed)
    each = [_unknown(structure, load, effort, s) for s in seeds]
    true = [a for a, _ in each]
    sensors = UnknownSensors.stacked([x for _, x in each])
    sensors = sensors.of(0) if isinstance(seed, int) else sensors
    actuator = Actuator(saturation=effort)
    plant: Plant
    if mujoco:
        plant = MujocoArm(
            true, sensors=[sensors.mounted()], actuator=actuator, seed=seeds[0],
            # MuJoCo's own default step, of 2 ms.
            control_rate_hz=250.0, plant_rate_hz=500.0, keeps_truth=False,
        )  # fmt: skip
    else:
        gears = _gears(true[0], backlash) if backlash > 0.0 else None
        plant = SimulatedArm(
            arm, true_arm=true, sensors=[sensors.mounted()], actuator=actuator,
            friction=Friction(static=1.2), elasticity=gears, seed=seeds[0],
            control_rate_hz=250.0, plant_rate_hz=4000.0 if gears else 2000.0,
            keeps_truth=False,
        )  # fmt: skip
    return Rehearsal(plant, sensors, sensors.beta, effort)


def _unknown(
    structure: Structure, load: np.ndarray, effort: np.ndarray, seed: int
) -> tuple[Arm, UnknownSensors]:
    """The arm as it really is, and its sensors."""
    arm, random = structure.arm, np.random.default_rng(seed)
    sensors = UnknownSensors.drawn(arm, random)
    # Bodies of which something is known are as described: part of a body cannot be.
    masses_off = 0.0 if structure.known else _MASSES_OFF
    true = _worn(arm, load, effort / _FASTEST, masses_off, random)
    parameters = np.where(structure.is_free, true.parameters, arm.parameters)
    return true.with_parameters(parameters), sensors


def _worn(
    arm: Arm,
    load: np.ndarray,
    rotor: np.ndarray,
    masses_off: float,
    random: np.random.Generator,
) -> Arm:
    """The arm as it really is: other masses, dry friction of 4 to 8 % of its load.

    Args:
        arm: As described.
        load: Of each joint in [N m].
        rotor: Least inertia of motor and gear at each joint in [kg m²].
        masses_off: How far masses are off, relative.
        random: Source of all of it.
    """
    true = perturbed(arm, masses_off, random) if masses_off else arm
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (200, arm.dof))
    M = np.diagonal(Dynamics(true).mass_matrix(q), axis1=1, axis2=2).mean(axis=0)
    joints = []
    for joint, most, least, inertia in zip(true.joints, load, rotor, M, strict=True):
        geared = max(0.05 * float(inertia), float(least))
        drive = Drive(
            rotor_inertia=max(joint.drive.rotor_inertia, geared),
            viscous=float(0.02 * most * random.uniform(0.5, 1.5)),
            coulomb=float(most * random.uniform(0.04, 0.08)),
            offset=float(most * random.uniform(-0.01, 0.01)),
        )
        joints.append(replace(joint, drive=drive))
    return replace(true, joints=tuple(joints))


def _gears(arm: Arm, backlash: float) -> JointElasticity:
    """Gears with play, stiff enough to ring at some 50 Hz beyond it."""
    q = np.random.default_rng(2).uniform(-np.pi, np.pi, (100, arm.dof))
    M = np.diagonal(Dynamics(arm).mass_matrix(q), axis1=1, axis2=2).mean(axis=0)
    stiffness = M * (2.0 * np.pi * 50.0) ** 2
    return JointElasticity(stiffness, 0.02 * stiffness / (2.0 * np.pi * 50.0), backlash)
