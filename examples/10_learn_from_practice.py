"""10: practise one motion; the model is wrong, the command gets right."""

import numpy as np

import armwise as aw
from armwise.learning import ZeroPhase

arm = aw.load_arm("ddarm")
model = aw.plants.perturbed(arm, 0.1, seed=3)
motion = aw.motions.Quintic([0.5, 5.0, 4.0], [4.5, 1.0, -0.5], 1.5)
inertia = np.array([13.0, 1.2, 0.4])
feedback = aw.control.PD(inertia * 12.0**2, inertia * 17.0)

learned = aw.learn(
    aw.SimulatedArm(arm, control_rate_hz=500.0),
    motion,
    model,
    4,
    ZeroPhase(8.0),
    feedback=feedback,
)
for k, error in enumerate(learned.velocity_error):
    print(f"attempt {k + 1}: velocity error {np.round(error, 4)} rad/s")
print(f"Practice ended: {learned.ending}.")
