"""`astley1996` ch. 4 and 5: joint sensors calibrated against gravity, ten times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.calibration import (
    AdaptiveCalibration,
    Calibration,
    Flaws,
    Plan,
    Structure,
    calibratable,
    calibrate_by_adaptation,
    calibrate_recording,
)
from armwise.plants import (
    Actuator,
    AnalogSensor,
    Friction,
    JointElasticity,
    SimulatedArm,
)
from papers.rows import Row, agrees, better, claim, explained, own

if TYPE_CHECKING:
    from jaxtyping import Float

ALPHA = np.deg2rad([-7.638, -9.052])
BETA = np.deg2rad([-17.544, 26.299])
"""Manual calibration, Table 5.4: [rad/V] and [rad]."""

NONLINEARITY = 0.004
"""Largest deviation of the sensors, as a share of ±10 V (Fig. 5.6 shows it slight)."""

MEAN = {"alpha": (-7.465, -8.537), "beta": (-17.841, 26.673)}
TRUE = {"alpha": (-7.638, -9.052), "beta": (-17.544, 26.299)}
STD = {"alpha": ("0.465", "0.161"), "beta": ("0.421", "0.615")}
ERRORS = {"alpha": ("0.104", "0.297"), "beta": ("0.444", "0.266")}
"""Table 5.5 in [°/V] and [°], and the manual calibration and errors of Table 5.4."""

TORQUE_STEP = 10.0 / 2**10
"""Step of the 10-bit converter over ±5 N m."""

RANGE = 6.0
"""The sensors read about ±6 V (§5.2.3)."""


@dataclass(frozen=True, eq=False)
class TenRuns:
    """The adaptive procedure and its offline sibling on the same arms.

    Attributes:
        adaptive: What moving found, one row per arm.
        offline: What the recordings of the same motion say, one per arm.
        truth: The sensors' best lines: α, then β.
    """

    adaptive: AdaptiveCalibration
    offline: tuple[Calibration, ...]
    truth: Float[np.ndarray, "2 dof"]

    def errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Errors of both in [°/V] and [°], arrays (arms, 2, dof)."""
        moved = np.stack([self.adaptive.alpha, self.adaptive.beta], axis=1)
        read = np.array([[c.alpha, c.beta] for c in self.offline])
        return np.rad2deg(moved - self.truth), np.rad2deg(read - self.truth)


def structure() -> Structure:
    """The thesis' model: centres of mass on the links' x axes, no constant torques.

    Motors of a percent and sensors bent by half a percent are what it says of its
    hardware (§5.2.7); only the offline sibling can make use of it.
    """
    return Structure(
        load_arm("hand_controller"),
        known=("*.my", "*.offset"),
        positive=("*.mx",),
        flaws=Flaws(torque_gain=0.01, bend=0.005),
    )


def plant(batch: int, seed: int = 0) -> SimulatedArm:
    """Hand controllers with the thesis' imperfections; friction differs among them."""
    random = np.random.default_rng(seed)
    arm = load_arm("hand_controller")
    arms = [_worn(arm, random) for _ in range(batch)]
    return SimulatedArm(
        arms[0],
        true_arm=arms,
        batch=batch,
        sensors=[AnalogSensor(ALPHA, BETA, NONLINEARITY, noise_std=3e-4, bits=16)],
        friction=Friction(static=1.3, stribeck_speed=0.05),
        elasticity=JointElasticity(300.0, 0.5),
        actuator=Actuator(
            saturation=5.0, bits=10, gain_error=random.normal(0.0, 0.005, (batch, 2))
        ),
        control_rate_hz=1000.0,
        plant_rate_hz=4000.0,
        seed=seed,
        keeps_truth=False,
    )


def _worn(arm: Arm, random: np.random.Generator) -> Arm:
    """An arm with tendons' rotor inertia and Coulomb friction of 4 % of its load."""
    wear = random.uniform(0.8, 1.2)
    joints = []
    for joint, dry in zip(arm.joints, (0.04, 0.028), strict=True):
        drive = replace(
            joint.drive, coulomb=wear * dry, viscous=1e-3, rotor_inertia=5e-4
        )
        joints.append(replace(joint, drive=drive))
    return replace(arm, joints=tuple(joints))


def manual_calibration() -> Float[np.ndarray, "2 dof"]:
    """Straight lines through the sensors' curves, as one would measure them."""
    volts = np.linspace(-0.75 * RANGE, 0.75 * RANGE, 401)
    x = volts / 10.0
    read = volts + NONLINEARITY * 10.0 * 1.5 * np.sqrt(3.0) * (x - x**3)
    slope, offset = np.polyfit(read, volts, 1)
    return np.array([ALPHA * slope, BETA + ALPHA * offset])


def run_ten(arms: int = 10, seed: int = 0, plan: Plan | None = None) -> TenRuns:
    """Power up ten arms in unknown postures; calibrate by moving, and by recording."""
    random = np.random.default_rng(seed + 1)
    bench, known = plant(arms, seed), structure()
    posture = BETA + random.normal(0.0, 0.05, (arms, 2))
    found = calibrate_by_adaptation(
        bench,
        known,
        posture=posture,
        full_scale=RANGE,
        torque_step=TORQUE_STEP,
        plan=plan,
    )
    outlook = calibratable(known)
    offline = tuple(
        calibrate_recording(known, stages, outlook=outlook, seed=b)
        for b, stages in enumerate(found.recordings)
    )
    return TenRuns(found, offline, manual_calibration())


def rows() -> list[Row]:
    """Tables 5.1–5.5 and Figures 4.5, 5.9: ours beside the thesis'."""
    ten = run_ten()
    return [
        *_single_rows(ten),
        *_table_rows(ten),
        *_offline_rows(ten),
        *_figure_rows(),
    ]


_NOTE = (
    "simulated: links of 0.1 m and 0.5 kg (the thesis gives no masses), Coulomb and "
    "stick-slip friction, 16-bit ADC, 10-bit DAC, bent sensor, elastic tendons, 1 kHz"
)


def _single_rows(ten: TenRuns) -> list[Row]:
    """Tables 5.1 to 5.3: one joint at a time, of the first arm."""
    found, truth = ten.adaptive, ten.truth
    alpha = np.rad2deg(found.alpha[0] - truth[0])
    held = found.traces["gain_2"].x[:, 0, 0].mean() * RANGE
    inner = truth[0, 0] * held + truth[1, 0]
    phase = np.rad2deg(np.angle(np.exp(1j * (found.single_phase[0, 1] - inner))))
    beta = phase - np.rad2deg(truth[1, 1])
    trig = np.rad2deg(found.beta[0, 1] - truth[1, 1])
    return [
        better("Table 5.1", "joint 2 alone, error of alpha [°/V]", "0.298",
               abs(float(alpha[1])), note=_NOTE),
        better("Table 5.1", "joint 2 alone, error of beta [°]", "0.740",
               abs(float(beta)), note=f"the inner joint held where it is; {_NOTE}"),
        better("Table 5.2", "joint 1, error of alpha [°/V]", "0.104",
               abs(float(alpha[0])), note=_NOTE),
        better("Table 5.3", "joint 2, trigonometric, error of beta [°]", "1.372",
               abs(float(trig)), note=f"ours with both joints moving; {_NOTE}"),
    ]  # fmt: skip


def _table_rows(ten: TenRuns) -> list[Row]:
    """Tables 5.4 and 5.5."""
    errors, _ = ten.errors()
    made = []
    for k, (name, unit, reach) in enumerate(
        (("alpha", "°/V", RANGE), ("beta", "°", 1.0))
    ):
        values = np.rad2deg([ten.adaptive.alpha, ten.adaptive.beta][k])
        for j in range(2):
            what = f"{name}_{j + 1}"
            std, worst = float(values[:, j].std(ddof=1)), np.abs(errors[:, k, j]).max()
            true = float(np.rad2deg(ten.truth[k, j]))
            mean = float(values[:, j].mean())
            paper = ERRORS[name][j]
            made += [
                better("Table 5.4", f"error of {what} [{unit}]", paper,
                       abs(float(errors[0, k, j])), note="one arm, from nothing"),
                better("Table 5.5", f"error of the mean of {what}, ten runs [{unit}]",
                       abs(MEAN[name][j] - TRUE[name][j]), abs(mean - true),
                       at="means and manual calibration of Tables 5.5 and 5.4",
                       note=f"means {MEAN[name][j]} (thesis) and {mean:.3f}; true "
                       f"{TRUE[name][j]} (by hand) and {true:.3f} (the best line)"),
                better("Table 5.5", f"standard deviation of {what} [{unit}]",
                       STD[name][j], std, note="ten arms"),
                claim("Table 5.5", f"largest error of {what} in ten runs [°]",
                      "within ±1.5°", float(worst * reach), below=1.5,
                      why="as the thesis says"
                      + (f"; over ±{RANGE:g} V" if name == "alpha" else "")),
            ]  # fmt: skip
    return made


def _offline_rows(ten: TenRuns) -> list[Row]:
    moved, read = ten.errors()
    made = []
    for k, name in enumerate(("alpha", "beta")):
        ours = float(np.median(np.abs(read[:, k])))
        adaptive = float(np.median(np.abs(moved[:, k])))
        unit = "°/V" if name == "alpha" else "°"
        made.append(
            own("offline sibling", f"median error of {name}, offline / adaptive",
                "our aim", ours / adaptive, below=1.0 / 3.0,
                note=f"{ours:.4f} and {adaptive:.4f} {unit}, the same recordings; "
                "motors' gains and bent sensors found along the way")
        )  # fmt: skip
    return made


def _figure_rows() -> list[Row]:
    """Fig. 4.5: the error of a polynomial, as the thesis draws it: of the value 1."""
    q = np.linspace(-1.0, 1.0, 2001)
    curve = np.cos(0.8 * q + 0.3)
    made = []
    for degree, name, paper in ((2, "quadratic", "2"), (3, "cubic", "1")):
        fit = np.polynomial.Chebyshev.fit(q, curve, degree)(q)
        row = agrees(
            "Fig. 4.5", f"{name} for cos(0.8q + 0.3), |q| ≤ 1: largest error [% of "
            "m l g]", paper, 100 * float(np.abs(fit - curve).max()), absolute=0.5,
            note="'in the order of ... of the total cosine magnitude', so half of the "
            "printed digit; least squares",
        )  # fmt: skip
        made.append(
            explained(row, "the thesis seems to divide by less than the full cosine: "
                      "of what the cosine travels over |q| ≤ 1 the error is {:.1f} %",
                      100 * _of_travel(fit, curve), above=float(paper) - 0.5,
                      below=float(paper) + 0.5)
        )  # fmt: skip
    return made


def _of_travel(fit: np.ndarray, curve: np.ndarray) -> float:
    return float(np.abs(fit - curve).max() / np.ptp(curve))
