"""09: keep the parameters that matter, and write them as C for a controller."""

import sys
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.codegen import load_generated

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "armwise-examples")
arm = aw.load_arm("puma560")
lower, upper = 0.6 * arm.limits("lower"), 0.6 * arm.limits("upper")
times = np.linspace(0.0, 12.0, 7)
dyn = aw.Dynamics(arm)


def samples(seed: int) -> aw.Samples:
    rng = np.random.default_rng(seed)
    motion = aw.motions.Polynomial.through(
        times, rng.uniform(lower, upper, (7, arm.dof))
    )
    t = np.arange(0.0, 12.0, 0.01)
    q, qd, qdd = motion.sample(t)
    tau = dyn.inverse_dynamics(q, qd, qdd)
    noise = 0.005 * np.abs(tau).max(axis=0)
    return aw.Samples(t, q, qd, qdd, tau + noise * rng.normal(size=tau.shape))


fit, other = samples(1), samples(2)
full = aw.identify(arm, fit, aw.WeightedLeastSquares(), friction="linear")
for threshold in (0.001, 0.01, 0.05):
    small = aw.reduce(full, fit, threshold)
    error = small.validate(other).relative_error
    print(
        f"{100 * threshold:4.1f} %: {small.base.count:2} of {full.base.count} "
        f"parameters, unexplained torque {np.round(100 * error, 1)} %"
    )

small = aw.reduce(full, fit, 0.01)
code = aw.generate(small, folder / "code", functions=["inverse_dynamics"])
counts = code.counts["inverse_dynamics"]
print(f"{counts['multiplications']} multiplications, {counts['additions']} additions")
compiled = load_generated(code.folder)
motion = (other.q, other.qd, other.qdd)
ours = aw.Dynamics(small.arm).inverse_dynamics(*motion)
difference = np.abs(compiled.inverse_dynamics(*motion) - ours).max()
print(f"Compiled, it equals the model to {difference:.1e} N m")
