"""06: what a model is worth in control: feedback alone, then feedforward."""

import numpy as np

import armwise as aw

arm = aw.load_arm("ddarm")
motion = aw.motions.Quintic(
    np.deg2rad([80.0, 269.1, -30.0]), np.deg2rad([330.0, 19.1, 220.0]), 1.3
)
plant = aw.SimulatedArm(arm)
model = aw.plants.perturbed(arm, 0.05, seed=1)  # 5 % off

inertia = np.array([13.0, 1.2, 0.4])
pd = aw.control.PD(inertia * 20.0**2, inertia * 40.0)
controllers = {
    "PD": pd,
    "PD + gravity": aw.control.Feedforward(pd, model, "gravity"),
    "PD + full feedforward": aw.control.Feedforward(pd, model),
    "computed torque": aw.control.ComputedTorque(model, 400.0, 40.0),
}
for name, controller in controllers.items():
    recording = aw.run(plant, controller, motion)
    time = recording["true_q_1"].time
    q = np.stack([recording[f"true_q_{j}"].values for j in (1, 2, 3)], axis=1)
    error = np.rad2deg(np.abs(q - motion.sample(time).q).max(axis=0))
    print(f"{name:22} peak errors {np.round(error, 2)}°")
