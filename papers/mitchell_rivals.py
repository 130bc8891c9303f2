"""The same mechanisms under MuJoCo's equality constraints and penalty springs.

Two mechanisms, both starting with the constraint fulfilled, at the same step: a
four-bar linkage and three links on a nail with a spring (`mitchell1997` §2.3.3, 2.5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from armwise.errors import MissingExtra
from armwise.worlds import (
    ArticulatedBody,
    Point,
    PointToNail,
    Run,
    Spring,
    World,
    planar_chain,
    simulate,
)

TIP = Point("arm", link="tip")
FOUR_BAR = ((0.3, 0.9, 0.7), (1.0, 2.0, 1.5), 1.0)
"""Lengths [m], masses [kg] of crank, coupler and rocker; length of the ground [m]."""


@dataclass(frozen=True)
class Held:
    """How well a constraint was held.

    Attributes:
        by: What held it.
        deviation: Largest distance from the nail in [m].
        energy_change: Largest change of the total energy relative to that in play.
        balance: Ledger's relative balance, where there is a ledger.
    """

    by: str
    deviation: float
    energy_change: float
    balance: float | None = None


def four_bar_angles(crank: float) -> tuple[float, float, float]:
    """Return the joint angles [rad] that close the four-bar at a crank angle.

    The open branch, from the triangle of coupler, rocker and their diagonal.
    """
    (a, b, c), _, g = FOUR_BAR
    elbow = a * np.array([np.cos(crank), np.sin(crank)])
    diagonal = np.array([g, 0.0]) - elbow
    d = float(np.hypot(*diagonal))
    lift = np.arccos((b * b + d * d - c * c) / (2 * b * d))
    coupler = np.arctan2(diagonal[1], diagonal[0]) - lift
    wrist = elbow + b * np.array([np.cos(coupler), np.sin(coupler)])
    rocker = np.arctan2(-wrist[1], g - wrist[0])
    return crank, float(coupler - crank), float(rocker - coupler)


def four_bar(crank: float = -np.pi / 2, frequency: float = 5.0) -> World:
    """Return a four-bar under gravity, its rocker's end nailed."""
    lengths, masses, ground = FOUR_BAR
    arm = planar_chain(3, lengths, masses)
    body = ArticulatedBody("arm", arm, q=four_bar_angles(crank))
    nail = PointToNail("nail", TIP, (ground, 0.0, 0.0), frequency)
    return World((body,), (nail,), name="four-bar")


def three_links(frequency: float = 5.0) -> World:
    """Return three links on a nail with a spring, away from any singularity."""
    body = ArticulatedBody("arm", planar_chain(3), q=(-0.5, 1.0, 0.4))
    angles = np.cumsum(body.q)
    tip = (float(np.cos(angles).sum()), 0.0, float(-np.sin(angles).sum()))
    middle = Point("arm", (0.5, 0.0, 0.0), "link_3")
    return World(
        (body,),
        (PointToNail("nail", TIP, tip, frequency),),
        (Spring("spring", middle, (0.0, 0.0, 0.5), 10.0),),
        name="three links on a nail",
    )


def held_by_us(world: World, duration: float, step: float = 1e-3) -> Held:
    """Hold the nail by a dynamic constraint, RK4."""
    run = simulate(world, duration, step=step)
    return _held("Armwise", run, run.deviation("nail"))


def held_by_spring(
    world: World, duration: float, stiffness: float, damping: float, step: float = 1e-3
) -> Held:
    """Hold the nail by a stiff, damped spring, with the same RK4."""
    (nail,) = world.relations
    spring = Spring("penalty", TIP, nail.fixed_target, stiffness, damping=damping)
    loose = replace(world, constraints=(), forces=(*world.forces, spring))
    run = simulate(loose, duration, step=step)
    deviation = run.point_positions([TIP])[:, 0] - np.asarray(nail.fixed_target)
    return _held(f"penalty spring {stiffness:g} N/m", run, deviation)


def _held(by: str, run: Run, deviation: np.ndarray) -> Held:
    ledger = run.ledger
    change = np.abs(ledger.energy - ledger.energy[0]).max() / ledger.scale
    largest = float(np.linalg.norm(deviation, axis=1).max())
    return Held(by, largest, float(change), ledger.relative_balance)


def held_by_mujoco(
    world: World, duration: float, is_stiff: bool, step: float = 1e-3
) -> Held:
    """Hold the nail by MuJoCo's `connect`, as it comes or as stiff as it goes."""
    mujoco = _mujoco()
    model = mujoco.MjModel.from_xml_string(mjcf(world, is_stiff, step))
    data = mujoco.MjData(model)
    (body,) = world.bodies
    assert isinstance(body, ArticulatedBody)
    data.qpos[:] = body.q
    tip, nail = (model.site(name).id for name in ("tip", "nail"))
    mujoco.mj_forward(model, data)
    start, low = _energy(mujoco, model, data), data.energy[0]
    largest = change = in_play = 0.0
    for _ in range(round(duration / step)):
        mujoco.mj_step(model, data)
        gap = data.site_xpos[tip] - data.site_xpos[nail]
        largest = max(largest, float(np.linalg.norm(gap)))
        change = max(change, abs(_energy(mujoco, model, data) - start))
        in_play = max(in_play, data.energy[1] + abs(data.energy[0] - low))
    label = "MuJoCo connect, stiffest" if is_stiff else "MuJoCo connect"
    return Held(label, largest, float(change / in_play))


def _energy(mujoco: Any, model: Any, data: Any) -> float:
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    return float(data.energy.sum())


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("mujoco-core", "sim", "Comparing with MuJoCo") from None
    return mujoco


def mjcf(world: World, is_stiff: bool, step: float) -> str:
    """Write the same chain, nail and spring as MJCF."""
    (body,) = world.bodies
    assert isinstance(body, ArticulatedBody)
    (nail,) = world.relations
    reach = float(body.arm.frames[0].pose[0, 3])
    inner = f'<site name="tip" pos="{reach} 0 0"/>'
    for i in reversed(range(body.arm.dof)):
        inner = _link(body, i, inner)
    springs = [force for force in world.forces if isinstance(force, Spring)]
    anchors = "".join(
        f'<site name="anchor" pos="{x} {y} {z}"/>'
        for x, y, z in (spring.b for spring in springs if isinstance(spring.b, tuple))
    )
    # The shortest time constant that MuJoCo takes is two steps.
    stiff = f'solref="{2 * step} 1" solimp="0.9999 0.9999 0.001"' if is_stiff else ""
    x, y, z = nail.fixed_target
    return f"""<mujoco>
      <compiler angle="radian"/>
      <option timestep="{step}" integrator="RK4" tolerance="1e-14" iterations="200">
        <flag energy="enable" contact="disable"/></option>
      <worldbody>{inner}<site name="nail" pos="{x} {y} {z}"/>{anchors}</worldbody>
      <equality><connect site1="tip" site2="nail" {stiff}/></equality>
      {_tendon(springs)}
    </mujoco>"""


def _link(body: ArticulatedBody, i: int, inner: str) -> str:
    inertia = body.arm.links[i].inertia
    x, y, z = body.arm.joints[i].origin[:3, 3]
    center = " ".join(map(repr, inertia.center_of_mass.tolist()))
    moments = " ".join(map(repr, np.diag(inertia.central_inertia).tolist()))
    middle = '<site name="middle" pos="0.5 0 0"/>' if i == body.arm.dof - 1 else ""
    return (
        f'<body name="link_{i + 1}" pos="{x} {y} {z}"><joint axis="0 1 0"/>'
        f'<inertial pos="{center}" mass="{inertia.mass!r}" diaginertia="{moments}"/>'
        f"{middle}{inner}</body>"
    )


def _tendon(springs: list[Spring]) -> str:
    """A tendon of rest length zero pulls like a spring of rest length zero."""
    if not springs:
        return ""
    return (
        f'<tendon><spatial stiffness="{springs[0].stiffness}" springlength="0">'
        '<site site="middle"/><site site="anchor"/></spatial></tendon>'
    )


MECHANISMS: dict[str, Callable[[], World]] = {
    "four-bar": four_bar,
    "three links on a nail": three_links,
}


@cache
def compare(duration: float = 5.0, step: float = 1e-3) -> dict[str, list[Held]]:
    """Hold each mechanism by each means at the same step."""
    return {
        name: [
            held_by_us(make(), duration, step),
            held_by_mujoco(make(), duration, False, step),
            held_by_mujoco(make(), duration, True, step),
            held_by_spring(make(), duration, 1e5, 100.0, step),
            held_by_spring(make(), duration, 1e6, 300.0, step),
        ]
        for name, make in MECHANISMS.items()
    }
