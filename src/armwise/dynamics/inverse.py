"""Inverse dynamics by Newton and Euler, one rotation per run of parallel joints.

Links inside a run, with no branch of their own, are worked out in the run's axes: their
few parameters are turned there instead of all motions and forces being turned to them
and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from armwise.arms import BASE
from armwise.dynamics.compound import Station, find_stations, turn_body
from armwise.dynamics.newton_euler import (
    LinkMotion,
    body_motion,
    link_wrench,
    swept,
)
from armwise.dynamics.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    mul,
    total,
    turn,
    vadd,
)

if TYPE_CHECKING:
    from armwise.dynamics.skeleton import Skeleton


@dataclass(frozen=True)
class _Run:
    """How the axes of a run turn: ω, the same from q̇r, and ω̇."""

    omega: Vector
    omega_r: Vector
    alpha: Vector


@dataclass(frozen=True)
class _Turning:
    """How a link turns in its run: rate, the same from q̇r, and acceleration."""

    rate: Scalar
    rate_r: Scalar
    acceleration: Scalar


@dataclass(frozen=True)
class _State:
    """A link on the way out: its run, its turning, its origin, its motion."""

    run: _Run
    turning: _Turning
    origin: Vector
    motion: LinkMotion


def inverse_dynamics(
    skeleton: Skeleton,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    bodies: Sequence[Sequence[Scalar]],
    qdr: Sequence[Scalar] | None = None,
    with_gravity: bool = True,
) -> list[Scalar]:
    """Torque of every joint for a motion: M q̈ + C(q, q̇) q̇r + g, without drives."""
    stations = find_stations(skeleton, q)
    inside = _inside(stations)
    states: list[_State] = []
    for i, station in enumerate(stations):
        own = _Turning(qd[i], qd[i] if qdr is None else qdr[i], qdd[i])
        states.append(_next(station, own, stations, states, inside, with_gravity))
    wrenches = []
    for station, stays, state, body in zip(
        stations, inside, states, bodies, strict=True
    ):
        there = turn_body(station, body) if stays else body
        wrenches.append(link_wrench(state.motion, there))
    return _torques(stations, inside, wrenches)


def _inside(stations: Sequence[Station]) -> list[bool]:
    """Whether each link is followed in its run and carries nothing else."""
    # A link inside a run keeps the run's axes and saves a rotation; one that carries
    # another run, too, must be turned to its own axes anyway.
    followed = [False] * len(stations)
    branches = [False] * len(stations)
    for station in stations:
        if station.segment.parent != BASE:
            kind = branches if station.is_first else followed
            kind[station.segment.parent] = True
    return [f and not b for f, b in zip(followed, branches, strict=True)]


def _next(
    station: Station,
    own: _Turning,
    stations: Sequence[Station],
    states: Sequence[_State],
    inside: Sequence[bool],
    with_gravity: bool,
) -> _State:
    """Move from a link to the one it carries."""
    parent = station.segment.parent
    i = len(states)
    if parent == BASE:
        return _on_base(station, own, with_gravity)
    if not station.is_first:
        carrier, base = states[parent], stations[parent]
        turning = _Turning(
            add(carrier.turning.rate, own.rate),
            add(carrier.turning.rate_r, own.rate_r),
            add(carrier.turning.acceleration, own.acceleration),
        )
        # Two equal sums are two objects; later steps compare by identity.
        if own.rate is own.rate_r and carrier.turning.rate is carrier.turning.rate_r:
            turning = _Turning(turning.rate, turning.rate, turning.acceleration)
        if inside[parent]:
            reach = _times(carrier.motion.rates, station.lever)
        else:
            lever = base.to_link(station.lever)
            reach = base.to_run(_times(carrier.motion.rates, lever))
        origin = vadd(carrier.origin, reach)
        return _state(station, carrier.run, turning, origin, inside[i])
    carrier = states[parent]
    reach = _times(carrier.motion.rates, station.lever)
    A = station.segment.turn.T
    origin = turn(A, vadd(carrier.motion.acceleration, reach))
    omega = turn(A, carrier.motion.omega)
    same = carrier.motion.omega is carrier.motion.omega_r
    omega_r = omega if same else turn(A, carrier.motion.omega_r)
    run = _Run(omega, omega_r, turn(A, carrier.motion.alpha))
    if station.segment.is_revolute:
        return _state(station, run, own, origin, inside[i])
    return _slide(run, own, origin)


def _on_base(station: Station, own: _Turning, with_gravity: bool) -> _State:
    """Begin: the axes of a run on the base turn with its first link."""
    up = station.up if with_gravity else ZERO
    if not station.segment.is_revolute:
        return _slide(_Run(ZERO, ZERO, ZERO), own, up)
    omega: Vector = (0.0, 0.0, own.rate)
    omega_r = omega if own.rate is own.rate_r else (0.0, 0.0, own.rate_r)
    run = _Run(omega, omega_r, (0.0, 0.0, own.acceleration))
    # The run's axes turn with the link, so within them it does not turn.
    return _state(station, run, _Turning(0.0, 0.0, 0.0), up, True)


def _slide(run: _Run, own: _Turning, origin: Vector) -> _State:
    """A prismatic joint moves its link along z and turns nothing."""
    same = run.omega is run.omega_r and own.rate is own.rate_r
    omega_r = run.omega if same else run.omega_r
    x, y = swept(run.omega, omega_r, own.rate, own.rate_r)
    moved = vadd(origin, (add(x, x), add(y, y), own.acceleration))
    motion = body_motion(run.omega, omega_r, run.alpha, moved)
    return _State(run, _Turning(0.0, 0.0, 0.0), moved, motion)


def _state(
    station: Station, run: _Run, turning: _Turning, origin: Vector, stays: bool
) -> _State:
    """Find the motion of a link from that of its run's axes, there or in its own."""
    omega, omega_r, alpha, acceleration = run.omega, run.omega_r, run.alpha, origin
    if not stays:
        same = omega is omega_r
        omega = station.to_link(omega)
        omega_r = omega if same else station.to_link(omega_r)
        alpha, acceleration = station.to_link(alpha), station.to_link(origin)
    x, y = swept(omega, omega_r, turning.rate, turning.rate_r)
    alpha = vadd(alpha, (x, y, turning.acceleration))
    spun = (omega[0], omega[1], add(omega[2], turning.rate))
    if omega is omega_r and turning.rate is turning.rate_r:
        spun_r = spun
    else:
        spun_r = (omega_r[0], omega_r[1], add(omega_r[2], turning.rate_r))
    motion = body_motion(spun, spun_r, alpha, acceleration)
    return _State(run, turning, origin, motion)


def _torques(
    stations: Sequence[Station],
    inside: Sequence[bool],
    wrenches: Sequence[tuple[Vector, Vector]],
) -> list[Scalar]:
    """Carry wrenches from the tips to the base; return what each joint must give."""
    forces = [force for force, _ in wrenches]
    moments = [moment for _, moment in wrenches]
    torques: list[Scalar] = [0.0] * len(stations)
    for i in reversed(range(len(stations))):
        station, force, moment = stations[i], forces[i], moments[i]
        parent = station.segment.parent
        torques[i] = moment[2] if station.segment.is_revolute else force[2]
        if parent == BASE:
            continue
        if not inside[i]:
            force, moment = station.to_run(force), station.to_run(moment)
        force, moment = station.inwards(force, moment)
        if not station.is_first and not inside[parent]:
            carrier = stations[parent]
            force, moment = carrier.to_link(force), carrier.to_link(moment)
        forces[parent] = vadd(forces[parent], force)
        moments[parent] = vadd(moments[parent], moment)
    return torques


def _times(rates: tuple[Vector, Vector, Vector], p: Vector) -> Vector:
    x, y, z = (
        total(*[mul(u, c) for u, c in zip(row, p, strict=True)]) for row in rates
    )
    return x, y, z


__all__ = ["inverse_dynamics"]
