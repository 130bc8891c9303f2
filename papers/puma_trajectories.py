"""The PUMA 260 of `izaguirre1992`: its 52 parameters, trajectories and samples."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.control import PD, Feedforward
from armwise.dynamics import BaseParameters, Dynamics, base_parameters
from armwise.identification import (
    TERMS,
    Columns,
    Estimate,
    WeightedLeastSquares,
    build_estimate,
    pose_problem,
    review,
)
from armwise.motions import Polynomial
from armwise.plants import Encoder, SimulatedArm, TorqueSensor, run_batch
from armwise.recordings import Recording, Samples, prepare, write_recording

if TYPE_CHECKING:
    from jaxtyping import Float

PERIOD = 0.028
"""Sampling period in [s]."""

EDGE = 15
"""Samples dropped at either end of a trajectory."""

TRAJECTORIES = 10

TORQUE_NOISE = np.array([0.01, 0.01, 0.01, 0.002, 0.002, 0.002])
"""Standard deviation of measured torque in [N m]; the paper gives none."""

_SPEED = np.deg2rad(180.0)
"""Fastest joint speed in [rad/s]: the fast motions of §7.2."""

_ACCELERATION = 8.0
"""Fastest joint acceleration in [rad/s²]."""

_INERTIA = np.array([0.4, 0.5, 0.15, 0.01, 0.01, 0.002])
"""Rough inertias for choosing gains in [kg m²]."""

_STEP = 2
"""Control period in [ms]."""


def order_of_search(arm: Arm) -> list[str]:
    """Motor inertias first, then links 6 to 1, then friction: the paper's order."""
    names = arm.parameter_names
    links = [
        name
        for link in reversed(arm.links)
        for name in names
        if name.startswith(f"{link.name}.")
    ]
    return [
        *named_like(names, ".rotor_inertia"),
        *links,
        *named_like(names, ".coulomb"),
        *named_like(names, ".viscous"),
    ]


def independent_parameters(
    arm: Arm, names: Sequence[str] | None = None
) -> BaseParameters:
    """The paper's 52, without the torque offsets that it does not have.

    Args:
        arm: The arm.
        names: Only those led by these, the others taken to be zero.
    """
    base = base_parameters(arm, order_of_search(arm))
    wanted = set(base.names if names is None else names)
    is_ours = np.array([not name.endswith(".offset") for name in base.names])
    kept = [
        k
        for k, index in enumerate(base.indices)
        if is_ours[index] and base.names[index] in wanted
    ]
    return BaseParameters(
        base.names,
        tuple(base.indices[k] for k in kept),
        base.matrix[kept] * is_ours,
        base.unidentifiable,
    )


def trajectories(arm: Arm, seed: int = 0) -> tuple[Polynomial, ...]:
    """Polynomials through five random points each, as fast as limits allow."""
    rng = np.random.default_rng(seed)
    lower, upper = 0.6 * arm.limits("lower"), 0.6 * arm.limits("upper")
    made = []
    for _ in range(TRAJECTORIES):
        points = rng.uniform(lower, upper, (5, arm.dof))
        unit = Polynomial.through(np.linspace(0.0, 1.0, 5), points)
        _, qd, qdd = unit.sample(np.linspace(0.0, 1.0, 500))
        slowest = np.abs(qd).max() / _SPEED
        duration = max(slowest, np.sqrt(np.abs(qdd).max() / _ACCELERATION))
        made.append(Polynomial.through(np.linspace(0.0, duration, 5), points))
    return tuple(made)


def central_differences(
    time: Float[np.ndarray, " samples"],
    q: Float[np.ndarray, "samples dof"],
    tau: Float[np.ndarray, "samples dof"],
) -> Samples:
    """Velocities and accelerations as the paper makes them, ends dropped."""
    qd = np.gradient(q, PERIOD, axis=0)
    qdd = np.gradient(qd, PERIOD, axis=0)
    inner = slice(EDGE, -EDGE)
    return Samples(time[inner], q[inner], qd[inner], qdd[inner], tau[inner])


def simulated_recordings(arm: Arm, seed: int = 0) -> tuple[Recording, ...]:
    """Run the ten trajectories on a simulated arm."""
    motions = trajectories(arm, seed)
    plant = SimulatedArm(
        arm,
        sensors=(Encoder(resolution=1e-4), TorqueSensor(noise_std=TORQUE_NOISE)),
        seed=seed,
        batch=TRAJECTORIES,
        control_rate_hz=1000.0 / _STEP,
    )
    controller = Feedforward(PD(900.0 * _INERTIA, 60.0 * _INERTIA), arm)
    return run_batch(plant, controller, motions)


def sampled_recordings(arm: Arm, seed: int = 0) -> list[Recording]:
    """Run the ten trajectories on a simulated arm; read it every 28 ms."""
    pairs = zip(simulated_recordings(arm, seed), trajectories(arm, seed), strict=True)
    return [_sampled(log, motion.duration, arm.dof) for log, motion in pairs]


def filtered_samples(arm: Arm, recordings: Sequence[Recording]) -> Samples:
    """Torque and every column of the regression through one low-pass.

    Differences of positions 28 ms apart are averages over 112 ms, a torque read at one
    instant is not: what feedback and friction do faster than that is in one and not in
    the other. And a torque that a controller holds for a period acts, on average, half
    a period before it is read: the delay is an unknown of the regression, so that every
    interval knows of it.
    """
    samples = prepare(recordings, arm=arm, lag=0.0, keep_rest=True)
    return replace(samples, preparation=replace(samples.preparation, lag_std=np.inf))


def planned_samples(arm: Arm, seed: int = 0) -> list[Samples]:
    """Torques of the ten trajectories by inverse dynamics, with the same noise.

    For parameters that no body has: such an arm cannot be simulated.
    """
    rng = np.random.default_rng(seed)
    dynamics = Dynamics(arm)
    made = []
    for motion in trajectories(arm, seed):
        time = np.arange(0.0, motion.duration, PERIOD)
        planned = motion.sample(time)
        tau = dynamics.inverse_dynamics(*planned)
        tau = tau + TORQUE_NOISE * rng.normal(size=tau.shape)
        made.append(central_differences(time, np.round(planned.q, 4), tau))
    return made


def identify_independent(
    arm: Arm, data: Sequence[Samples], names: Sequence[str] | None = None
) -> Estimate:
    """Identify the paper's 52 parameters, or some, by weighted least squares."""
    terms = [term for term in TERMS if term != "offset"]
    is_late = any(samples.lag_std is not None for samples in data)
    problem = pose_problem(Columns(arm, has_lags=is_late), data, terms)
    problem = replace(problem, base=independent_parameters(arm, names))
    solution = WeightedLeastSquares().solve(problem)
    return build_estimate(problem, solution, review(problem, solution), "weighted")


def named_like(names: Sequence[str], ending: str) -> list[str]:
    """Pick the names with an ending, such as `.coulomb`."""
    return [name for name in names if name.endswith(ending)]


def _sampled(recording: Recording, duration: float, dof: int) -> Recording:
    """Every 28 ms of a recording, up to the end of its motion."""
    every = round(1000 * PERIOD) // _STEP
    time = recording["q_1"].time[::every]
    rows = time <= duration
    q, tau = (
        np.stack(
            [recording[f"{s}_{j + 1}"].values[::every][rows] for j in range(dof)],
            axis=1,
        )
        for s in ("q", "tau")
    )
    return Recording.from_arrays(time[rows], q=q, tau=tau)


def write_logs(folder: str) -> list[str]:
    """Write the ten trajectories of the simulated arm, for the command line."""
    files = []
    for k, log in enumerate(simulated_recordings(load_arm("puma260")), 1):
        # Commands and references have times of their own: no table of one log.
        measured = tuple(x for x in log.tables if {"q_1", "tau_1"} & set(x.columns))
        files.append(f"{folder}/puma260_{k}.csv")
        write_recording(replace(log, tables=measured), files[-1])
    return files


if __name__ == "__main__":
    print("\n".join(write_logs(sys.argv[1])))
