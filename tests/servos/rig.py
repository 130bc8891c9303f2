"""Servo arms with known truth, and recordings of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.recordings import Channel
from armwise.servos import PARAMETERS, Servo

TICK = 2.0 * np.pi / 4096

URDF = """<robot name="fingers"><link name="base"/>
{links}
</robot>"""

LINK = """<link name="l{k}"><inertial><origin xyz="0 0 -0.08"/><mass value="0.12"/>
<inertia ixx="2e-4" iyy="2e-4" izz="2e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/>
<origin xyz="0 0 {z}"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="5" velocity="20"/></joint>"""


def arm(folder: Path, joints: int = 2) -> aw.arms.Arm:
    """Return an arm of some links that swing in one vertical plane."""
    links = [
        LINK.format(k=k, parent=f"l{k - 1}" if k else "base", z=-0.12 if k else 0.0)
        for k in range(joints)
    ]
    path = folder / f"fingers{joints}.urdf"
    path.write_text(URDF.format(links="\n".join(links)))
    return aw.load_arm(path)


def truth(robot: aw.arms.Arm, **changes: float) -> Servo:
    """Return servos whose numbers are known; joints differ by some percent."""
    values = {name: p.absent for name, p in PARAMETERS.items()}
    values |= {"stiffness": 6.0, "damping": 0.25, "coulomb": 0.06, "armature": 0.006}
    values |= {"delay": 0.016, "acceleration": 60.0} | changes
    spread = 1.0 + 0.05 * np.arange(robot.dof)
    arrays = {
        name: value * (spread if name in ("stiffness", "damping", "coulomb") else 1.0)
        for name, value in values.items()
    }
    table = {name: np.zeros(robot.dof) + x for name, x in arrays.items()}
    std = {name: np.zeros(robot.dof) for name in table}
    return Servo(robot, np.ones(robot.dof), table, std)


def commands(dof: int, seed: int, duration: float = 14.0) -> np.ndarray:
    """Return commands at 50 Hz: sines of several speeds, steps and rests."""
    random = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 0.02)
    columns = []
    for _ in range(dof):
        column = 0.2 * np.sin(2 * np.pi * random.uniform(0.15, 0.3) * t)
        column += 0.15 * np.sin(2 * np.pi * random.uniform(0.5, 1.3) * t)
        steps = random.uniform(-0.25, 0.25, 8)[(t / duration * 7.99).astype(int)]
        columns.append(0.4 + np.where(np.sin(0.9 * t) > 0, column, 0.0) + steps)
    moving = np.column_stack(columns)
    # A second of rest before and after.
    still = [np.tile(moving[k], (50, 1)) for k in (0, -1)]
    # On the servos' ticks, so that none is lost to truncation.
    return np.round(np.vstack([still[0], moving, still[1]]) / TICK) * TICK


def recording(
    servo: Servo,
    seed: int,
    *,
    is_quantised: bool = True,
    still: Sequence[int] = (),
    **options: object,
) -> aw.Recording:
    """Return what servos do under some commands, some of which stand still."""
    command = commands(servo.arm.dof, seed)
    command[:, still] = command[0, still]
    time = np.arange(len(command)) * 0.02
    q = np.tile(command[0], (len(time), 1))
    bare = of_arrays(time, q, command, f"motion{seed}.csv")
    run = servo.predict(bare, **options)  # type: ignore[arg-type]
    if is_quantised:
        run = np.round(run / TICK) * TICK
    return of_arrays(time, run, command, f"motion{seed}.csv")


def of_arrays(
    time: np.ndarray,
    q: np.ndarray,
    command: np.ndarray,
    source: str = "log",
    temperatures: Sequence[float] = (),
) -> aw.Recording:
    """Return a recording of positions and commands, and of motors' temperatures."""
    extra = {
        f"command_{j + 1}": Channel(time, column) for j, column in enumerate(command.T)
    }
    for j, celsius in enumerate(temperatures):
        extra[f"temperature_{j + 1}"] = Channel(time, np.full(len(time), celsius))
    return aw.Recording.from_arrays(time, q=q, extra=extra, source=source)
