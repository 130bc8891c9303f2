"""Dynamics of panda over 100,000 samples beside a Python loop over Pinocchio.

One thread, the same process; microseconds a sample.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import armwise as aw
from benchmarks.figures import Row, best

SAMPLES = 100_000
LOOPED = 5_000


def run() -> list[Row]:
    import pinocchio as pin

    arm = aw.load_arm("panda")
    dyn = aw.Dynamics(arm)
    with tempfile.TemporaryDirectory() as folder:
        aw.save_arm(arm, f"{folder}/panda.urdf")
        model = pin.buildModelFromUrdf(f"{folder}/panda.urdf")
    data = model.createData()
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, SAMPLES, 7))

    def looped(function, *arrays):
        def loop():
            for i in range(LOOPED):
                function(model, data, *[a[i] for a in arrays])

        return best(loop, 3) / LOOPED

    kernel = dyn.kernel("regressor")
    fifth = SAMPLES // 5
    few = [a[:fifth] for a in (q, qd, qdd)]
    buffer = [np.empty((len(kernel.program.output("Y").nonzero), 200))]

    def nonzeros():
        for start in range(0, fifth, 200):
            part = [a[start : start + 200] for a in few]
            kernel.columns(part, (), [buffer[0][:, : len(part[0])]])

    pin_id = looped(pin.rnea, q, qd, qdd)
    pin_regressor = looped(pin.computeJointTorqueRegressor, q, qd, qdd)
    pin_mass = looped(pin.crba, q)
    inverse = best(lambda: dyn.inverse_dynamics(q, qd, qdd)) / SAMPLES
    dense = best(lambda: dyn.regressor(*few), 3) / fifth
    mass = best(lambda: dyn.mass_matrix(q)) / SAMPLES
    ours = {
        "inverse dynamics": (inverse, pin_id, "20"),
        "dense regressor": (dense, pin_regressor, "4"),
        "regressor, non-zeros": (best(nonzeros) / fifth, pin_regressor, "20"),
        "mass matrix": (mass, pin_mass, "10"),
    }
    rows = [
        Row(f"{name} [µs]", 1e6 * mine, 1e6 * other, other / mine, f"≥ {bar}")
        for name, (mine, other, bar) in ours.items()
    ]
    return rows + _start_up(arm)


def _start_up(arm: aw.Arm) -> list[Row]:
    """Import, first compilation, cache and base parameters: figures without a peer."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = {**os.environ, "ARMWISE_CACHE": folder}
        first = _trace_and_compile(fresh)
        again = _trace_and_compile(fresh)
    bare = best(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), 3)
    code = [sys.executable, "-c", "import armwise"]
    whole = best(lambda: subprocess.run(code, check=True), 3)
    found = float("inf")
    for _ in range(5):
        from armwise.dynamics import mechanism

        mechanism._mechanisms.clear()
        start = time.perf_counter()
        aw.base_parameters(arm)
        found = min(found, time.perf_counter() - start)
    return [
        Row("import armwise [s]", whole - bare, float("nan"), float("nan"), "< 0.3"),
        Row("regressor, first time [s]", first, float("nan"), float("nan"), "< 5"),
        Row("regressor, from cache [s]", again, float("nan"), float("nan"), "< 0.05"),
        Row("base parameters [s]", found, float("nan"), float("nan"), "< 0.005"),
    ]


def _trace_and_compile(environment: dict[str, str]) -> float:
    code = (
        "import time, numpy as np, armwise as aw\n"
        "from armwise.dynamics import Dynamics\n"
        "from armwise.programs.compiler import find_compiler\n"
        "arm = aw.load_arm('panda'); find_compiler(); q = np.zeros(7)\n"
        "start = time.perf_counter()\n"
        "Dynamics(arm).kernel('regressor')\n"
        "print(time.perf_counter() - start)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    return float(run.stdout)


if __name__ == "__main__":
    for row in run():
        print(row)
