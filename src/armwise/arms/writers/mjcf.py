"""Writer of MJCF: a complete file, or new numbers in an old one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms.arm import Arm, Coupling, Frame, Joint, Link, Shape
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE
from armwise.arms.poses import inverse
from armwise.arms.readers.mjcf import OFFSET, body_name, compile_mjcf, read_mjcf
from armwise.arms.readers.xml import Element, read_xml
from armwise.arms.writers.link_inertia import (
    divide_inertia,
    divided_at,
    frames_on,
    require_writable,
)
from armwise.arms.writers.urdf import changed_links, number, numbers, template_arm
from armwise.arms.writers.xml_edit import Editor, quoteattr
from armwise.errors import ArmError
from armwise.tables import read_bounded

if TYPE_CHECKING:
    from jaxtyping import Float


# MuJoCo's friction is a soft constraint: with its defaults a joint creeps under load,
# and motion differs by milliradians from that of friction that holds. Measured against
# our simulator over 10 s of panda and tx40: 3.1 and 0.33 mrad with the defaults, 0.50
# and 0.13 with a time constant of no less than two steps of 1 ms. Friction has no
# depth, so that it creeps by the first of the impedances: with 0.999 an SO-101 at rest
# for 40 s creeps by 7 mrad, with 0.9999 by a tenth of that.
FRICTION_SOLVER = {
    "solreffriction": "0.002 1",
    "solimpfriction": "0.9999 0.9999 0.001 0.5 2",
}
"""Attributes of joints and tendons that make frictionloss hold."""


@dataclass(frozen=True)
class MjcfScene:
    """What an arm may touch, as lines of an MJCF.

    Attributes:
        elements: Number of a link, BASE of the world → elements of its body.
        pairs: Lines of the file's <contact>.
    """

    elements: Mapping[int, Sequence[str]] = field(default_factory=dict)
    pairs: Sequence[str] = ()

    def on(self, number: int) -> Sequence[str]:
        """The elements of one body."""
        return self.elements.get(number, ())


def mjcf_text(
    arm: Arm,
    actuators: Sequence[str] | None = None,
    scene: MjcfScene | None = None,
) -> str:
    """Return the arm as MJCF, for MuJoCo to simulate.

    Args:
        arm: What to write.
        actuators: Lines of the file's <actuator>; given, the file is to be simulated
            as it is: steps and friction's solver are set as well.
        scene: What the arm touches; None for nothing.
    """
    around = scene or MjcfScene()
    # Inertias go as they are: MuJoCo must neither balance nor infer them.
    compiler = 'angle="radian" autolimits="true" inertiafromgeom="false"'
    stepping = "" if actuators is None else f" {_stepping(arm)}"
    lines = [f"<mujoco model={quoteattr(arm.name)}>"]
    lines += [f"  <compiler {compiler}/>"]
    lines += [f'  <option gravity="{numbers(arm.gravity)}"{stepping}/>']
    lines += ["  <worldbody>", *_indented(_geoms(arm.base_shapes), 2)]
    lines += _indented(around.on(BASE), 2)
    # What stands still needs no inertia, and MuJoCo refuses points and rods even there.
    lines += _indented(_fixed([_massless_if_thin(f) for f in frames_on(arm, BASE)]), 2)
    lines += _bodies(arm, actuators is not None, around)
    lines += ["  </worldbody>", *_section("contact", list(around.pairs))]
    lines += _section("tendon", tendon_lines(arm, actuators is not None))
    lines += _section("equality", list(_mimics(arm)))
    lines += _section("actuator", list(actuators or ()))
    lines += _section("custom", list(_offsets(arm)))
    return "\n".join([*lines, "</mujoco>", ""])


def _stepping(arm: Arm) -> str:
    """Steps of the file's simulation: friction that holds has no smooth derivative."""
    # As our own plant chooses: Runge and Kutta's four stages have their order, 1e-6 rad
    # after 2 s, only where no joint can stick.
    sticks = any(driven.drive.coulomb for driven in arm.driven)
    if not sticks and not _is_damped_fast(arm, 0.0005):
        return 'timestep="0.0005" integrator="RK4"'
    # Of first order, so that light joints with friction need half the step: so101's
    # jaw of 2e-5 kg m² is 1.2 mrad off within 10 s at 0.5 ms.
    return 'timestep="0.00025" integrator="implicitfast"'


# Those four stages run away where damping / inertia · step is above 2.8; a fifth of
# that, for reactions of the other links make a joint lighter than its own link.
_FASTEST_DAMPING = 0.5
"""Part of a joint's speed that damping may take away within a step."""


def _is_damped_fast(arm: Arm, step: float) -> bool:
    """Whether damping of some joint is too fast for explicit steps."""
    for joint, link in zip(arm.joints, arm.links, strict=True):
        inertia, axis = link.inertia, np.asarray(joint.axis)
        own = float(axis @ inertia.inertia @ axis)
        own = inertia.mass if joint.kind == "prismatic" else own
        least = _FASTEST_DAMPING * (own + joint.drive.rotor_inertia)
        if joint.drive.viscous * step > max(least, 0.0):
            return True
    return False


def tendon_lines(arm: Arm, holds: bool) -> list[str]:
    """Write motors that several joints turn: fixed tendons with their friction."""
    lines = []
    for coupling in arm.couplings:
        values = drive_attributes(coupling)
        if holds and coupling.drive.coulomb:
            values |= FRICTION_SOLVER
        words = "".join(f' {n}="{v}"' for n, v in values.items() if v != "0")
        lines.append(f"<fixed name={quoteattr(coupling.name)}{words}>")
        for name, weight in zip(arm.coordinate_names, coupling.weights, strict=True):
            if weight:
                coefficient = f'coef="{number(weight)}"'
                lines.append(f"  <joint joint={quoteattr(name)} {coefficient}/>")
        lines.append("</fixed>")
    return lines


def inertial_attributes(inertia: InertialParameters) -> dict[str, str]:
    """Return what <inertial> says of a body: pos, mass and fullinertia."""
    central = inertia.central_inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return {
        "pos": numbers(inertia.center_of_mass),
        "mass": number(inertia.mass),
        "fullinertia": numbers(central),
    }


def drive_attributes(joint: Joint | Coupling) -> dict[str, str]:
    """Return what <joint> says of a drive: damping, frictionloss and armature."""
    return {
        "damping": number(joint.drive.viscous),
        "frictionloss": number(joint.drive.coulomb),
        "armature": number(joint.drive.rotor_inertia),
    }


def _bodies(arm: Arm, holds: bool, around: MjcfScene) -> list[str]:
    """Nest the bodies, children inside parents, without recursion."""
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(arm.joints):
        children.setdefault(joint.parent, []).append(i)
    lines: list[str] = []
    todo: list[tuple[int, int] | str] = []
    todo += [(i, 2) for i in reversed(children.get(BASE, []))]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            lines.append(item)
            continue
        i, depth = item
        lines += _indented(_body(arm, i, holds), depth)
        lines += _indented(around.on(i), depth + 1)
        # The end tag waits below the children on the stack.
        todo.append("  " * depth + "</body>")
        todo += [(k, depth + 1) for k in reversed(children.get(i, []))]
    return lines


def _body(arm: Arm, i: int, holds: bool) -> Iterator[str]:
    joint, link = arm.joints[i], arm.links[i]
    frames = frames_on(arm, i)
    division = divide_inertia(link.inertia, frames)
    if holds and any(np.any(f.inertia.vector) and _is_thin(f.inertia) for f in frames):
        # MuJoCo refuses points and rods as bodies: their link carries them.
        division = divided_at(link.inertia, frames, 0.0)
    own = _lifted(division.own) if holds else division.own
    yield f"<body name={quoteattr(link.name)} {_place(joint.origin)}>"
    yield f"  {_joint(joint, holds)}"
    if np.any(own.vector):
        yield f"  {_inertial(own)}"
    yield from (f"  {line}" for line in _geoms(link.shapes))
    yield from (f"  {line}" for line in _fixed(division.frames))


# Judgement: a microgram changes no torque that a sensor could show.
_LEAST = 1e-9
"""Mass [kg] and moment [kg m²] below which MuJoCo cannot simulate a body that moves."""


_THICKNESS = 1e-10
"""By how much two principal moments must exceed the third, as a fraction of it: MuJoCo
finds them by rotations, whose rounding would make an exact rod impossible."""


def _is_thin(inertia: InertialParameters) -> bool:
    return inertia.mass < _LEAST or _lift(inertia) > 0.0


def _lift(inertia: InertialParameters) -> float:
    """What every principal moment lacks in [kg m²] for MuJoCo to take the body."""
    least, middle, largest = np.linalg.eigvalsh(inertia.central_inertia)
    flat = (1.0 + _THICKNESS) * largest - least - middle
    return max(0.0, _LEAST - float(least), float(flat))


def _lifted(inertia: InertialParameters) -> InertialParameters:
    """The body, or one with the least mass and moments that MuJoCo simulates."""
    if not _is_thin(inertia):
        return inertia
    # A multiple of the identity keeps the axes.
    C = inertia.central_inertia + 2.0 * _lift(inertia) * np.eye(3)
    return InertialParameters.from_center_of_mass(
        max(inertia.mass, _LEAST), inertia.center_of_mass, C
    )


def _massless_if_thin(frame: Frame) -> Frame:
    has_mass = bool(np.any(frame.inertia.vector))
    if has_mass and _is_thin(frame.inertia):
        return replace(frame, inertia=InertialParameters.zero())
    return frame


def _joint(joint: Joint, holds: bool) -> str:
    kind = "hinge" if joint.is_revolute else "slide"
    words = [f'name={quoteattr(joint.name)} type="{kind}"']
    words += [f'axis="{numbers(joint.axis)}"']
    if np.any(joint.anchor):
        words += [f'pos="{numbers(joint.anchor)}"']
    limits = joint.limits
    if (limits.lower, limits.upper) != (-inf, inf):
        # MJCF has no word for infinity: beyond any real limit stands for the open side.
        pair = np.clip((limits.lower, limits.upper), -1e300, 1e300)
        words += [f'range="{numbers(pair)}"']
    if limits.effort != inf:
        words += [f'actuatorfrcrange="{numbers((-limits.effort, limits.effort))}"']
    drive = drive_attributes(joint)
    if holds and joint.drive.coulomb:
        drive |= FRICTION_SOLVER
    words += [f'{name}="{text}"' for name, text in drive.items() if text != "0"]
    return f"<joint {' '.join(words)}/>"


def _inertial(inertia: InertialParameters) -> str:
    values = inertial_attributes(inertia).items()
    words = " ".join(f'{name}="{text}"' for name, text in values)
    return f"<inertial {words}/>"


def _fixed(frames: Sequence[Frame]) -> Iterator[str]:
    for frame in frames:
        attributes = f"name={quoteattr(frame.name)} {_place(frame.pose)}"
        # A frame without mass needs no body: a site is enough.
        if not np.any(frame.inertia.vector):
            yield f"<site {attributes}/>"
        else:
            yield f"<body {attributes}>{_inertial(frame.inertia)}</body>"


def _geoms(shapes: tuple[Shape, ...]) -> Iterator[str]:
    for shape in shapes:
        size = {
            "sphere": shape.size,
            "capsule": (shape.size[0], shape.size[-1] / 2),
            "cylinder": (shape.size[0], shape.size[-1] / 2),
            "box": tuple(x / 2 for x in shape.size),
        }.get(shape.kind)
        # A mesh's file is not ours to find, and MuJoCo draws nothing without a size.
        if size is not None and min(size) > 0.0:
            pose = _place(shape.pose)
            # The arm touches what others put around it, never itself: descriptions of
            # neighbours overlap, and a simulated joint would be stuck in them.
            words = f'type="{shape.kind}" size="{numbers(size)}" {pose}'
            yield f'<geom {words} conaffinity="0"/>'


def _mimics(arm: Arm) -> Iterator[str]:
    for joint in arm.joints:
        if (mimic := joint.mimic) is not None:
            pair = f"joint1={quoteattr(joint.name)} "
            pair += f"joint2={quoteattr(arm.joints[mimic.leader].name)}"
            rule = numbers((mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0))
            yield f'<joint {pair} polycoef="{rule}"/>'


def _offsets(arm: Arm) -> Iterator[str]:
    for driven in arm.driven:
        if driven.drive.offset:
            name = quoteattr(OFFSET + driven.name)
            yield f'<numeric name={name} data="{number(driven.drive.offset)}"/>'


def _place(T: Float[np.ndarray, "4 4"]) -> str:
    return f'pos="{numbers(T[:3, 3])}" quat="{numbers(quaternion(T[:3, :3]))}"'


def quaternion(R: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, " 4"]:
    """Return the unit quaternion (w, x, y, z) of a rotation, w not negative."""
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K = np.empty((4, 4))
    K[0, 0], K[0, 1:] = np.trace(R), (x, y, z)
    K[1:, 0] = K[0, 1:]
    K[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    # The eigenvector of the largest eigenvalue: exact even where the trace vanishes.
    q = np.linalg.eigh(K)[1][:, -1]
    # Rounding, which would be written out with sixteen digits.
    q = np.where(np.abs(q) < 1e-15, 0.0, q)
    signed: np.ndarray = q * (np.sign(q[np.flatnonzero(q)[0]]) or 1.0)
    return signed


def _section(tag: str, inside: list[str]) -> list[str]:
    if not inside:
        return []
    return [f"  <{tag}>", *_indented(inside, 2), f"  </{tag}>"]


def _indented(lines: Iterable[str], depth: int) -> list[str]:
    return ["  " * depth + line for line in lines]


# New numbers in an existing MJCF.

_ORIENTED = ("diaginertia", "quat", "axisangle", "xyaxes", "zaxis", "euler")
"""Attributes of <inertial> that `fullinertia` takes the place of."""


def fill_mjcf(
    arm: Arm,
    path: Path,
    data: bytes,
    root: Element,
    *,
    allow_unphysical: bool = False,
    actuators: Mapping[str, str] | None = None,
) -> tuple[bytes, tuple[str, ...]]:
    """Return the template with the arm's numbers in it, and notes for the user.

    Args:
        arm: What to write.
        path: Where the template came from; files it includes are beside it.
        data: Its bytes.
        root: Its root element.
        allow_unphysical: Write negative masses and moments all the same.
        actuators: Joint → line of <actuator> for joints without one; given, the file
            is to be simulated as it is: friction's solver is set as well.
    """
    before = template_arm(arm, read_mjcf(path), path)
    changed = changed_links(arm, before)
    require_writable(arm, changed, allow_unphysical)
    data, root = _with_included(path, data, root)
    if changed:
        _require_own_inertias(root)
    model = compile_mjcf(path)
    bodies, joints = _elements(path, root, model)
    editor = Editor(data)
    notes = []
    for i in changed:
        frames, link = frames_on(before, i), arm.links[i]
        if link.name not in bodies:
            # The first of several joints of one body: the body itself, held, is a
            # frame of it and carries what the link has.
            body = next((f for f in frames if np.any(f.inertia.vector)), None)
            if body is None:
                notes.append(_dropped(arm, link, path))
                continue
            _put_carried(editor, bodies[body.name], link.inertia, body, frames)
            continue
        division = divide_inertia(link.inertia, frames)
        _put_inertia(editor, bodies[link.name], division.own)
        if division.fraction != 1.0:
            for frame, earlier in zip(division.frames, frames, strict=True):
                if np.any(earlier.inertia.vector):
                    _put_inertia(editor, bodies[frame.name], frame.inertia)
            notes.append(division.note(link.name))
    holds = actuators is not None
    # Twice the file's own step is the least time constant that MuJoCo keeps.
    time_constant = max(0.002, 2.0 * float(model.opt.timestep))
    solver = FRICTION_SOLVER | {"solreffriction": f"{number(time_constant)} 1"}
    for joint, old in zip(arm.joints, before.joints, strict=True):
        if joint.drive != old.drive:
            _put_drive(editor, joints[joint.name], joint, old)
        if holds and joint.drive.coulomb:
            editor.set(joints[joint.name], solver)
    _put_tendons(editor, root, arm, before, holds)
    _put_offsets(editor, root, arm, before)
    if actuators is not None:
        notes += _put_actuators(editor, root, model, actuators)
    return editor.result(), tuple(notes)


# Judgement: far below what any log determines of a mass.
_NOTHING = 1e-4
"""Fraction of an arm's mass that a link without a place in a file may have."""


def _dropped(arm: Arm, link: Link, path: Path) -> str:
    """Say that a link's inertia is not written, or refuse to leave it out."""
    mass = link.inertia.mass
    if mass > _NOTHING * sum(one.inertia.mass for one in arm.links):
        raise ArmError(
            f"{path} has no place for the {mass:.2g} kg of {link.name}, which lies "
            "between joints of one body. Leave these joints out (--chain), or write "
            "without --template."
        )
    return f"{link.name}, between joints of one body, has no place for {mass:.1g} kg."


def _with_included(path: Path, data: bytes, root: Element) -> tuple[bytes, Element]:
    """The file with what it includes in the place of every <include>."""
    # `compile_mjcf` has refused files elsewhere and more than a hundred of them; a
    # file may be included once only, so that this ends.
    while (element := next(_tagged(root, "include"), None)) is not None:
        name = element.text("file")
        file = path.parent / name
        if not file.is_file():
            raise element.error(f"includes {name}, which is not there.")
        inside = read_bounded(file)
        top = read_xml(file, inside)
        editor = Editor(data)
        text = inside[Editor(inside).after_tag(top) : top.close]
        editor.replace(element, [f"<!-- {name.replace('--', '- -')} -->"])
        start, end, comment = editor.changes.pop()
        editor.changes.append((start, end, comment + text))
        data = editor.result()
        root = read_xml(path, data)
    return data, root


def _tagged(root: Element, tag: str) -> Iterator[Element]:
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.tag == tag:
            yield element
        waiting += element.children[::-1]


def _put_tendons(
    editor: Editor, root: Element, arm: Arm, before: Arm, holds: bool
) -> None:
    """Put in motors that several joints turn, and new numbers of those there are."""
    earlier = {c.name: c for c in before.couplings}
    elements = {
        x.attributes.get("name"): x for t in root.all("tendon") for x in t.all("fixed")
    }
    added = []
    for coupling in arm.couplings:
        old = earlier.get(coupling.name)
        if old is None or coupling.name not in elements:
            added.append(coupling)
            continue
        new, was = drive_attributes(coupling), drive_attributes(old)
        changes = {n: v for n, v in new.items() if v != was[n]}
        if holds and coupling.drive.coulomb:
            changes |= FRICTION_SOLVER
        editor.set(elements[coupling.name], changes)
    if added:
        lines = tendon_lines(replace(arm, couplings=tuple(added)), holds)
        editor.insert(root, ["<tendon>", *_indented(lines, 1), "</tendon>"])


def _put_actuators(
    editor: Editor, root: Element, model: Any, actuators: Mapping[str, str]
) -> list[str]:
    """Give an actuator to every joint that has none; say which have one."""
    driven = joints_with_actuators(model)
    lines = [line for joint, line in actuators.items() if joint not in driven]
    if lines:
        # Behind the template's own: controls and keyframes go by their order.
        editor.append(root, ["<actuator>", *_indented(lines, 1), "</actuator>"])
    has = [joint for joint in actuators if joint in driven]
    if not has:
        return []
    more = ", …" if len(has) > 4 else ""
    return [
        f"{', '.join(has[:4])}{more} had an actuator in the template, which stays; "
        "none was added, in which a drive's constant torque would be."
    ]


_JOINT_TRANSMISSION, _PARENT_TRANSMISSION = 0, 1
"""MuJoCo's mjTRN_JOINT and mjTRN_JOINTINPARENT."""


def joints_with_actuators(model: Any) -> set[str]:
    """Names of the joints that an actuator of a compiled MJCF acts on."""
    of_joint = (_JOINT_TRANSMISSION, _PARENT_TRANSMISSION)
    return {
        str(model.joint(int(model.actuator_trnid[k][0])).name)
        for k in range(model.nu)
        if int(model.actuator_trntype[k]) in of_joint
    }


def _put_carried(
    editor: Editor,
    element: Element,
    total: InertialParameters,
    body: Frame,
    frames: list[Frame],
) -> None:
    """Put into one frame's body what a link has beyond its other frames."""
    for frame in frames:
        if frame is not body:
            total = total - frame.inertia.transformed(frame.pose)
    _put_inertia(editor, element, total.transformed(inverse(body.pose)))


def _require_own_inertias(root: Element) -> None:
    for compiler in root.all("compiler"):
        if compiler.attributes.get("inertiafromgeom") == "true":
            raise compiler.error(
                'has inertiafromgeom="true", which would overrule the inertias; set it '
                'to "auto".'
            )


def _elements(
    path: Path, root: Element, model: Any
) -> tuple[dict[str, Element], dict[str, Element]]:
    """Find the <body> and <joint> that each compiled body and joint came from."""
    bodies = list(_nested(root, "body"))
    # Elements and compiled bodies are matched by order: counts that differ would put
    # numbers into the wrong body.
    if len(bodies) != model.nbody - 1:
        raise ArmError(
            f"{path}: {len(bodies)} <body> elements make {model.nbody - 1} bodies "
            "(replicate or attach); write the file out in full first."
        )
    by_body = {body_name(model, i + 1): body for i, body in enumerate(bodies)}
    return by_body, _joints(model, bodies)


def _joints(model: Any, bodies: list[Element]) -> dict[str, Element]:
    elements = {}
    for i, body in enumerate(bodies):
        own = [x for x in _inside(body) if x.tag in ("joint", "freejoint")]
        for k, joint in enumerate(own):
            j = int(model.body_jntadr[i + 1]) + k
            elements[str(model.joint(j).name) or f"joint_{j}"] = joint
    return elements


def _nested(root: Element, tag: str) -> Iterator[Element]:
    """Go through the bodies in MuJoCo's order: each before those inside it."""
    todo = [x for x in root.children if x.tag == "worldbody"][::-1]
    while todo:
        element = todo.pop()
        if element.tag == tag:
            yield element
        todo += [x for x in element.children if x.tag in (tag, "frame")][::-1]


def _inside(body: Element) -> Iterator[Element]:
    """Go through what belongs to a body itself, <frame>s opened up."""
    todo = body.children[::-1]
    while todo:
        element = todo.pop()
        yield element
        if element.tag == "frame":
            todo += element.children[::-1]


def _put_inertia(editor: Editor, body: Element, inertia: InertialParameters) -> None:
    values = inertial_attributes(inertia)
    inertial = body.find("inertial")
    if inertial is None:
        words = " ".join(f'{name}="{text}"' for name, text in values.items())
        editor.insert(body, [f"<inertial {words}/>"])
        return
    # MuJoCo refuses `fullinertia` beside any of them.
    editor.remove(inertial, _ORIENTED)
    editor.set(inertial, values)


def _put_drive(editor: Editor, element: Element, joint: Joint, old: Joint) -> None:
    new, was = drive_attributes(joint), drive_attributes(old)
    changes = {name: text for name, text in new.items() if text != was[name]}
    editor.set(element, changes)


def _put_offsets(editor: Editor, root: Element, arm: Arm, before: Arm) -> None:
    numeric = {
        x.attributes.get("name"): x
        for c in root.all("custom")
        for x in c.all("numeric")
    }
    added = []
    offsets = {driven.name: driven.drive.offset for driven in before.driven}
    for driven in arm.driven:
        if driven.drive.offset == offsets.get(driven.name, 0.0):
            continue
        name, text = OFFSET + driven.name, number(driven.drive.offset)
        if name in numeric:
            editor.set(numeric[name], {"data": text})
        else:
            added.append(f'  <numeric name="{name}" data="{text}"/>')
    if added:
        editor.insert(root, ["<custom>", *added, "</custom>"])
