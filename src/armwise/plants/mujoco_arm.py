"""MujocoArm: a simulated arm on MuJoCo's engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import (
    BASE,
    FRICTION_SOLVER,
    Arm,
    Frame,
    InertialParameters,
    Joint,
    load_arm,
)
from armwise.errors import ArgumentError, ArmError, MissingExtra
from armwise.plants.altered_arms import Payload, carried_beyond, carrying
from armwise.plants.drive import Actuator, Friction
from armwise.plants.sensors import Sensor, WristSensor
from armwise.plants.simulation_loop import (
    IDEAL_SENSORS,
    FrictionEngine,
    PlantEngine,
    Rig,
    RiggedPlant,
)
from armwise.plants.state import Clock, State
from armwise.regression import FrictionModel, FrictionTerm

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
        models: A compiled model for each arm side by side, all with the same joints;
            their hinge and slide joints are driven.
        tick: Time step in [s].
        integrator: One of INTEGRATORS.
        offset: Constant torque of each joint's drive in [N m], a row for each arm.
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
        joints: Names of the driven joints in order; all of them when not given.
        needs_forces: Whether accelerations and forces are read after every call; they
            cost a step more.
    """

    def __init__(
        self,
        models: Sequence[Any],
        *,
        tick: float,
        integrator: str,
        speed_bound: float,
        offset: np.ndarray | None = None,
        joints: tuple[str, ...] | None = None,
        needs_forces: bool = True,
    ) -> None:
        self._mujoco, self._needs_forces = import_mujoco(), needs_forces
        if integrator not in INTEGRATORS:
            raise ArgumentError(
                f"MuJoCo has no integrator {integrator!r}. It has: "
                f"{', '.join(INTEGRATORS)}."
            )
        for each in models:
            each.opt.timestep = tick
            each.opt.integrator = INTEGRATORS[integrator]
        self.models, model = tuple(models), models[0]
        self.joint_names = joints or driven_joints(model)
        ids = [model.joint(name) for name in self.joint_names]
        self._position = _rows_of([int(j.qposadr[0]) for j in ids])
        self._dof = _rows_of([int(j.dofadr[0]) for j in ids])
        self.data = [self._mujoco.MjData(each) for each in models]
        self.state = State.at_rest(len(models), len(ids))
        self._offset = np.zeros((len(models), len(ids))) if offset is None else offset
        self._bound = speed_bound
        warning = self._mujoco.mjtWarning
        bad = (warning.mjWARN_BADQPOS, warning.mjWARN_BADQVEL, warning.mjWARN_BADQACC)
        self._bad = [int(kind) for kind in bad]
        # MuJoCo's arrays stay where they are: seen once, they cost nothing at a step.
        self._views = [_Views(data) for data in self.data]
        self._armature = [each.dof_armature[self._dof].copy() for each in models]

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        self.state.time = 0.0
        self.state.diverged[:] = False
        self.state.tau[:] = 0.0
        for k, data in enumerate(self.data):
            self._mujoco.mj_resetData(self.models[k], data)
            self._views[k].qpos[self._position] = q[k]
            self._views[k].qvel[self._dof] = qd[k]
            self._apply(k, self.state.tau[k])
            self._observe(k)

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        self.state.tau[:] = tau
        step, diverged = self._mujoco.mj_step, self.state.diverged.tolist()
        for k, data in enumerate(self.data):
            if not diverged[k]:
                self._apply(k, tau[k])
                step(self.models[k], data, ticks)
                self._observe(k)

    def hold(self, limits: Float[np.ndarray, "batch dof"]) -> None:
        """Set what each joint's dry friction withstands in [N m]."""
        for model, own in zip(self.models, limits, strict=True):
            model.dof_frictionloss[self._dof] = np.maximum(own, 0.0)

    def _apply(self, k: int, tau: np.ndarray) -> None:
        self._views[k].applied[self._dof] = tau - self._offset[k]

    def _observe(self, k: int) -> None:
        """Read the truth, forces brought up to date first."""
        views, state, dof = self._views[k], self.state, self._dof
        qd = views.qvel[dof]
        # MuJoCo resets a model that goes unstable, and counts it as a warning.
        unstable = any(views.warnings[i] for i in self._bad)
        # The sum of squares is quick, and enough for most. A comparison that is not
        # true is that of a number that is none, too.
        is_calm = qd.dot(qd) <= self._bound**2
        if unstable or not (is_calm or np.abs(qd).max() <= self._bound):
            state.diverged[k] = True
            return
        state.q[k] = views.qpos[self._position]
        state.qd[k] = qd
        if not self._needs_forces:
            return
        self._mujoco.mj_forward(self.models[k], self.data[k])
        qdd = views.qacc[dof]
        state.qdd[k] = qdd
        lost = views.passive[dof] + views.constraint[dof] - self._offset[k]
        state.link_tau[k] = state.tau[k] + lost - self._armature[k] * qdd

    def wrench(self, frame: str) -> Any:
        """Return a sampler of the wrench on what is beyond the wrist sensor."""
        address = [
            int(self.models[0].sensor(f"wrist {kind}").adr[0])
            for kind in ("force", "torque")
        ]
        indices = np.concatenate([np.arange(a, a + 3) for a in address])

        def sample(state: State) -> np.ndarray:
            return np.stack([data.sensordata[indices] for data in self.data])

        return sample


_DRY = ("load", "coulomb_warming", "coulomb_temperature")
"""Forms of friction that change what a joint at rest withstands as well."""


class _HoldingEngine:
    """An engine whose dry friction grows with the load, or falls with warmth.

    Taken off by a torque that a velocity turns over, it would be gone at rest: joints
    would withstand more, or less, than they lose in motion.

    Args:
        engine: What moves one arm.
        model: Friction of forms in _DRY.
    """

    def __init__(self, engine: MujocoEngine, model: FrictionModel) -> None:
        self._engine, self._model = engine, model
        self._own = np.stack([m.dof_frictionloss[engine._dof] for m in engine.models])

    @property
    def state(self) -> State:
        """The truth at this instant."""
        return self._engine.state

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put the arm in a posture at a velocity, its drives cold."""
        self._engine.hold(self._own)
        self._engine.start(q, qd)
        self._model.reset()

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques for some ticks."""
        state = self.state
        for _ in range(ticks):
            # One way, however slowly: what it would lose is what it withstands.
            speed = np.abs(state.qd) + 1e-300
            limit = self._model.torque(state.q, speed, state.link_tau)
            self._engine.hold(self._own + limit)
            self._engine.advance(tau, 1)


def _rows_of(indices: list[int]) -> slice | np.ndarray:
    """Where joints are in MuJoCo's arrays; a slice, where it can be, costs least."""
    first, last = (indices[0], indices[-1] + 1) if indices else (0, 0)
    if indices == list(range(first, last)):
        return slice(first, last)
    return np.array(indices, dtype=int)


class _Views:
    """Arrays of one MjData."""

    def __init__(self, data: Any) -> None:
        self.qpos, self.qvel, self.qacc = data.qpos, data.qvel, data.qacc
        self.applied, self.passive = data.qfrc_applied, data.qfrc_passive
        self.constraint, self.warnings = data.qfrc_constraint, data.warning.number


def driven_joints(model: Any) -> tuple[str, ...]:
    """Return the names of the hinge and slide joints of a model, in order."""
    mujoco = import_mujoco()
    kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    joints = [model.joint(i) for i in range(model.njnt)]
    return tuple(str(j.name) for j in joints if int(j.type[0]) in kinds)


# Plant.


class MujocoArm(RiggedPlant):
    """An arm, or a batch of arms, simulated by MuJoCo.

    Args:
        arm: An Arm, a URDF or DH file or bundled name (rebuilt without geometry), or
            an MJCF file (taken as it is, its own actuators switched off); or one Arm
            for each of a batch, of the same joints.
        sensors: What is measured and how it errs; exact q, q̇, τ when not given.
        seed: Seed of all randomness.
        batch: Number of equal arms side by side; that of `arm` when they are several.
        actuator: What lies between command and torque.
        payload: A load in the hand (not with MJCF files).
        friction: Further friction terms (not with MJCF files); MuJoCo has its own way
            to stick, so that nothing else of it may differ from the default.
        friction_holds: Whether Coulomb friction holds as in exported files; MuJoCo's
            own is soft: it creeps, and is less than Coulomb's at low speed.
        control_rate_hz: Torques per second.
        plant_rate_hz: Steps of MuJoCo per second, at least.
        integrator: "euler", "rk4", "implicit" or "implicitfast".
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
        keeps_truth: Whether recordings hold the true motion as well; for a single
            arm only when not given.
    """

    def __init__(
        self,
        arm: Arm | str | Path | Sequence[Arm],
        *,
        sensors: Sequence[Sensor] | None = None,
        seed: int = 0,
        batch: int | None = None,
        actuator: Actuator | None = None,
        payload: Payload | None = None,
        friction: Friction | None = None,
        friction_holds: bool = False,
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
        arms = (arm,) if isinstance(arm, Arm | str | Path) else tuple(arm)
        if not arms or (batch is not None and len(arms) not in (1, batch)):
            raise ArgumentError(f"{len(arms)} arms are no batch of {batch or 1}.")
        built = [_model(a, payload, wrist[0] if wrist else None) for a in arms]
        if friction_holds:
            for _, model in built:
                _let_friction_hold(model)
        # Equal arms share a model.
        built = built * (batch or 1) if len(built) == 1 else built
        self.arm, batch = built[0][0], len(built)
        names = {None if a is None else a.coordinate_names for a, _ in built}
        if len(names) > 1:
            raise ArgumentError("Arms of one batch must have the same joints.")
        clock = Clock.from_rates(control_rate_hz, plant_rate_hz, actuator.delay)
        truth = batch == 1 if keeps_truth is None else keeps_truth
        engine = MujocoEngine(
            [model for _, model in built],
            tick=clock.tick,
            integrator=integrator,
            speed_bound=speed_bound,
            offset=_offsets([a for a, _ in built]),
            joints=self.arm.coordinate_names if self.arm else None,
            needs_forces=truth or friction is not None or _read_forces(sensors),
        )
        self.joint_names = engine.joint_names
        self._engine = engine
        moving: PlantEngine = engine
        if friction is not None:
            held, others = _parted(self.arm, friction, friction_holds and batch == 1)
            if held and self.arm is not None:
                model = FrictionModel(self.arm, held, period=clock.tick)
                moving = _HoldingEngine(engine, model)
            moving = FrictionEngine(
                moving, _further(self.arm, others, batch, clock.tick)
            )
        self._rig = Rig(moving, clock, actuator, sensors, seed, engine.wrench, truth)

    @property
    def model(self) -> Any:
        """The MuJoCo model."""
        return self._engine.models[0]


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


def _let_friction_hold(model: Any) -> None:
    """Set the solver of dry friction as in exported files."""
    reference, impedance = (
        [float(number) for number in FRICTION_SOLVER[name].split()]
        for name in ("solreffriction", "solimpfriction")
    )
    model.dof_solref[:], model.dof_solimp[:] = reference, impedance
    model.tendon_solref_fri[:], model.tendon_solimp_fri[:] = reference, impedance


def _is_mjcf(path: Path) -> bool:
    if path.suffix.lower() not in (".xml", ".mjcf") or not path.is_file():
        return False
    with path.open("rb") as stream:
        # The root element stands at the top; 64 KiB leave room for long comments.
        return b"<mujoco" in stream.read(65_536)


def _read_forces(sensors: Sequence[Sensor]) -> bool:
    return any(sensor.signal not in ("q", "qd", "volts") for sensor in sensors)


def _parted(
    arm: Arm | None, friction: Friction, may_hold: bool
) -> tuple[tuple[tuple[FrictionTerm, float], ...], Friction]:
    """Terms that MuJoCo's own dry friction takes over, and the further friction."""
    # A motor that several joints turn holds none of them alone.
    if not may_hold or arm is None or arm.couplings:
        return (), friction
    held = tuple(pair for pair in friction.terms if pair[0].form in _DRY)
    others = tuple(pair for pair in friction.terms if pair not in held)
    return held, replace(friction, terms=others)


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


def _offsets(arms: Sequence[Arm | None]) -> Float[np.ndarray, "batch dof"] | None:
    """Constant torques of the drives, couplings included, seen at the coordinates."""
    rows = []
    for arm in arms:
        if arm is None:
            return None
        offsets = arm.coupling_matrix.T @ [joint.drive.offset for joint in arm.joints]
        for coupling in arm.couplings:
            offsets = offsets + coupling.weights * coupling.drive.offset
        rows.append(offsets)
    return np.array(rows, dtype=float)
