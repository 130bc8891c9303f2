"""Reader of MJCF, through MuJoCo's own compiler."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms.arm import (
    Arm,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    Mimic,
    Shape,
    resolve_mimic,
)
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE
from armwise.arms.poses import pose, rotation_from_quaternion, without_rounding
from armwise.errors import ArmError, MissingExtra

if TYPE_CHECKING:
    from jaxtyping import Float


# Outlines of bodies.


def read_shapes(model: Any, body: int, T: Float[np.ndarray, "4 4"]) -> list[Shape]:
    """Return a body's outline, moved by T: what it collides with, else what shows."""
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    geoms = range(first, first + count)
    # Geoms that collide with nothing are only for show.
    solid = [g for g in geoms if model.geom_contype[g] or model.geom_conaffinity[g]]
    shapes = (read_geom(model, g, T) for g in solid or geoms)
    return [shape for shape in shapes if shape is not None]


def read_geom(model: Any, g: int, T: Float[np.ndarray, "4 4"]) -> Shape | None:
    """Return a geom's outline, moved by T, if we know its kind."""
    R = rotation_from_quaternion(model.geom_quat[g])
    at = T @ pose(R, model.geom_pos[g])
    x, y, z = (float(size) for size in model.geom_size[g])
    match int(model.geom_type[g]):
        case 2:  # mjGEOM_SPHERE
            return Shape("sphere", (x,), at)
        case 3:  # mjGEOM_CAPSULE
            return Shape("capsule", (x, 2 * y), at)
        case 5:  # mjGEOM_CYLINDER
            return Shape("cylinder", (x, 2 * y), at)
        case 6:  # mjGEOM_BOX
            return Shape("box", (2 * x, 2 * y, 2 * z), at)
        case 7:  # mjGEOM_MESH
            name = str(model.mesh(int(model.geom_dataid[g])).name)
            return Shape("mesh", (1.0, 1.0, 1.0), at, name)
    return None


# The tree of bodies and joints.

OFFSET = "armwise_offset_"
"""Name, before the joint's, of the <custom><numeric> that holds a constant torque."""


def compile_mjcf(path: Path) -> Any:
    """Return MuJoCo's compiled model of a file."""
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("mujoco-core", "sim", "Reading MJCF") from None
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except ValueError as problem:
        reason = " ".join(str(problem).split())
        raise ArmError(f"{path}: MuJoCo refuses it: {reason}") from None


def read_mjcf(path: Path) -> Arm:
    """Read an arm from an MJCF file.

    Bodies without joints are merged; a body with several joints becomes a chain of
    massless links; joint equalities become mimics.

    Raises:
        ArmError: If it has free or ball joints, or constraints that close loops.
    """
    model = compile_mjcf(path)
    reader = _Reader(path, model)
    for body in range(1, model.nbody):
        reader.add_body(body)
    if not reader.joints:
        raise ArmError(f"{path} has no joint that moves; an arm needs one.")
    return Arm(
        name=reader.model_name,
        joints=reader.led_joints(),
        links=tuple(
            Link(name, inertia, tuple(reader.shapes[i]))
            for i, (name, inertia) in enumerate(
                zip(reader.names, reader.inertias, strict=True)
            )
        ),
        gravity=np.array(model.opt.gravity, dtype=float),
        frames=(*reader.frames, *reader.sites()),
        base="world",
        base_shapes=tuple(reader.shapes[BASE]),
    )


def body_name(model: Any, body: int) -> str:
    """Name a body as its link is named."""
    return str(model.body(body).name) or f"body_{body}"


@dataclass
class _Reader:
    """The arm as it grows, one body at a time."""

    path: Path
    model: Any
    joints: list[Joint] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    inertias: list[InertialParameters] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    shapes: dict[int, list[Shape]] = field(default_factory=dict)
    poses_on_links: dict[int, tuple[int, np.ndarray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.poses_on_links[0] = (BASE, np.eye(4))
        self.shapes[BASE] = read_shapes(self.model, 0, np.eye(4))

    @property
    def model_name(self) -> str:
        name = self.model.names.split(b"\0", 1)[0].decode()
        # MuJoCo's own default name says nothing.
        return name if name and name != "MuJoCo Model" else self.path.stem

    def error(self, what: str, problem: str) -> ArmError:
        return ArmError(f"{self.path}: {what} {problem}")

    def add_body(self, body: int) -> None:
        model = self.model
        parent, T_parent = self.poses_on_links[int(model.body_parentid[body])]
        T = T_parent @ _pose(model.body_pos[body], model.body_quat[body])
        inertia, name = self._inertia(body), body_name(model, body)
        count = int(model.body_jntnum[body])
        if count == 0:
            self.poses_on_links[body] = (parent, T)
            self.frames.append(Frame(name, parent, T, inertia))
            self.shapes[parent] += read_shapes(model, body, T)
            if parent != BASE:
                self.inertias[parent] += inertia.transformed(T)
            return
        # Several joints of one body: all but the last carry a massless link.
        for k in range(count):
            j = int(model.body_jntadr[body]) + k
            last = k == count - 1
            joint = self._joint(j, parent, T)
            parent, T = len(self.joints), np.eye(4)
            self.joints.append(joint)
            self.names.append(name if last else f"{name}_{joint.name}")
            self.inertias.append(inertia if last else InertialParameters.zero())
            self.shapes[parent] = read_shapes(model, body, T) if last else []
        self.poses_on_links[body] = (parent, T)

    def _joint(self, j: int, parent: int, T: Float[np.ndarray, "4 4"]) -> Joint:
        model = self.model
        name = str(model.joint(j).name) or f"joint_{j}"
        kind = int(model.jnt_type[j])
        if kind not in (_SLIDE, _HINGE):
            raise self.error(
                f'joint "{name}"', "is free or a ball; use hinge and slide joints."
            )
        drive, dof = self._drive(j, name), int(model.jnt_dofadr[j])
        # Newer versions only; the terms beyond the linear one have no parameter here.
        if hasattr(model, "dof_dampingpoly") and np.any(model.dof_dampingpoly[dof]):
            raise self.error(
                f'joint "{name}"', "has polynomial damping; make it linear."
            )
        bare = Joint(
            name=name,
            kind="revolute" if kind == _HINGE else "prismatic",
            parent=parent,
            origin=T,
            axis=_direction(model.jnt_axis[j]),
            limits=self._limits(j),
            drive=drive,
            anchor=np.array(model.jnt_pos[j], dtype=float),
        )
        # MuJoCo draws the body where the joint is at its reference, not at zero.
        reference = float(model.qpos0[model.jnt_qposadr[j]])
        return replace(bare, origin=bare.pose(-reference)) if reference else bare

    def _drive(self, j: int, name: str) -> Drive:
        model, dof = self.model, int(self.model.jnt_dofadr[j])
        return Drive(
            rotor_inertia=float(model.dof_armature[dof]),
            viscous=float(np.ravel(model.dof_damping[dof])[0]),
            coulomb=float(model.dof_frictionloss[dof]),
            offset=_custom(model, OFFSET + name),
        )

    def _limits(self, j: int) -> Limits:
        model = self.model
        # An unlimited joint has the range 0 … 0 in the compiled model.
        lower, upper = model.jnt_range[j] if model.jnt_limited[j] else (-inf, inf)
        effort = inf
        if model.jnt_actfrclimited[j]:
            # One symmetric limit: the larger side, since the arm has only one number.
            effort = float(np.abs(model.jnt_actfrcrange[j]).max())
        return Limits(float(lower), float(upper), effort=effort)

    def _inertia(self, body: int) -> InertialParameters:
        model = self.model
        T = _pose(model.body_ipos[body], model.body_iquat[body])
        R = T[:3, :3]
        central = R @ np.diag(model.body_inertia[body]) @ R.T
        return InertialParameters.from_center_of_mass(
            float(model.body_mass[body]), T[:3, 3], central
        )

    def sites(self) -> list[Frame]:
        model = self.model
        taken = {*self.names, *(frame.name for frame in self.frames)}
        frames = []
        for i in range(model.nsite):
            link, T = self.poses_on_links[int(model.site_bodyid[i])]
            name = str(model.site(i).name)
            # A site with a body's name could never be found: links are looked up first.
            if name and name not in taken:
                at = T @ _pose(model.site_pos[i], model.site_quat[i])
                frames.append(Frame(name, link, at))
        return frames

    def led_joints(self) -> tuple[Joint, ...]:
        follow = dict(self._equality(e) for e in range(self.model.neq))
        led = list(self.joints)
        for i in follow:
            mimic = resolve_mimic(i, follow)
            if mimic is None:
                raise self.error(f'joint "{led[i].name}"', "follows itself; cut that.")
            led[i] = replace(led[i], mimic=mimic)
        return tuple(led)

    def _equality(self, e: int) -> tuple[int, Mimic]:
        model = self.model
        name = str(model.equality(e).name) or str(e)
        leader = int(model.eq_obj2id[e])
        if int(model.eq_type[e]) != _JOINT_EQUALITY or leader < 0:
            raise self.error(
                f'equality "{name}"',
                "is not between two joints; loops and welds are not supported.",
            )
        constant, slope, *higher = (float(x) for x in model.eq_data[e][:5])
        # MuJoCo allows a quartic between two joints; a coupling here is linear.
        if any(higher):
            raise self.error(f'equality "{name}"', "is not linear; make it so.")
        follower = int(model.eq_obj1id[e])
        zero = {j: float(model.qpos0[model.jnt_qposadr[j]]) for j in (follower, leader)}
        # MuJoCo's polynomial is between deviations from the reference position.
        offset = zero[follower] + constant - slope * zero[leader]
        return follower, Mimic(leader, slope, offset)


_SLIDE, _HINGE, _JOINT_EQUALITY = 2, 3, 2
"""MuJoCo's mjJNT_SLIDE, mjJNT_HINGE and mjEQ_JOINT."""


def _pose(
    position: Float[np.ndarray, " 3"], quaternion: Float[np.ndarray, " 4"]
) -> Float[np.ndarray, "4 4"]:
    return pose(rotation_from_quaternion(quaternion), position)


def _direction(axis: Float[np.ndarray, " 3"]) -> Float[np.ndarray, " 3"]:
    unit = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    # MuJoCo normalises axes in floating point: exact zeros save traced operations.
    direction: np.ndarray = without_rounding(unit[None, :])[0]
    return direction


def _custom(model: Any, name: str) -> float:
    for i in range(model.nnumeric):
        if model.numeric(i).name == name:
            return float(model.numeric_data[model.numeric_adr[i]])
    return 0.0
