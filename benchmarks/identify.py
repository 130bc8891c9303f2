"""Identification of panda from 100,000 samples: beside FIGAROH and Pinocchio + lstsq.

One thread, the same process. FIGAROH (pip install figaroh) is measured if installed.
"""

from __future__ import annotations

import importlib.util
import resource
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
from threadpoolctl import threadpool_limits

import armwise as aw
from armwise.identification import Columns, PhysicallyConsistent
from armwise.identification.problem import pose_problem
from benchmarks.figures import Row, best

SAMPLES = 100_000
MANY = 10_000_000


def run() -> list[Row]:
    arm = aw.load_arm("panda")
    data = recorded(arm, SAMPLES)
    _fit(arm, data)
    with threadpool_limits(limits=1):
        ours = best(lambda: _fit(arm, data), 5)
        theirs, figaroh = _pinocchio(arm, data), _figaroh(arm, data)
        problem = pose_problem(Columns(arm), [data])
        constrained = best(lambda: PhysicallyConsistent().solve(problem), 5)
    rows = [
        Row("identify [s], Pinocchio + lstsq", ours, theirs, theirs / ours, "≥ 10"),
        Row("identify [s], FIGAROH 1.0.2", ours, figaroh, figaroh / ours, "≥ 100"),
        Row(
            "consistent fit, data accumulated [s]", constrained, *[np.nan] * 2, "< 0.05"
        ),
    ]
    return rows + _memory(arm)


def recorded(arm: aw.Arm, samples: int) -> aw.Samples:
    """Sum of five sines per joint at 1 kHz, with noise on the torque."""
    rng = np.random.default_rng(0)
    t = np.arange(samples) * 1e-3
    w, phase = rng.uniform(0.3, 2.0, (5, arm.dof)), rng.uniform(0, 6.28, (5, arm.dof))
    q = sum(0.3 * np.sin(w[k] * t[:, None] + phase[k]) for k in range(5))
    qd = sum(0.3 * w[k] * np.cos(w[k] * t[:, None] + phase[k]) for k in range(5))
    qdd = sum(-0.3 * w[k] ** 2 * np.sin(w[k] * t[:, None] + phase[k]) for k in range(5))
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += rng.normal(0, 0.1, tau.shape)
    return aw.Samples(time=t, q=q, qd=qd, qdd=qdd, tau=tau)


def _model(arm: aw.Arm):
    import pinocchio as pin

    with tempfile.TemporaryDirectory() as folder:
        aw.save_arm(arm, f"{folder}/arm.urdf")
        return pin.buildModelFromUrdf(f"{folder}/arm.urdf")


def _pinocchio(arm: aw.Arm, data: aw.Samples) -> float:
    import pinocchio as pin

    model = _model(arm)
    scratch = model.createData()
    start = time.perf_counter()
    Y = np.empty((len(data), arm.dof, arm.layout.link_size))
    for i in range(len(data)):
        Y[i] = pin.computeJointTorqueRegressor(
            model, scratch, data.q[i], data.qd[i], data.qdd[i]
        )
    np.linalg.lstsq(Y.reshape(-1, arm.layout.link_size), data.tau.ravel(), rcond=None)
    return time.perf_counter() - start


def _figaroh(arm: aw.Arm, data: aw.Samples) -> float:
    """Its regressor, column elimination and QR to base parameters; NaN if absent."""
    found = importlib.util.find_spec("figaroh")
    if found is None or found.origin is None:
        print("FIGAROH is not measured. pip install figaroh==1.0.2")
        return float("nan")
    tools = Path(found.origin).parent / "tools"
    regressor, qrdecomposition = (
        _load(tools / f"{name}.py") for name in ("regressor", "qrdecomposition")
    )
    model = _model(arm)
    robot = SimpleNamespace(model=model, data=model.createData())
    config = regressor.RegressorConfig(
        has_friction=True, has_actuator_inertia=True, has_joint_offset=True
    )
    start = time.perf_counter()
    builder = regressor.RegressorBuilder(robot, config)
    actuated = {"act_idxv": list(range(arm.dof))}
    W = builder.build_basic_regressor(data.q, data.qd, data.qdd, actuated)
    names = {f"p{k}": 0.0 for k in range(W.shape[1])}
    dropped, kept = regressor.get_index_eliminate(W, names)
    reduced = regressor.build_regressor_reduced(W, dropped)
    tau = data.tau.T.ravel()
    qrdecomposition.QRDecomposer().double_decomposition(
        tau, reduced, kept, dict.fromkeys(kept, 0.0)
    )
    return time.perf_counter() - start


def _load(path: Path) -> ModuleType:
    """Load one of FIGAROH's files alone: its package needs far more than they do."""
    spec = importlib.util.spec_from_file_location(f"figaroh_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _fit(arm: aw.Arm, data: aw.Samples) -> aw.Estimate:
    """What the others do: least squares, friction linear."""
    return aw.identify(arm, data, aw.WeightedLeastSquares(), friction="linear")


def _memory(arm: aw.Arm) -> list[Row]:
    """Extra memory of a fit beyond the data themselves, small and large."""
    rows = []
    for samples in (SAMPLES, MANY):
        data = _repeated(recorded(arm, SAMPLES), samples // SAMPLES)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        _fit(arm, data)
        elapsed = time.perf_counter() - start
        extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        rows.append(
            Row(f"extra memory, {samples:,} samples [MB]", extra, *[np.nan] * 2, "< 50")
        )
        rows.append(Row(f"time, {samples:,} samples [s]", elapsed, *[np.nan] * 2, ""))
    return rows


def _repeated(data: aw.Samples, times: int) -> list[aw.Samples]:
    """The same run again and again: a long log that takes no room."""
    return [data] * times


if __name__ == "__main__":
    for row in run():
        print(row)
