"""Reader of MJCF, through MuJoCo's own compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms.arm import (
    Arm,
    Coupling,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    Mimic,
    Shape,
    resolve_mimic,
)
from armwise.arms.chain import with_locked_joints
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE
from armwise.arms.poses import (
    exact_rotation,
    pose,
    rotation_from_quaternion,
    without_rounding,
)
from armwise.arms.readers.xml import Element, read_xml
from armwise.errors import ArmError, MissingExtra
from armwise.tables import LARGEST_FILE, LARGEST_NUMBER

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
    color = _color(model, g)
    match int(model.geom_type[g]):
        case 2:  # mjGEOM_SPHERE
            return Shape("sphere", (x,), at, color=color)
        case 3:  # mjGEOM_CAPSULE
            return Shape("capsule", (x, 2 * y), at, color=color)
        case 5:  # mjGEOM_CYLINDER
            return Shape("cylinder", (x, 2 * y), at, color=color)
        case 6:  # mjGEOM_BOX
            return Shape("box", (2 * x, 2 * y, 2 * z), at, color=color)
        case 7:  # mjGEOM_MESH
            name = str(model.mesh(int(model.geom_dataid[g])).name)
            return Shape("mesh", (1.0, 1.0, 1.0), at, name, color)
    return None


def _color(model: Any, g: int) -> tuple[float, float, float] | None:
    """Colour of a geom: its material's, else its own; MuJoCo's default grey is none."""
    material = int(model.geom_matid[g])
    own = np.array(model.geom_rgba[g][:3], dtype=float)
    if material >= 0:
        own = np.array(model.mat_rgba[material][:3], dtype=float)
    elif np.allclose(own, 0.5):
        return None
    red, green, blue = own.tolist()
    return red, green, blue


# The tree of bodies and joints.

OFFSET = "armwise_offset_"
"""Name, before the joint's, of the <custom><numeric> that holds a constant torque."""


def compile_mjcf(path: Path) -> Any:
    """Return MuJoCo's compiled model of a file."""
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("mujoco-core", "sim", "Reading MJCF") from None
    _check_sizes(path)
    # It would write warnings into a file where the user happens to stand.
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    # MuJoCo raises ValueError, RuntimeError and an error of its own.
    except Exception as problem:
        reason = " ".join(str(problem).split())
        raise ArmError(f"{path}: MuJoCo refuses it: {reason}") from None
    finally:
        mujoco.set_mju_user_warning(None)
    _check_numbers(path, model)
    return model


# What MuJoCo would do without limit: bodies by the million, files anywhere.

_MOST_COPIES = 10_000
"""Copies of one element: more than any arm, or cell around one, has."""
_MOST_CELLS = 10_000_000
"""Cells of a height field, texture or flexible body."""
_MOST_INCLUDED = 100
"""Files that a description may include, one from another."""
_LEVELS_UP = 2
"""Folders above a description whose files it may name: packages keep models and meshes
side by side."""
_GRIDS = {
    "flexcomp": ("count",),
    "composite": ("count",),
    "hfield": ("nrow", "ncol"),
    "texture": ("width", "height"),
}
"""Elements whose size is a product of whole numbers."""


_SHAPES = (".stl", ".obj", ".msh", ".png")
"""Endings of meshes and textures that MuJoCo reads."""


def _check_sizes(path: Path) -> None:
    """Refuse files that are small but mean huge models, or name files elsewhere."""
    home = path.resolve().parent
    root = [home, *home.parents][: _LEVELS_UP + 1][-1]
    waiting, visited = [path.resolve()], set[Path]()
    while waiting:
        file = waiting.pop()
        if file in visited or not file.is_file():
            continue  # MuJoCo says what is missing
        visited.add(file)
        if len(visited) > _MOST_INCLUDED:
            raise ArmError(f"{path} includes more than {_MOST_INCLUDED} files.")
        top = read_xml(file)
        folders = {home, file.parent}
        for element in _elements(top):
            for name in ("meshdir", "texturedir", "assetdir"):
                if name in element.attributes:
                    folders.add(home / element.attributes[name])
        _check_copies(top)
        for element in _elements(top):
            _check_grid(element)
            if "file" in element.attributes:
                named = [_named(element, f, root) for f in sorted(folders)]
                waiting += named if element.tag == "include" else []


def _elements(top: Element) -> Iterator[Element]:
    waiting = [top]
    while waiting:
        element = waiting.pop()
        yield element
        waiting += element.children


def _check_copies(top: Element) -> None:
    waiting = [(top, 1)]
    while waiting:
        element, copies = waiting.pop()
        if element.tag == "replicate":
            copies *= max(1, round(element.number("count", 1.0)))
        if copies > _MOST_COPIES:
            raise element.error(f"makes more than {_MOST_COPIES} copies; make fewer.")
        waiting += [(child, copies) for child in element.children]


def _check_grid(element: Element) -> None:
    cells = 1.0
    for name in _GRIDS.get(element.tag, ()):
        for word in element.attributes.get(name, "1").split():
            size = float(word) if word.isdecimal() else 1.0
            cells *= max(1.0, size)
    if cells > _MOST_CELLS:
        raise element.error(f"has more than {_MOST_CELLS} cells; make it coarser.")


def _named(element: Element, folder: Path, root: Path) -> Path:
    """The file an element names, as seen from a folder; refused if it is elsewhere."""
    try:
        file = (folder / element.attributes["file"]).resolve()
        is_there = file.exists()
    except (OSError, ValueError):
        raise element.error("names a file that no file can be.") from None
    # Shapes are read as such or not at all, so that they may lie anywhere: a model that
    # was written elsewhere names those of the description.
    is_shape = element.tag != "include" and file.suffix.lower() in _SHAPES
    if is_there and not is_shape and not file.is_relative_to(root):
        raise element.error(f"names a file outside {root}, which is not opened.")
    if is_there and not file.is_file():
        raise element.error("names something that is not a regular file.")
    if is_there and file.stat().st_size > LARGEST_FILE:
        raise element.error(f"names a file of more than {LARGEST_FILE // 2**20} MB.")
    return file


def _check_numbers(path: Path, model: Any) -> None:
    """Refuse numbers that no arm has: MuJoCo takes nan, 1e308 and negative damping."""
    bounded = (
        *("body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass"),
        *("body_inertia", "jnt_pos", "jnt_axis", "qpos0", "eq_data", "site_pos"),
        *("dof_armature", "dof_damping", "dof_frictionloss", "numeric_data"),
    )
    for name in bounded:
        values = np.asarray(getattr(model, name), dtype=float)
        if not np.all(np.abs(values) <= LARGEST_NUMBER):
            raise ArmError(
                f"{path}: {name} holds a number that is not finite or of no sensible "
                "size; write one."
            )
        is_drive = name in ("dof_armature", "dof_damping", "dof_frictionloss")
        if is_drive and np.any(values < 0.0):
            dof = int(np.argmin(values.reshape(model.nv, -1).min(axis=1)))
            joint = model.joint(int(model.dof_jntid[dof])).name
            raise ArmError(
                f'{path}: joint "{joint}" has the negative {name.removeprefix("dof_")} '
                f"{values.min():g}; friction only brakes. Make it 0 or more."
            )
    if not np.all(np.abs(model.opt.gravity) <= LARGEST_NUMBER):
        raise ArmError(f"{path}: gravity is not finite; write three numbers.")


def read_mjcf(path: Path) -> Arm:
    """Read an arm from an MJCF file.

    Bodies without joints are merged; a body with several joints becomes a chain of
    massless links; linear equalities of joints become mimics. Free and ball joints are
    held where they are described, and so are joints that other constraints bind: the
    arm's notes say which.

    Raises:
        ArmError: If no joint is left that moves by itself.
    """
    model = compile_mjcf(path)
    reader = _Reader(path, model)
    for body in range(1, model.nbody):
        reader.add_body(body)
    if not reader.joints:
        raise ArmError(f"{path} has no joint that moves; an arm needs one.")
    joints, bound = reader.led_joints()
    arm = Arm(
        name=reader.model_name,
        joints=joints,
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
        notes=reader.notes,
    )
    arm = replace(arm, couplings=reader.couplings(arm))
    if all(i in bound for i in arm.coordinates):
        raise ArmError(
            f"{path}: constraints bind every joint; an arm needs one that moves by "
            "itself."
        )
    return with_locked_joints(arm, bound_positions(arm, bound))


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
    # MuJoCo's number of a hinge or slide joint → ours; free and ball joints have none.
    numbers: dict[int, int] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    rounded: list[str] = field(default_factory=list)

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
        inertia, name = self._inertia(body), body_name(model, body)
        written = rotation_from_quaternion(model.body_quat[body])
        exact = exact_rotation(written)
        # 1e-9 rad is rounding that nothing sees: no word about it.
        if np.abs(exact - written).max() > 1e-9:
            self.rounded.append(name)
        T = T_parent @ pose(exact, model.body_pos[body])
        joints = self._moving_joints(body)
        if not joints:
            self.poses_on_links[body] = (parent, T)
            self.frames.append(Frame(name, parent, T, inertia))
            self.shapes[parent] += read_shapes(model, body, T)
            if parent != BASE:
                self.inertias[parent] += inertia.transformed(T)
            return
        # Several joints of one body: all but the last carry a massless link.
        for j in joints:
            last = j == joints[-1]
            joint = self._joint(j, parent, T)
            parent, T = len(self.joints), np.eye(4)
            self.numbers[j] = parent
            self.joints.append(joint)
            self.names.append(name if last else f"{name}_{joint.name}")
            self.inertias.append(inertia if last else InertialParameters.zero())
            self.shapes[parent] = read_shapes(model, body, T) if last else []
        self.poses_on_links[body] = (parent, T)

    def _moving_joints(self, body: int) -> list[int]:
        """Hinges and slides of a body; what else it has is noted and held."""
        first, count = (
            int(x[body]) for x in (self.model.body_jntadr, self.model.body_jntnum)
        )
        every = range(first, first + count)
        moving = [j for j in every if int(self.model.jnt_type[j]) in (_SLIDE, _HINGE)]
        self.held += [self._joint_name(j) for j in every if j not in moving]
        return moving

    def _joint_name(self, j: int) -> str:
        return str(self.model.joint(j).name) or f"joint_{j}"

    def _joint(self, j: int, parent: int, T: Float[np.ndarray, "4 4"]) -> Joint:
        model = self.model
        name = self._joint_name(j)
        kind = int(model.jnt_type[j])
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
        if not reference:
            return bare
        return replace(bare, origin=bare.pose(-reference), rest=reference)

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
        effort = min(effort, self._motors(j))
        return Limits(float(lower), float(upper), effort=effort)

    def _motors(self, j: int) -> float:
        """Largest torque of a joint's motors; without bound if one of them has none."""
        import mujoco

        model, total = self.model, 0.0
        for a in np.flatnonzero(model.actuator_trnid[:, 0] == j):
            if model.actuator_trntype[a] != mujoco.mjtTrn.mjTRN_JOINT:
                continue
            force = inf
            if model.actuator_forcelimited[a]:
                force = float(np.abs(model.actuator_forcerange[a]).max())
            # A motor's force is its control; a servo's depends on where the joint is.
            is_motor = (
                model.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_NONE
                and model.actuator_gaintype[a] == mujoco.mjtGain.mjGAIN_FIXED
                and model.actuator_biastype[a] == mujoco.mjtBias.mjBIAS_NONE
            )
            if is_motor and model.actuator_ctrllimited[a]:
                control = float(np.abs(model.actuator_ctrlrange[a]).max())
                force = min(force, control * abs(float(model.actuator_gainprm[a, 0])))
            total += force * abs(float(model.actuator_gear[a, 0]))
        return total or inf

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

    @property
    def notes(self) -> tuple[str, ...]:
        """What was taken otherwise than the file says."""
        notes = []
        if self.held:
            notes.append(
                f"{_listed(self.held)} (free or ball) taken as fixed where described: "
                "an arm's joints turn or slide."
            )
        if self.loose:
            notes.append(
                f"Constraints that are not between two joints, linearly: "
                f"{_listed(self.loose)}. The joints they bind are held where described."
            )
        model = self.model
        sprung = [
            str(model.jnt(j).name)
            for j in range(model.njnt)
            if model.jnt_type[j] in (_SLIDE, _HINGE) and np.any(model.jnt_stiffness[j])
        ]
        if self.rounded:
            notes.append(
                f"Quaternions with few digits are taken as the exact turns they stand "
                f"for: {_listed(self.rounded)}."
            )
        if np.any(model.body_gravcomp):
            notes.append(
                "Gravity compensation of bodies (gravcomp) is left out: torques here "
                "hold the arm's weight, as logged ones do."
            )
        if sprung:
            notes.append(
                f"Springs of joints (stiffness) are left out: {_listed(sprung)}. Their "
                "torques are in no model of an arm here."
            )
        return tuple(notes)

    def led_joints(self) -> tuple[tuple[Joint, ...], set[int]]:
        """Return the joints with their mimics, and which others constraints bind."""
        model = self.model
        follow: dict[int, Mimic] = {}
        bound: set[int] = set()
        for e in range(model.neq):
            if not model.eq_active0[e]:
                continue
            pair = self._pair(e)
            if pair is None or pair[0] in follow:
                joints = self._bound(e)
                bound |= joints
                if joints:
                    self.loose.append(str(model.equality(e).name) or f"equality {e}")
            else:
                follow[pair[0]] = pair[1]
        led = list(self.joints)
        for i in follow:
            mimic = resolve_mimic(i, follow)
            if mimic is None:
                raise self.error(f'joint "{led[i].name}"', "follows itself; cut that.")
            led[i] = replace(led[i], mimic=mimic)
        # A joint that follows a bound one is held with it: the leader is what counts.
        leaders = ((i, led[i].mimic) for i in bound)
        return tuple(led), {i if m is None else m.leader for i, m in leaders}

    def _pair(self, e: int) -> tuple[int, Mimic] | None:
        """Return the follower and its rule, where a constraint is linear in two."""
        model = self.model
        kind = int(model.eq_type[e])
        if kind == _TENDON_EQUALITY:
            return self._tendon_pair(e)
        leader = int(model.eq_obj2id[e])
        if kind != _JOINT_EQUALITY or leader < 0:
            return None
        constant, slope, *higher = (float(x) for x in model.eq_data[e][:5])
        follower = int(model.eq_obj1id[e])
        # MuJoCo allows a quartic between two joints; a coupling here is linear.
        if any(higher) or not {leader, follower} <= self.numbers.keys():
            return None
        zero = {j: float(model.qpos0[model.jnt_qposadr[j]]) for j in (follower, leader)}
        # MuJoCo's polynomial is between deviations from the reference position.
        offset = zero[follower] + constant - slope * zero[leader]
        return self.numbers[follower], Mimic(self.numbers[leader], slope, offset)

    def _tendon_pair(self, e: int) -> tuple[int, Mimic] | None:
        """A fixed tendon over two joints, held at its length: a q₁ + b q₂ = L."""
        model = self.model
        if int(model.eq_obj2id[e]) >= 0:
            return None
        tendon = int(model.eq_obj1id[e])
        first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
        wraps = range(first, first + count)
        joints = [int(model.wrap_objid[w]) for w in wraps]
        is_fixed = all(int(model.wrap_type[w]) == _WRAP_JOINT for w in wraps)
        if not is_fixed or len(joints) != 2 or not set(joints) <= self.numbers.keys():
            return None
        a, b = (float(model.wrap_prm[w]) for w in wraps)
        if not b:
            return None
        # The constraint's length is that at the reference, plus its constant.
        zero = [float(model.qpos0[model.jnt_qposadr[j]]) for j in joints]
        length = a * zero[0] + b * zero[1] + float(model.eq_data[e][0])
        leader, follower = (self.numbers[j] for j in joints)
        return follower, Mimic(leader, -a / b, length / b)

    def couplings(self, arm: Arm) -> tuple[Coupling, ...]:
        """Motors that several joints turn: fixed tendons with inertia or friction."""
        model = self.model
        column = {i: k for k, i in enumerate(arm.coordinates)}
        couplings = []
        for t in range(model.ntendon):
            drive = Drive(
                rotor_inertia=float(model.tendon_armature[t]),
                viscous=float(np.ravel(model.tendon_damping[t])[0]),
                coulomb=float(model.tendon_frictionloss[t]),
            )
            first, count = int(model.tendon_adr[t]), int(model.tendon_num[t])
            wraps = range(first, first + count)
            joints = [self.numbers.get(int(model.wrap_objid[w]), -1) for w in wraps]
            is_fixed = all(int(model.wrap_type[w]) == _WRAP_JOINT for w in wraps)
            # Without any it moves nothing; one along a path in space is no coupling.
            if drive == Drive() or not is_fixed or not set(joints) <= column.keys():
                continue
            weights = np.zeros(arm.dof)
            for w, i in zip(wraps, joints, strict=True):
                weights[column[i]] += float(model.wrap_prm[w])
            name = str(model.tendon(t).name) or f"tendon_{t}"
            drive = replace(drive, offset=_custom(model, OFFSET + name))
            couplings.append(Coupling(name, weights, drive))
        return tuple(couplings)

    def _bound(self, e: int) -> set[int]:
        """Joints that a constraint binds and the arm cannot have: held instead."""
        model = self.model
        kind = int(model.eq_type[e])
        first, second = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        if kind == _JOINT_EQUALITY:
            named = {j for j in (first, second) if j >= 0}
        elif kind == _TENDON_EQUALITY:
            named = {j for t in (first, second) if t >= 0 for j in self._along(t)}
        elif kind in (_CONNECT, _WELD):
            named = self._loop(e)
        else:  # flexes and distances bind no joint
            named = set()
        return {self.numbers[j] for j in named if j in self.numbers}

    def _along(self, tendon: int) -> set[int]:
        model = self.model
        first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
        wraps = range(first, first + count)
        return {
            int(model.wrap_objid[w])
            for w in wraps
            if int(model.wrap_type[w]) == _WRAP_JOINT
        }

    def _loop(self, e: int) -> set[int]:
        """Joints between two bodies that are tied together, on either branch."""
        model = self.model
        ends = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
        if int(model.eq_objtype[e]) == _SITE:
            ends = [int(model.site_bodyid[site]) for site in ends]
        # A body that a program moves (mocap), for teleoperation, ties nothing.
        if any(int(model.body_mocapid[body]) >= 0 for body in ends):
            return set()
        first, second = (self._joints_below(body) for body in ends)
        # Nor does one that flies freely by itself: tied to the arm it closes no loop.
        for branch in (first - second, second - first):
            if branch and all(int(model.jnt_type[j]) == _FREE for j in branch):
                return set()
        return first ^ second

    def _joints_below(self, body: int) -> set[int]:
        """Joints from a body down to the base."""
        model, joints = self.model, set()
        while body:
            start = int(model.body_jntadr[body])
            joints |= set(range(start, start + int(model.body_jntnum[body])))
            body = int(model.body_parentid[body])
        return joints


def bound_positions(arm: Arm, bound: set[int]) -> dict[str, float]:
    """Where joints that constraints bind are held: as the file shows them."""
    return {arm.joints[i].name: arm.joints[i].rest for i in bound}


def _listed(names: list[str]) -> str:
    # Judgement: four names say which; scenes have dozens.
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


_FREE, _SLIDE, _HINGE = 0, 2, 3
"""MuJoCo's mjJNT_FREE, mjJNT_SLIDE and mjJNT_HINGE."""
_CONNECT, _WELD, _JOINT_EQUALITY, _TENDON_EQUALITY = 0, 1, 2, 3
"""MuJoCo's mjEQ_CONNECT, mjEQ_WELD, mjEQ_JOINT and mjEQ_TENDON."""
_WRAP_JOINT, _SITE = 1, 6
"""MuJoCo's mjWRAP_JOINT and mjOBJ_SITE."""


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
