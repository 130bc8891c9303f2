"""MujocoArm: a simulated arm on MuJoCo's engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import BASE, Arm, Frame, InertialParameters, Joint, load_arm
from armwise.errors import ArgumentError, ArmError, MissingExtra
from armwise.plants.drive import Actuator, Friction
from armwise.plants.payload import Payload, carried_beyond, carrying
from armwise.plants.sensors import Sensor, WristSensor
from armwise.plants.simulation_loop import (
    IDEAL_SENSORS,
    FrictionEngine,
    PlantEngine,
    Rig,
    RiggedPlant,
)
from armwise.plants.state import Clock, State
from armwise.regression import FrictionModel

if TYPE_CHECKING:
    from jaxtyping import Float


# MuJoCo model of an arm: every inertial parameter, no geometry.

# Judgement: a microgram changes no torque that a sensor could show.
_LEAST = 1e-9
"""Mass [kg] and inertia [kg m²] of a link without mass; MuJoCo refuses none at all."""


def import_mujoco() -> Any:
    """Return the module mujoco, or say how to install it."""
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("mujoco-core", "sim", "Simulating with MuJoCo") from None
    return mujoco


def model_from_arm(arm: Arm, payload: Payload | None, wrist: str | None) -> Any:
    """Build the MuJoCo model of an arm.

    Args:
        arm: Its links, joints, drives and couplings.
        payload: What it holds.
        wrist: Frame of a force/torque sensor; what hangs on it becomes its own body.

    Raises:
        ArmError: If MuJoCo cannot simulate such a body.
    """
    try:
        return spec_from_arm(arm, payload, wrist).compile()
    except ValueError as error:
        raise ArmError(f"MuJoCo cannot simulate {arm.name}: {error}") from None


def spec_from_arm(
    arm: Arm, payload: Payload | None = None, wrist: str | None = None
) -> Any:
    """The same before it is compiled, for those who add to it."""
    mujoco = import_mujoco()
    spec = mujoco.MjSpec()
    spec.modelname = arm.name
    spec.option.gravity = np.asarray(arm.gravity, dtype=float)
    for name, link, inertia in _bodies(arm, payload, wrist):
        if defect := inertia.defect():
            raise ArmError(
                f"MuJoCo cannot simulate {arm.name}: {name}: {defect}. Use "
                "SimulatedArm, which only needs a positive definite mass matrix."
            )
        _add_link(mujoco, spec, arm, link, inertia)
    if wrist is not None:
        _add_wrist(mujoco, spec, arm, wrist, carried_beyond(arm, wrist, payload))
    _add_couplings(spec, arm)
    _add_mimics(mujoco, spec, arm)
    return spec


def _bodies(
    arm: Arm, payload: Payload | None, wrist: str | None
) -> list[tuple[str, int, InertialParameters]]:
    """Every link with what it carries itself, less what hangs on the wrist sensor."""
    loaded = carrying(arm, payload) if payload else arm
    bodies = [(link.name, i, link.inertia) for i, link in enumerate(loaded.links)]
    if wrist is not None:
        link, T_link_wrist = arm.find_frame(wrist)
        beyond = carried_beyond(arm, wrist, payload).transformed(T_link_wrist)
        name, _, inertia = bodies[link]
        bodies[link] = (name, link, inertia - beyond)
    return bodies


def _add_link(
    mujoco: Any, spec: Any, arm: Arm, i: int, inertia: InertialParameters
) -> None:
    joint = arm.joints[i]
    parent = arm.links[joint.parent].name if joint.parent != BASE else "world"
    body = spec.body(parent).add_body(
        name=arm.links[i].name, **_pose_attributes(joint.origin)
    )
    _set_inertia(body, inertia)
    body.add_joint(**_joint(mujoco, joint))
    for frame in arm.frames:
        if frame.link == i:
            _add_site(body, frame)


def _joint(mujoco: Any, joint: Joint) -> dict[str, Any]:
    kinds = mujoco.mjtJoint
    return {
        "name": joint.name,
        "type": kinds.mjJNT_HINGE if joint.is_revolute else kinds.mjJNT_SLIDE,
        "axis": joint.axis,
        "pos": joint.anchor,
        "armature": joint.drive.rotor_inertia,
        "damping": _damping(joint.drive.viscous),
        "frictionloss": joint.drive.coulomb,
    }


def _damping(viscous: float) -> Any:
    # MuJoCo 4 takes a polynomial in the speed, of which this is the linear term.
    return [viscous, 0.0, 0.0]


def _add_site(body: Any, frame: Frame) -> None:
    body.add_site(name=frame.name, **_pose_attributes(frame.pose))


def _set_inertia(body: Any, inertia: InertialParameters) -> None:
    body.explicitinertial = True
    body.mass = max(inertia.mass, _LEAST)
    body.ipos = inertia.center_of_mass
    C = inertia.central_inertia
    # A multiple of the identity lifts the smallest principal moment and keeps both the
    # axes and the triangle inequality.
    C = C + max(0.0, _LEAST - float(np.linalg.eigvalsh(C)[0])) * np.eye(3)
    # MuJoCo's order: xx, yy, zz, xy, xz, yz.
    body.fullinertia = C[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _add_wrist(
    mujoco: Any, spec: Any, arm: Arm, wrist: str, beyond: InertialParameters
) -> None:
    link, pose = arm.find_frame(wrist)
    body = spec.body(arm.links[link].name).add_body(
        name=f"beyond {wrist}", **_pose_attributes(pose)
    )
    _set_inertia(body, beyond)
    site = f"at {wrist}"
    body.add_site(name=site)
    for kind in ("force", "torque"):
        spec.add_sensor(
            name=f"wrist {kind}",
            type=getattr(mujoco.mjtSensor, f"mjSENS_{kind.upper()}"),
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname=site,
        )


def _add_couplings(spec: Any, arm: Arm) -> None:
    for coupling in arm.couplings:
        tendon = spec.add_tendon(
            name=coupling.name,
            armature=coupling.drive.rotor_inertia,
            damping=_damping(coupling.drive.viscous),
            frictionloss=coupling.drive.coulomb,
        )
        for name, weight in zip(arm.coordinate_names, coupling.weights, strict=True):
            if weight:
                tendon.wrap_joint(name, float(weight))


def _add_mimics(mujoco: Any, spec: Any, arm: Arm) -> None:
    for joint in arm.joints:
        if joint.mimic is not None:
            follow = spec.add_equality(
                type=mujoco.mjtEq.mjEQ_JOINT,
                name1=joint.name,
                name2=arm.joints[joint.mimic.leader].name,
            )
            follow.data[:5] = joint.mimic.offset, joint.mimic.multiplier, 0, 0, 0


def _pose_attributes(T: Float[np.ndarray, "4 4"]) -> dict[str, Any]:
    mujoco = import_mujoco()
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(T[:3, :3]).reshape(9))
    return {"pos": T[:3, 3], "quat": quaternion}


# Engine: one model, and MjData for each arm of the batch.

INTEGRATORS = {"euler": 0, "rk4": 1, "implicit": 2, "implicitfast": 3}
"""MuJoCo's own integrators, by name."""


class MujocoEngine:
    """Steps MuJoCo models under torques applied at the joints.

    Args:
        model: A compiled model; its hinge and slide joints are driven.
        batch: Number of arms side by side.
        tick: Time step in [s].
        integrator: One of INTEGRATORS.
        offset: Constant torque of each joint's drive in [N m].
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
        joints: Names of the driven joints in order; all of them when not given.
    """

    def __init__(
        self,
        model: Any,
        *,
        batch: int,
        tick: float,
        integrator: str,
        speed_bound: float,
        offset: np.ndarray | None = None,
        joints: tuple[str, ...] | None = None,
    ) -> None:
        self._mujoco = import_mujoco()
        if integrator not in INTEGRATORS:
            raise ArgumentError(
                f"MuJoCo has no integrator {integrator!r}. It has: "
                f"{', '.join(INTEGRATORS)}."
            )
        model.opt.timestep = tick
        model.opt.integrator = INTEGRATORS[integrator]
        self.model = model
        self.joint_names = joints or driven_joints(model)
        ids = [model.joint(name) for name in self.joint_names]
        self._position = np.array([int(j.qposadr[0]) for j in ids], dtype=int)
        self._dof = np.array([int(j.dofadr[0]) for j in ids], dtype=int)
        self.data = [self._mujoco.MjData(model) for _ in range(batch)]
        self.state = State.at_rest(batch, len(ids))
        self._offset = np.zeros(len(ids)) if offset is None else offset
        self._bound = speed_bound
        warning = self._mujoco.mjtWarning
        bad = (warning.mjWARN_BADQPOS, warning.mjWARN_BADQVEL, warning.mjWARN_BADQACC)
        self._bad = [int(kind) for kind in bad]

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        self.state.time = 0.0
        self.state.diverged[:] = False
        self.state.tau[:] = 0.0
        for k, data in enumerate(self.data):
            self._mujoco.mj_resetData(self.model, data)
            data.qpos[self._position] = q[k]
            data.qvel[self._dof] = qd[k]
            self._apply(k, self.state.tau[k])
            self._observe(k)

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        self.state.tau[:] = tau
        for k, data in enumerate(self.data):
            if not self.state.diverged[k]:
                self._apply(k, tau[k])
                self._mujoco.mj_step(self.model, data, ticks)
                self._observe(k)

    def _apply(self, k: int, tau: np.ndarray) -> None:
        self.data[k].qfrc_applied[self._dof] = tau - self._offset

    def _observe(self, k: int) -> None:
        """Bring accelerations and forces up to date, then read the truth."""
        data, state, dof = self.data[k], self.state, self._dof
        qd = data.qvel[dof]
        # MuJoCo resets a model that goes unstable, and counts it as a warning.
        unstable = data.warning.number[self._bad].any() or not np.isfinite(qd).all()
        if unstable or np.abs(qd).max() > self._bound:
            state.diverged[k] = True
            return
        self._mujoco.mj_forward(self.model, data)
        state.q[k] = data.qpos[self._position]
        state.qd[k] = qd
        state.qdd[k] = data.qacc[dof]
        lost = data.qfrc_passive[dof] + data.qfrc_constraint[dof] - self._offset
        rotor = self.model.dof_armature[dof] * data.qacc[dof]
        state.link_tau[k] = state.tau[k] + lost - rotor

    def wrench(self, frame: str) -> Any:
        """Return a sampler of the wrench on what is beyond the wrist sensor."""
        address = [
            int(self.model.sensor(f"wrist {kind}").adr[0])
            for kind in ("force", "torque")
        ]
        indices = np.concatenate([np.arange(a, a + 3) for a in address])

        def sample(state: State) -> np.ndarray:
            return np.stack([data.sensordata[indices] for data in self.data])

        return sample


def driven_joints(model: Any) -> tuple[str, ...]:
    """Return the names of the hinge and slide joints of a model, in order."""
    mujoco = import_mujoco()
    kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    joints = [model.joint(i) for i in range(model.njnt)]
    return tuple(str(j.name) for j in joints if int(j.type[0]) in kinds)


# Plant.


class MujocoArm(RiggedPlant):
    """An arm, or a batch of equal arms, simulated by MuJoCo.

    Args:
        arm: An Arm, a URDF or DH file or bundled name (rebuilt without geometry), or
            an MJCF file (taken as it is, its own actuators switched off).
        sensors: What is measured and how it errs; exact q, q̇, τ when not given.
        seed: Seed of all randomness.
        batch: Number of arms side by side.
        actuator: What lies between command and torque.
        payload: A load in the hand (not with MJCF files).
        friction: Further friction terms (not with MJCF files); MuJoCo has its own way
            to stick, so that nothing else of it may differ from the default.
        control_rate_hz: Torques per second.
        plant_rate_hz: Steps of MuJoCo per second, at least.
        integrator: "euler", "rk4", "implicit" or "implicitfast".
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
        keeps_truth: Whether recordings hold the true motion as well; for a single
            arm only when not given.
    """

    def __init__(
        self,
        arm: Arm | str | Path,
        *,
        sensors: Sequence[Sensor] | None = None,
        seed: int = 0,
        batch: int = 1,
        actuator: Actuator | None = None,
        payload: Payload | None = None,
        friction: Friction | None = None,
        control_rate_hz: float = 1000.0,
        # Judgement: two steps within a control period of 1 ms; MuJoCo's own default is
        # a step of 2 ms.
        plant_rate_hz: float = 2000.0,
        integrator: str = "implicitfast",
        speed_bound: float = 1e3,
        keeps_truth: bool | None = None,
    ) -> None:
        sensors = IDEAL_SENSORS if sensors is None else tuple(sensors)
        actuator = actuator or Actuator()
        wrist = [x.frame for x in sensors if isinstance(x, WristSensor)]
        self.arm, model = _model(arm, payload, wrist[0] if wrist else None)
        clock = Clock.from_rates(control_rate_hz, plant_rate_hz, actuator.delay)
        engine = MujocoEngine(
            model,
            batch=batch,
            tick=clock.tick,
            integrator=integrator,
            speed_bound=speed_bound,
            offset=_offsets(self.arm),
            joints=self.arm.coordinate_names if self.arm else None,
        )
        self.joint_names = engine.joint_names
        self._engine = engine
        moving: PlantEngine = engine
        if friction is not None:
            moving = FrictionEngine(
                engine, _further(self.arm, friction, batch, clock.tick)
            )
        truth = batch == 1 if keeps_truth is None else keeps_truth
        self._rig = Rig(moving, clock, actuator, sensors, seed, engine.wrench, truth)

    @property
    def model(self) -> Any:
        """The MuJoCo model."""
        return self._engine.model


def _model(
    source: Arm | str | Path, payload: Payload | None, wrist: str | None
) -> tuple[Arm | None, Any]:
    if isinstance(source, Arm):
        return source, model_from_arm(source, payload, wrist)
    path = Path(source)
    if not _is_mjcf(path):
        arm = load_arm(source)
        return arm, model_from_arm(arm, payload, wrist)
    if payload is not None or wrist is not None:
        raise ArgumentError(
            f"{path.name}: a payload or a wrist sensor needs an Arm; "
            "load the file with load_arm first."
        )
    mujoco = import_mujoco()
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise ArmError(f"MuJoCo cannot read {path}: {error}") from None
    # Torques come in through qfrc_applied; the file's own servos would fight them.
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    return None, model


def _is_mjcf(path: Path) -> bool:
    if path.suffix.lower() not in (".xml", ".mjcf") or not path.is_file():
        return False
    with path.open("rb") as stream:
        # The root element stands at the top; 64 KiB leave room for long comments.
        return b"<mujoco" in stream.read(65_536)


def _further(
    arm: Arm | None, friction: Friction, batch: int, tick: float
) -> FrictionModel:
    if arm is None:
        raise ArgumentError("Further friction needs an arm, not an MJCF file.")
    if np.any(np.asarray(friction.static) != 1.0):
        raise ArgumentError(
            "MuJoCo's dry friction has no static part; use SimulatedArm for that."
        )
    return FrictionModel(arm, friction.terms, batch, friction.smoothing, tick)


def _offsets(arm: Arm | None) -> Float[np.ndarray, " dof"] | None:
    """Constant torques of the drives, couplings included, seen at the coordinates."""
    if arm is None:
        return None
    offsets = arm.coupling_matrix.T @ [joint.drive.offset for joint in arm.joints]
    for coupling in arm.couplings:
        offsets = offsets + coupling.weights * coupling.drive.offset
    return np.asarray(offsets, dtype=float)
