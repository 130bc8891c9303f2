"""12: generated C, compiled, controls a MuJoCo arm through the wait-free exchange."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.codegen import build_controller
from armwise.control import PD, effective_inertia, middle_posture, simulate_log

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "armwise-examples")
arm = aw.load_arm("ur10")
motion = aw.motions.random_motion(arm, 1, 4.0)


class CompiledController:
    """A controller in another program: samples to its input, torques back."""

    def __init__(self, program: Path, gains: np.ndarray) -> None:
        words = [str(program), *map(repr, gains.ravel().tolist()), "0.0"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe)

    def reset(self, batch: int, period: float) -> None:
        """Nothing: the program begins with its first sample."""

    def torque(self, t, reference, measurement):
        """Send one sample, wait for its torque."""
        rows = (measurement.q, measurement.qd, *reference)
        self.process.stdin.write(np.concatenate([x[0] for x in rows]).tobytes())
        self.process.stdin.flush()
        return np.frombuffer(self.process.stdout.read(8 * arm.dof))[None, :]


log = simulate_log(arm, aw.motions.random_motion(arm, 0, 8.0), mujoco=True, seed=0)
data = aw.prepare(log, arm=arm)
full = aw.identify(arm, data, friction="linear")
small = aw.reduce(full, data)
code = aw.generate(small, folder / "two_rate", functions=[], runtime=True, tries=1)
program = build_controller(code, folder)  # with the C compiler of this machine
omega, inertia = 2 * np.pi * 3.0, effective_inertia(arm, middle_posture(arm))
gains = np.array([inertia * omega**2, 2 * inertia * omega])
compiled = CompiledController(program, gains)
for title, controller in (("PD alone", PD(*gains)), ("compiled C", compiled)):
    run = aw.run(aw.MujocoArm(arm), controller, motion)
    joints = range(1, arm.dof + 1)
    error = [run[f"q_{j}"].values[:-1] - run[f"reference_q_{j}"].values for j in joints]
    print(f"{title}: {1e3 * np.sqrt(np.mean(np.square(error))):.3f} mrad off")
said = compiled.process.communicate()[1].decode()
print(f"{small.base.count} of {full.base.count} parameters; the program counted {said}")
