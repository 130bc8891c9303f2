"""`aah1986` §3.1–3.2, `atkeson1986` ch. 3: the load experiments, simulated again.

A PUMA 600 with encoders and a wrist sensor, and the direct-drive arm with tachometers,
hold the paper's loads. Sensors drift, bend and are off in their zeros, encoders count,
joints are not quite where the kinematics say, and the PUMA shakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Frame, InertialParameters, load_arm, pose
from armwise.dynamics import Dynamics
from armwise.loads import (
    Bias,
    LeastSquares,
    LoadEstimate,
    OptimalFilter,
    StaticPoses,
    design_load_excitation,
    identify_load,
)
from armwise.motions import Hold, Motion, Quintic
from armwise.motions import Sequence as Motions
from armwise.recordings import Samples
from papers.load_rig import LoadRig, Run, Vibration
from papers.rig_constants import Constants, constants

if TYPE_CHECKING:
    from jaxtyping import Float

SHIFTS = (0.037, -0.043, -0.021, 0.018)
"""How far the block was moved along y in Table 1, in [m]."""

BLOCK_MASS = 1.106
BAR_INERTIA = np.diag([0.0244, 0.0007, 0.0242])
"""Of the bar with two end masses about its centre, Table 2, in [kg m²]."""

BAR = InertialParameters.from_center_of_mass(1.5, [0.001, 0.0, 0.06], BAR_INERTIA)
"""Its mass and place are not printed; these fit its size and the gripper's."""

GRIPPER = InertialParameters.from_center_of_mass(
    0.9, [0.0, 0.002, 0.04], np.diag([9e-4, 8e-4, 6e-4])
)

CUTOFF_HZ = {"puma": 33.0, "ddarm": 30.0}

PAPER_1 = {
    "static": (("1.103", "1.107", "1.100", "1.099"),
               ("0.037", "-0.043", "-0.020", "0.018")),
    "dynamic": (("1.067", "1.084", "1.073", "1.074"),
                ("0.039", "-0.042", "-0.021", "0.020")),
}  # fmt: skip
"""Table 1: the block's mass in [kg] and how far it was moved in [m], four times."""

PAPER_2 = {
    "PUMA, all joints": (0.0192, -0.0048, 0.0019, 0.0021, -0.0016, 0.0176),
    "PUMA, test motions": (0.0246, 0.0006, 0.0008, 0.0036, -0.0004, 0.0199),
    "DDArm": (0.0230, 0.0006, 0.0005, -0.0002, -0.0002, 0.0241),
}
"""Table 2: Ixx, Ixy, Ixz, Iyy, Iyz, Izz of the bar in [kg m²]."""

TRUE_2 = BAR_INERTIA[np.triu_indices(3)]

FITTED_1, JUDGED_1 = [0, 2], [1, 3]
"""Lines of Table 1 that `fit_zero` uses, and those left to be judged."""

FITTED_2, JUDGED_2 = [0, 3, 5], [1, 2, 4]
"""Moments of Table 2's first column that it uses (Ixx, Iyy, Izz), and the others."""


def block(shift: float) -> InertialParameters:
    """Return the aluminium block, 2×2×6 in, moved along y by `shift` [m]."""
    a, b = 0.0508, 0.1524
    m = BLOCK_MASS / 12.0
    inertia = np.diag([m * 2 * a**2, m * (a**2 + b**2), m * (a**2 + b**2)])
    return InertialParameters.from_center_of_mass(
        BLOCK_MASS, [0.001, shift, 0.047], inertia
    )


def _puma_rig(zero: float) -> LoadRig:
    return LoadRig(
        load_arm("puma600"),
        "wrist",
        joint_error_std=np.deg2rad(0.2),
        bias_std=(zero, 0.05 * zero),  # of a sensor some 5 cm in size
        vibration=Vibration(7e-5),
        gripper=GRIPPER,
    )


@cache
def puma_rig() -> LoadRig:
    """The PUMA 600 with the RTI FS-B sensor: geared, shaking, read at 200 Hz.

    What is left of the sensor's zero is fitted (`fit_zero`). Joints off by 0.2° are a
    well calibrated PUMA's; shaking of 0.07 mrad stands for the paper's words, that
    "vibration is one way to tell if the PUMA is turned on". Neither is determined by
    the printed numbers: without them the likelihood of `fit_zero` changes by less than
    a factor of two.
    """
    return _puma_rig(constants("puma")["zero"][0])


@cache
def rough_rig() -> LoadRig:
    """The same with the kinematic errors the paper speaks of: a hand up to 4° off."""
    return replace(puma_rig(), joint_error_std=np.deg2rad(0.8))


def _ddarm_rig(resonance_hz: float) -> LoadRig:
    """Tachometers, 240 Hz, no gears."""
    arm = load_arm("ddarm")
    hand = Frame("wrist", 2, pose(None, [0.462, 0.0, 0.0]))
    return LoadRig(
        replace(arm, frames=(*arm.frames, hand)),
        "wrist",
        rate_hz=240.0,
        resolution=2e-5,
        tachometer_std=2e-3,
        joint_error_std=np.deg2rad(0.1),
        vibration=Vibration(1e-5),
        resonance_hz=resonance_hz,
        gripper=GRIPPER,
    )


@cache
def ddarm_rig() -> LoadRig:
    """The direct-drive arm with the Astek sensor, its resonance fitted."""
    return _ddarm_rig(constants("ddarm")["resonance_hz"][0])


PUMA_MOTION = Quintic(
    np.deg2rad([0.0, 0, 0, -90, 0, 0]), np.deg2rad([90.0, -60, 90, 90, 90, 90]), 2.0
)
DDARM_MOTION = Quintic(
    np.deg2rad([280.0, 269.1, -30.0]), np.deg2rad([80.0, 19.1, 220.0]), 1.0
)


def test_motions() -> tuple[Motion, ...]:
    """Joints 4 and 6 alone, about a principal axis each, there and back in 2 s."""
    tried = (
        ((0, -90, 90, 0, 90, 0), (0, -90, 90, 90, 90, 0)),
        ((0, -90, 90, 0, 90, 90), (0, -90, 90, 90, 90, 90)),
        ((0, -90, 90, 0, 0, 0), (0, -90, 90, 0, 0, 90)),
    )
    motions = []
    for start, end in tried:
        a, b = np.deg2rad(start), np.deg2rad(end)
        motions.append(Motions((Quintic(a, b, 1.0), Quintic(b, a, 1.0))))
    return tuple(motions)


def static_poses() -> Motion:
    """Six poses held for 1000 samples each, and the ways between them."""
    degrees = (
        (0, -90, 90, 0, 0, 0),
        (0, -90, 90, 0, 90, 0),
        (0, -90, 90, 0, 90, 90),
        (0, -90, 90, 90, 90, 0),
        (0, -90, 90, 0, -90, 45),
        (0, -45, 45, 45, 60, -60),
    )
    postures = [np.deg2rad(np.array(d, dtype=float)) for d in degrees]
    parts: list[Motion] = [Hold(postures[0], 5.0)]
    for a, b in pairwise(postures):
        parts += [Quintic(a, b, 1.0), Hold(b, 5.0)]
    return Motions(tuple(parts))


@dataclass(frozen=True, eq=False)
class Shifted:
    """One line of Table 1, ours.

    Attributes:
        mass: Of the load in [kg].
        shift: Change of the centre along y in [m].
    """

    mass: float
    shift: float


@cache
def table_1(
    kind: str, *, method: str = "", rig: LoadRig | None = None, seed: int = 3
) -> list[Shifted]:
    """Weigh the block where it was and where it was moved to.

    Args:
        kind: "static" or "dynamic".
        method: "static" for poses at rest, "paper" for plain least squares on data
            differentiated at 33 Hz, "optimal" for the optimal filter on raw encoders.
        rig: The PUMA and its faults.
        seed: Of all errors; the joints' own are the same in all sessions.
    """
    rig = rig or puma_rig()
    loads = [InertialParameters.zero(), block(0.0), *map(block, SHIFTS)]
    errors = np.repeat(rig.joint_errors(1, seed), len(loads), axis=0)
    motion = static_poses() if kind == "static" else PUMA_MOTION
    runs = rig.record(motion, loads, len(loads), seed, errors)
    found = [_weighed(rig, run, method or kind).parameters.vector for run in runs]
    held = [InertialParameters(np.nan_to_num(x - found[0])) for x in found[1:]]
    start = held[0].center_of_mass[1]
    return [Shifted(x.mass, float(x.center_of_mass[1] - start)) for x in held[1:]]


def _weighed(rig: LoadRig, run: Run, method: str) -> LoadEstimate:
    if method == "static":
        data = run.differentiated(CUTOFF_HZ["puma"])
        return identify_load(data, rig.arm, method=StaticPoses(), checked=False)
    if method == "paper":
        data = run.differentiated(CUTOFF_HZ["puma"])
        return identify_load(
            data, rig.arm, method=LeastSquares(), bias="none", checked=False
        )
    optimal = OptimalFilter(rig.resolution / np.sqrt(12.0))
    raw = run.raw(CUTOFF_HZ["puma"])
    return identify_load(raw, rig.arm, method=optimal, checked=False)


@dataclass(frozen=True)
class SetUp:
    """An arm and motions for Table 2."""

    name: str
    rig: LoadRig
    motions: tuple[Motion, ...]
    cutoff_hz: float


def set_ups() -> tuple[SetUp, ...]:
    """The three columns of Table 2, in the paper's order."""
    return (
        SetUp("PUMA, all joints", puma_rig(), (PUMA_MOTION,), CUTOFF_HZ["puma"]),
        SetUp("PUMA, test motions", puma_rig(), test_motions(), CUTOFF_HZ["puma"]),
        SetUp("DDArm", ddarm_rig(), (DDARM_MOTION,), CUTOFF_HZ["ddarm"]),
    )


def inertia_errors(
    set_up: SetUp, method: str, runs: int, seed: int = 7
) -> Float[np.ndarray, "runs 3 3"]:
    """Errors of the bar's central inertia in [kg m²], gripper identified first.

    Args:
        set_up: Arm and motions.
        method: "paper" is plain least squares on differentiated data with the sensor
            taken to be tared; "weighted" weighs every frequency, biases unknown;
            "optimal" is the optimal filter on raw data.
        runs: How many times, each with other errors.
        seed: Of the errors.
    """
    rig = set_up.rig
    kinematic = rig.joint_errors(runs, seed)
    sessions = [
        _sessions(set_up, load, runs, seed * 100 + k, kinematic)
        for k, load in enumerate((InertialParameters.zero(), BAR))
    ]
    errors = []
    for bare, loaded in zip(*sessions, strict=True):
        before = identified(set_up, bare, method)
        after = identified(set_up, loaded, method)
        bar = after.parameters - before.parameters
        errors.append(bar.central_inertia - BAR_INERTIA)
    return np.array(errors)


# Constants that the paper does not print, from half of the numbers that it prints.


def dynamic_errors(
    rig: LoadRig, sessions: int, seed: int = 100
) -> Float[np.ndarray, "sessions 2 4"]:
    """Errors of Table 1's dynamic masses [kg] and shifts [m], the paper's way."""
    found = []
    for k in range(sessions):
        weighed = table_1("dynamic", method="paper", rig=rig, seed=seed + k)
        found.append([
            [x.mass - BLOCK_MASS for x in weighed],
            [x.shift - true for x, true in zip(weighed, SHIFTS, strict=True)],
        ])  # fmt: skip
    return np.array(found)


def printed_dynamic_errors() -> Float[np.ndarray, "2 4"]:
    """Errors of the paper's own dynamic estimates in Table 1."""
    masses, shifts = (np.array(x, float) for x in PAPER_1["dynamic"])
    return np.stack([masses - BLOCK_MASS, shifts - np.array(SHIFTS)])


def fit_zero(runs: int = 24) -> Constants:
    """What taring left of the PUMA's sensor zero [N], by maximum likelihood.

    From seven printed numbers on the printed motion: mass and shift of lines 1 and 3 of
    Table 1 (dynamic), and Ixx, Iyy, Izz of Table 2 (all joints). Errors by the zero add
    to all others in the square; their sizes are simulated.
    """
    from scipy.optimize import minimize_scalar

    set_up = set_ups()[0]
    printed = np.concatenate([
        printed_dynamic_errors()[:, FITTED_1].ravel(),
        (np.array(PAPER_2[set_up.name]) - TRUE_2)[FITTED_2],
    ])  # fmt: skip

    def squares(zero: float) -> np.ndarray:
        rig = _puma_rig(zero)
        block_errors = dynamic_errors(rig, runs)[:, :, FITTED_1].reshape(runs, -1)
        bar = inertia_errors(replace(set_up, rig=rig), "paper", runs)
        errors = np.hstack([block_errors, six(bar)[:, FITTED_2]])
        return np.asarray(np.mean(errors**2, axis=0))

    unit = 0.2
    none, one = squares(0.0), squares(unit)
    added = np.maximum(one - none, 0.0)

    def misfit(log_zero: float) -> float:
        variance = none + (np.exp(log_zero) / unit) ** 2 * added
        return float(np.sum(printed**2 / variance + np.log(variance)))

    best = minimize_scalar(misfit, bounds=(np.log(1e-3), np.log(10.0)))
    return {"zero": [float(np.exp(best.x))]}


def fit_resonance(runs: int = 12) -> Constants:
    """Resonance of the bar on the direct-drive arm's sensor [Hz], from one number.

    Its sensor's axes are not printed, so only what does not depend on them can be
    compared: the sum of the three moments is fitted (a soft sensor lags and shows it
    too small), the size of the whole error is left to be judged.
    """
    from scipy.optimize import brentq

    set_up = set_ups()[2]
    wanted = float((np.array(PAPER_2["DDArm"]) - TRUE_2)[[0, 3, 5]].sum())

    def excess(log_hz: float) -> float:
        rig = _ddarm_rig(float(np.exp(log_hz)))
        errors = inertia_errors(replace(set_up, rig=rig), "paper", runs)
        return float(np.median(np.trace(errors, axis1=1, axis2=2))) - wanted

    found = brentq(excess, np.log(25.0), np.log(120.0), xtol=1e-3)
    return {"resonance_hz": [float(np.exp(found))]}


def six(errors: Float[np.ndarray, "runs 3 3"]) -> Float[np.ndarray, "runs 6"]:
    """Ixx, Ixy, Ixz, Iyy, Iyz, Izz of symmetric matrices."""
    rows, columns = np.triu_indices(3)
    return errors[:, rows, columns]


def designed_errors(
    runs: int, duration: float = 15.0, rig: LoadRig | None = None, seed: int = 7
) -> Float[np.ndarray, "runs 3 3"]:
    """Errors [kg m²] on the PUMA with a motion designed for loads, biases unknown."""
    set_up = SetUp(
        "PUMA, designed", rig or puma_rig(), (designed_motion(duration),), 10.0
    )
    return inertia_errors(set_up, "weighted", runs, seed)


@cache
def designed_motion(duration: float = 15.0) -> Motion:
    """A motion for loads within the PUMA's limits."""
    arm = puma_rig().arm
    return design_load_excitation(arm, "wrist", duration=duration, seed=1).motion


def hand_error_deg(rig: LoadRig, motion: Motion, runs: int, seed: int = 7) -> float:
    """Largest angle [°] between where the hand is and where kinematics say it is."""
    dynamics = Dynamics(rig.arm)
    q = motion.sample(np.linspace(0.0, motion.duration, 50)).q
    R = dynamics.link_pose(q, rig.frame)[:, :3, :3]
    worst = 0.0
    for error in rig.joint_errors(runs, seed):
        seen = dynamics.link_pose(q + error, rig.frame)[:, :3, :3]
        cosine = 0.5 * (np.einsum("tij,tij->t", R, seen) - 1.0)
        worst = max(worst, float(np.arccos(np.clip(cosine, -1.0, 1.0)).max()))
    return float(np.rad2deg(worst))


def _sessions(
    set_up: SetUp, load: InertialParameters, runs: int, seed: int, errors: np.ndarray
) -> list[list[Run]]:
    """Record all motions in one go, on one zero of the sensor; cut them out."""
    parts: list[Motion] = [set_up.motions[0]]
    for before, after in pairwise(set_up.motions):
        end, start = before.sample(before.duration).q, after.sample(0.0).q
        parts += [Quintic(end, start, 1.0), after]
    ends = np.cumsum([part.duration for part in parts])
    recorded = set_up.rig.record(Motions(tuple(parts)), load, runs, seed, errors)
    wanted = [
        (float(end) - part.duration, float(end))
        for part, end in zip(parts, ends, strict=True)
        if part in set_up.motions
    ]
    return [[run.cut(*times) for times in wanted] for run in recorded]


def identified(set_up: SetUp, runs: Sequence[Run], method: str) -> LoadEstimate:
    """What a set-up holds, by a method of `inertia_errors`."""
    rig, arm = set_up.rig, set_up.rig.arm
    zero: Bias = "common" if len(runs) > 1 else "segment"
    if method == "optimal":
        raw = Samples.concatenate([run.raw(set_up.cutoff_hz) for run in runs])
        optimal = OptimalFilter(rig.resolution / np.sqrt(12.0), rig.tachometer_std)
        return identify_load(raw, arm, method=optimal, bias=zero, checked=False)
    data = Samples.concatenate([run.differentiated(set_up.cutoff_hz) for run in runs])
    if method == "paper":
        return identify_load(
            data, arm, method=LeastSquares(), bias="none", checked=False
        )
    return identify_load(data, arm, bias=zero, checked=False)
