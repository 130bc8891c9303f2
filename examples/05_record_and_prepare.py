"""05: run an arm with imperfect sensors, write the log, read it, prepare it."""

import sys
from pathlib import Path

import numpy as np

import armwise as aw

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "armwise-examples")
folder.mkdir(parents=True, exist_ok=True)

arm = aw.load_arm("ddarm")
sensors = (
    aw.plants.Encoder(resolution=2 * np.pi / 2**16),
    aw.plants.TorqueSensor(noise_std=[2.0, 1.0, 0.5]),
)
plant = aw.SimulatedArm(arm, sensors=sensors, seed=0)
motion = aw.motions.Sinusoid([3.0, 2.0, 1.0], 0.6, [2.0, 3.0, 4.0], 5.0)
recording = aw.run(plant, aw.control.ComputedTorque(arm, 400.0, 40.0), motion)

# A log holds what was measured; a simulation also knows commands and the truth.
measured = [name for name in recording.channels if name[:2] in ("q_", "ta")]
aw.write_recording(recording.select(measured), folder / "run.csv")

log = aw.read_recording(folder / "run.csv", arm=arm)
data = aw.prepare(log, arm=arm)  # cut-off and lag are found from the data
done = data.preparation
print(f"{done.rows_read} rows read, {len(data)} samples")
print(f"Low-pass at {done.cutoff_hz:.1f} Hz, torque late by {1e3 * done.lag:.2f} ms")
truth = aw.Dynamics(arm).inverse_dynamics(data.q, data.qd, data.qdd)
error = np.sqrt(np.mean((data.tau - truth) ** 2, axis=0))
print("Residual torque of the true model [N m]:", np.round(error, 2))
