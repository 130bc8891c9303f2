"""13: your robot as a Plant: a MuJoCo arm in another process, behind a socket."""

import multiprocessing
import socket

import numpy as np

import armwise as aw
from armwise.control import ComputedTorque
from armwise.errors import PlantDiverged
from armwise.plants import SocketPlant, serve_plant

arm = aw.load_arm("panda")
middle = 0.5 * (arm.limits("lower") + arm.limits("upper"))
motion = aw.motions.Quintic(middle, middle + 0.4, 1.0)


def robot(listener: socket.socket) -> None:
    """The other process: a driver would stand here instead of MuJoCo."""
    serve_plant(aw.MujocoArm(arm), listener)


def start() -> tuple[multiprocessing.Process, int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fork = multiprocessing.get_context("fork")
        process = fork.Process(target=robot, args=(listener,), daemon=True)
        process.start()
        return process, listener.getsockname()[1]


class PulledPlug(ComputedTorque):
    """Control that pulls the robot's plug after 0.2 s."""

    def torque(self, t, reference, measurement):
        """Kill the other process, then go on as if nothing were."""
        if t >= 0.2:
            process.kill()
        return super().torque(t, reference, measurement)


def follow(kind: type, port: int, **options) -> None:
    """Follow the motion; say how that went."""
    with SocketPlant(arm, port, timeout=2.0, **options) as plant:
        try:
            log = aw.run(plant, kind(arm, 400.0, 40.0), motion)
        except PlantDiverged as stop:
            print(f"{stop} {len(stop.recording['q_1'].time)} rows are there.")
            return
    pairs = [(f"q_{j}", f"reference_q_{j}") for j in range(1, arm.dof + 1)]
    off = [log[a].values[:-1] - log[b].values for a, b in pairs]
    print(f"Followed to {1e3 * np.abs(off).max():.2f} mrad")


process, port = start()
follow(PulledPlug, port)  # interrupted
process, port = start()
follow(ComputedTorque, port)  # restarted
follow(ComputedTorque, port, effort=5.0)  # stopped by a limit
process.kill()
