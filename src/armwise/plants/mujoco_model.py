"""An arm as a MuJoCo model, built in memory: no geometry, every parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import BASE, Arm, Frame, InertialParameters, Joint
from armwise.errors import ArmError, MissingExtra
from armwise.plants.payload import Payload, carried_beyond, carrying

if TYPE_CHECKING:
    from jaxtyping import Float

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
    try:
        return spec.compile()
    except ValueError as error:
        raise ArmError(f"MuJoCo cannot simulate {arm.name}: {error}") from None


def _bodies(
    arm: Arm, payload: Payload | None, wrist: str | None
) -> list[tuple[str, int, InertialParameters]]:
    """Every link with what it carries itself, less what hangs on the wrist sensor."""
    loaded = carrying(arm, payload) if payload else arm
    found = [(link.name, i, link.inertia) for i, link in enumerate(loaded.links)]
    if wrist is not None:
        link, T_link_wrist = arm.place(wrist)
        beyond = carried_beyond(arm, wrist, payload).transformed(T_link_wrist)
        name, _, inertia = found[link]
        found[link] = (name, link, inertia - beyond)
    return found


def _add_link(
    mujoco: Any, spec: Any, arm: Arm, i: int, inertia: InertialParameters
) -> None:
    joint = arm.joints[i]
    parent = arm.links[joint.parent].name if joint.parent != BASE else "world"
    body = spec.body(parent).add_body(name=arm.links[i].name, **_place(joint.origin))
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
    body.add_site(name=frame.name, **_place(frame.pose))


def _set_inertia(body: Any, inertia: InertialParameters) -> None:
    body.explicitinertial = True
    body.mass = max(inertia.mass, _LEAST)
    body.ipos = inertia.center_of_mass
    C = inertia.central_inertia
    C = C + max(0.0, _LEAST - float(np.linalg.eigvalsh(C)[0])) * np.eye(3)
    body.fullinertia = C[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _add_wrist(
    mujoco: Any, spec: Any, arm: Arm, wrist: str, beyond: InertialParameters
) -> None:
    link, pose = arm.place(wrist)
    body = spec.body(arm.links[link].name).add_body(
        name=f"beyond {wrist}", **_place(pose)
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


def _place(T: Float[np.ndarray, "4 4"]) -> dict[str, Any]:
    mujoco = import_mujoco()
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(T[:3, :3]).reshape(9))
    return {"pos": T[:3, 3], "quat": quaternion}
