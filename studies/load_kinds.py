"""Loads that move in the hand, on MuJoCo: how often their kind is named rightly.

An arm waves a gripper with a wrist sensor, and in it a rigid body, a ball in a box, a
pendulum on a ball joint, a body on a hinge, one that slips in its grip, or one held by
springs. MuJoCo moves arm and load; masses, lengths, damping, friction, motion and noise
are drawn from the seed.

    python -m studies.load_kinds --runs 20 --seed 1000
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import armwise as aw
from armwise.arms import Arm
from armwise.loads import KINDS, identify_load_kind
from armwise.motions import random_motion
from armwise.plants import import_mujoco
from armwise.plants.mujoco_arm import spec_from_arm
from armwise.recordings import Recording

ARMS = ("panda", "ur10")
FRAME = "flange"

_STEP = 1e-3
"""Step of MuJoCo in [s]."""

_EVERY = 2
"""Steps a sample: 500 Hz."""


_LEAD = 2.0
"""Seconds of motion before the log begins, in which loads fall, slip and settle."""


@dataclass(frozen=True, eq=False)
class HeldLoad:
    """A log of a load, and what it is.

    Attributes:
        arm: The arm that moved.
        kind: One of KINDS.
        truth: Parameters of the load.
        log: Joint positions and the wrist's wrench.
        travel: Largest displacement of the moving body in the hand in [m].
    """

    arm: Arm
    kind: str
    truth: dict[str, float]
    log: Recording
    travel: float


def held_load(kind: str, seed: int, duration: float = 10.0) -> HeldLoad:
    """Move an arm that holds such a load, and log it."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    mujoco = import_mujoco()
    arm = aw.load_arm(ARMS[int(rng.integers(len(ARMS)))])
    spec = spec_from_arm(arm, None, FRAME)
    hand = spec.body(f"beyond {FRAME}")
    hand.explicitinertial = True
    hand.mass = rng.uniform(0.2, 0.8)
    hand.ipos = rng.uniform([-0.01, -0.01, 0.02], [0.01, 0.01, 0.06])
    sphere = hand.mass * rng.uniform(4e-4, 2e-3)
    hand.fullinertia = [sphere, sphere, sphere, 0, 0, 0]
    grip = np.array([*rng.uniform(-0.02, 0.02, 2), rng.uniform(0.06, 0.15)])
    truth = _LOADS[kind](mujoco, spec, hand, grip, rng)
    spec.option.timestep = _STEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model = spec.compile()
    motion = random_motion(
        arm,
        int(rng.integers(1 << 30)),
        duration,
        harmonics=int(rng.integers(5, 9)),
        roughness=rng.uniform(0.5, 1.0),
        reach=rng.uniform(0.1, 0.2),
        fastest=rng.uniform(1.2, 2.2),
    )
    q, wrench, travel = _follow(mujoco, model, arm, motion, duration)
    noise = np.repeat([rng.uniform(0.03, 0.15), rng.uniform(0.001, 0.006)], 3)
    zero = 20.0 * noise * rng.normal(size=6)
    wrench = wrench + zero + noise * rng.normal(size=wrench.shape)
    count = 2.0 * np.pi / 2 ** int(rng.integers(17, 21))
    q = np.round(q / count) * count
    stamps = np.arange(len(q)) * _STEP * _EVERY
    log = Recording.from_arrays(stamps, q=q, wrench=wrench)
    return HeldLoad(arm, kind, truth, log, travel)


def _follow(
    mujoco: Any, model: Any, arm: Arm, motion: Any, duration: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Positions and wrenches of an arm that is led along a motion, load and all."""
    data = mujoco.MjData(model)
    names = arm.coordinate_names
    at = np.array([int(model.joint(n).qposadr[0]) for n in names])
    dof = np.array([int(model.joint(n).dofadr[0]) for n in names])
    rows = np.concatenate(
        [
            np.arange(3) + int(model.sensor(f"wrist {kind}").adr[0])
            for kind in ("force", "torque")
        ]
    )
    model.dof_armature[dof] += 0.2  # geared rotors, which loads cannot shake
    lead = round(_LEAD / _STEP)
    steps = round(duration / _STEP)
    reference = motion.sample((np.arange(lead + steps) - lead) * _STEP)
    data.qpos[at], data.qvel[dof] = reference.q[0], reference.qd[0]
    mujoco.mj_forward(model, data)
    _settle_free(mujoco, model, data)
    wanted, needed = np.zeros((2, model.nv))
    q = np.empty((steps // _EVERY, len(names)))
    wrench = np.empty((steps // _EVERY, 6))
    body = model.body("load").id if "load" in _names(model) else -1
    site = model.site(f"at {FRAME}").id
    positions = []
    dry = model.dof_frictionloss.copy()
    model.dof_frictionloss[:] = 20.0 * dry  # a firm grip, at first
    loosens = round(_LEAD / _STEP)
    for k in range(-lead, steps):
        if k == loosens:
            model.dof_frictionloss[:] = dry
        # Computed torque of the arm alone; what hangs in the hand disturbs it.
        error = reference.q[lead + k] - data.qpos[at]
        slip = reference.qd[lead + k] - data.qvel[dof]
        wanted[dof] = reference.qdd[lead + k] + 900.0 * error + 60.0 * slip
        mujoco.mj_mulM(model, data, needed, wanted)
        data.qfrc_applied[dof] = (needed + data.qfrc_bias - data.qfrc_passive)[dof]
        is_sample = k >= 0 and k % _EVERY == 0
        if is_sample:
            q[k // _EVERY] = data.qpos[at]
        # A step leaves the sensors and poses of where it began.
        mujoco.mj_step(model, data)
        if is_sample:
            wrench[k // _EVERY] = data.sensordata[rows]
            if body >= 0:
                R = data.site_xmat[site].reshape(3, 3)
                positions.append(R.T @ (data.xipos[body] - data.site_xpos[site]))
    if not np.isfinite(data.qpos).all() or data.warning.number.any():
        raise RuntimeError("The plant ran away.")
    travel = float(np.ptp(np.array(positions), axis=0).max()) if positions else 0.0
    return q, wrench, travel


def _names(model: Any) -> list[str]:
    return [model.body(i).name for i in range(model.nbody)]


def _settle_free(mujoco: Any, model: Any, data: Any) -> None:
    """Put a free ball into its box, at its centre."""
    if "load" in _names(model):
        joint = model.body("load").jntadr[0]
        if joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            at = model.jnt_qposadr[joint]
            data.qpos[at : at + 3] = data.site_xpos[model.site("box").id]
            mujoco.mj_forward(model, data)


def _unit(rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=3)
    return np.asarray(x / np.linalg.norm(x))


def _body(hand: Any, at: np.ndarray, mass: float, center: np.ndarray, size: Any) -> Any:
    """A box of this mass, its centre away from where it is held."""
    body = hand.add_body(name="load", pos=at)
    body.explicitinertial = True
    body.mass, body.ipos = mass, center
    x, y, z = np.asarray(size) ** 2
    body.inertia = mass / 12.0 * np.array([y + z, x + z, x + y])
    return body


def _rigid(
    mujoco: Any, spec: Any, hand: Any, grip: np.ndarray, rng: Any
) -> dict[str, float]:
    mass = rng.uniform(0.2, 2.0)
    center = _unit(rng) * rng.uniform(0.02, 0.1)
    _body(hand, grip, mass, center, rng.uniform(0.04, 0.15, 3))
    return {"mass": mass}


def _pendulum(
    mujoco: Any, spec: Any, hand: Any, grip: np.ndarray, rng: Any
) -> dict[str, float]:
    mass, length = rng.uniform(0.2, 1.5), rng.uniform(0.05, 0.3)
    ratio = rng.uniform(0.01, 0.1)
    body = _body(
        hand, grip, mass, np.array([0, 0, length]), 3 * [rng.uniform(0.01, 0.05)]
    )
    swing = np.sqrt(9.81 / length)
    damping = 2.0 * ratio * swing * mass * length**2
    body.add_joint(
        name="moves", type=mujoco.mjtJoint.mjJNT_BALL, damping=[damping, 0, 0]
    )
    return {"moving_mass": mass, "length": length, "frequency_hz": swing / 2 / np.pi,
            "damping_ratio": ratio}  # fmt: skip


def _hinge(
    mujoco: Any, spec: Any, hand: Any, grip: np.ndarray, rng: Any
) -> dict[str, float]:
    mass, length = rng.uniform(0.2, 1.5), rng.uniform(0.04, 0.2)
    axis = _unit(rng)
    center = np.cross(axis, _unit(rng))
    center = length * center / np.linalg.norm(center)
    body = _body(hand, grip, mass, center, rng.uniform(0.02, 0.15, 3))
    swing, ratio = np.sqrt(9.81 / length), rng.uniform(0.02, 0.2)
    body.add_joint(
        name="moves",
        type=mujoco.mjtJoint.mjJNT_HINGE,
        axis=axis,
        damping=[2.0 * ratio * swing * mass * length**2, 0, 0],
    )
    return {"moving_mass": mass, "length": length}


def _slipping(
    mujoco: Any, spec: Any, hand: Any, grip: np.ndarray, rng: Any
) -> dict[str, float]:
    mass = rng.uniform(0.3, 2.0)
    center = _unit(rng) * rng.uniform(0.0, 0.05)
    body = _body(hand, grip, mass, center, rng.uniform(0.04, 0.15, 3))
    friction = rng.uniform(5.0, 9.0)  # [m/s²]: less than its weight
    body.add_joint(
        name="moves",
        type=mujoco.mjtJoint.mjJNT_SLIDE,
        axis=_unit(rng),
        frictionloss=mass * friction,
        damping=[mass * rng.uniform(2.0, 20.0), 0, 0],
        range=[-0.1, 0.1],
        limited=True,
    )
    return {"moving_mass": mass, "friction": mass * friction}


def _compliant(
    mujoco: Any, spec: Any, hand: Any, grip: np.ndarray, rng: Any
) -> dict[str, float]:
    mass, length = rng.uniform(0.3, 2.0), rng.uniform(0.05, 0.15)
    size = rng.uniform(0.04, 0.15, 3)
    body = _body(hand, grip, mass, np.array([0, 0, length]), size)
    hertz, ratio = rng.uniform(2.0, 8.0), rng.uniform(0.02, 0.2)
    turns = rng.random() < 0.5
    kind = mujoco.mjtJoint.mjJNT_HINGE if turns else mujoco.mjtJoint.mjJNT_SLIDE
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    axes = R if not turns else np.eye(3)[:2]
    for i, axis in enumerate(axes):
        own = hertz * rng.uniform(1.0, 1.5)
        inertia = mass * length**2 if turns else mass
        stiffness = inertia * (2.0 * np.pi * own) ** 2
        damping = 2.0 * ratio * inertia * 2.0 * np.pi * own
        body.add_joint(
            name=f"moves {i}", type=kind, axis=axis, stiffness=stiffness,
            damping=[damping, 0, 0],
        )  # fmt: skip
    return {"moving_mass": mass, "frequency_hz": hertz, "damping_ratio": ratio}


def _loose(
    mujoco: Any, spec: Any, hand: Any, grip: np.ndarray, rng: Any
) -> dict[str, float]:
    radius = rng.uniform(0.015, 0.03)
    half = radius + rng.uniform(0.015, 0.06, 3)
    mass = rng.uniform(0.2, 1.0)
    turn = np.zeros(4)
    axis, angle = _unit(rng), rng.uniform(0, 0.5)
    mujoco.mju_axisAngle2Quat(turn, axis, angle)
    box = hand.add_body(name="box", pos=grip + np.array([0, 0, half[2]]), quat=turn)
    box.add_site(name="box")
    wall = 0.01
    for k in range(3):
        for side in (-1.0, 1.0):
            size = half + 2 * wall
            size[k] = wall
            pos = np.zeros(3)
            pos[k] = side * (half[k] + wall)
            box.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX, size=size, pos=pos, mass=0.02,
                contype=2, conaffinity=2,
            )  # fmt: skip
    ball = spec.worldbody.add_body(name="load")
    ball.add_freejoint()
    ball.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[radius, 0, 0], mass=mass,
        contype=2, conaffinity=2, condim=6,
        friction=[rng.uniform(0.2, 1.0), 0.005, rng.uniform(1e-4, 2e-3)],
        solref=[rng.uniform(0.004, 0.02), rng.uniform(0.3, 1.0)],
    )  # fmt: skip
    return {"moving_mass": mass, "travel": 2.0 * float((half - radius).max())}


_LOADS = {
    "rigid": _rigid,
    "loose": _loose,
    "pendulum": _pendulum,
    "hinged": _hinge,
    "slipping": _slipping,
    "compliant": _compliant,
}


def _short(values: dict[str, float]) -> dict[str, float]:
    return {k: float(f"{v:.3g}") for k, v in values.items()}


def main() -> None:
    """Print one line per load, and the confusion of kinds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    options = parser.parse_args()
    kinds = options.kind or KINDS
    names: dict[str, dict[str, int]] = {kind: {} for kind in kinds}
    # Every kind in turn: a run cut short still counts.
    for seed in range(options.seed, options.seed + options.runs):
        for kind in kinds:
            load = held_load(kind, seed)
            began = time.process_time()
            answer = identify_load_kind(load.log, load.arm, frame=FRAME)
            took = time.process_time() - began
            names[kind][answer.kind] = names[kind].get(answer.kind, 0) + 1
            row = {
                "seed": seed,
                "true": kind,
                "named": answer.kind,
                "probability": round(answer.probability, 3),
                "s": round(took, 1),
                "travel_mm": round(1e3 * load.travel, 1),
                "errors": _short(answer.errors),
                "values": _short(answer.values),
                "truth": _short(load.truth),
            }
            print(json.dumps(row), flush=True)
    right = sum(names[kind].get(kind, 0) for kind in kinds)
    print(json.dumps({"right": right, "of": options.runs * len(kinds)} | names))


if __name__ == "__main__":
    main()
