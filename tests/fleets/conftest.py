"""Logs of small fleets, exact but for noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import armwise as aw

RATE_HZ = 200.0


def motion_and_torque(arm: aw.Arm, seed: int, rows: int) -> dict[str, np.ndarray]:
    """Columns of a standard log along a random motion."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows) / RATE_HZ
    w = rng.uniform(0.5, 3.0, (4, arm.dof))
    phase = rng.uniform(0.0, 6.28, (4, arm.dof))
    angle = w[:, None] * t[:, None] + phase[:, None]
    q = 0.4 * np.sin(angle).sum(axis=0)
    qd = 0.4 * (w[:, None] * np.cos(angle)).sum(axis=0)
    qdd = -0.4 * (w[:, None] ** 2 * np.sin(angle)).sum(axis=0)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += 0.01 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    columns = {"time": t}
    columns |= {f"q_{j + 1}": q[:, j] for j in range(arm.dof)}
    return columns | {f"tau_{j + 1}": tau[:, j] for j in range(arm.dof)}


def write_log(path: Path, arm: aw.Arm, seed: int, rows: int = 3000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(motion_and_torque(arm, seed, rows)).write_parquet(path)
    return path


@pytest.fixture(scope="session")
def arm() -> aw.Arm:
    return aw.load_arm("two_link_uno")


@pytest.fixture(scope="session")
def logs(arm, tmp_path_factory) -> Path:
    """Twelve logs of four robots that differ a little."""
    folder = tmp_path_factory.mktemp("fleet")
    rng = np.random.default_rng(0)
    for robot in range(4):
        own = arm.with_parameters(
            arm.parameters * rng.uniform(0.95, 1.05, arm.parameters.size)
        )
        for run in range(3):
            write_log(folder / f"R{robot}" / f"{run}.parquet", own, 10 * robot + run)
    return folder


def numbers(fleet: aw.fleets.FleetEstimate) -> np.ndarray:
    """All that was estimated, in one row."""
    parts = [fleet.pooled.base_values, fleet.mean, *fleet.deviations.values()]
    parts += [one.base_values for one in fleet.robots.values()]
    parts += [np.sqrt(np.diag(one.base_covariance)) for one in fleet.robots.values()]
    return np.concatenate(parts)
