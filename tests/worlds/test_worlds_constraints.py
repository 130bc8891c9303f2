"""Every constraint: its deviation dies as the critically damped law says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armwise.motions import Sinusoid
from armwise.worlds import (
    CircleCurve,
    Hinge,
    Orientation,
    Point,
    PointToCurve,
    PointToLine,
    PointToNail,
    PointToPlane,
    PointToPoint,
    PointVelocity,
    PolynomialCurve,
    RigidBody,
    Run,
    Weld,
    World,
    box,
    rod,
    simulate,
)
from armwise.worlds.constraints import Constraint

A, B = Point("a", (0.3, 0.1, 0.2)), Point("b", (-0.4, 0.0, 0.1))
CARRIED = Sinusoid(
    np.array([0.4, 0.1, 0.3]), np.full(3, 0.2), np.array([1.0, 2.0, 3.0]), 100.0
)


def world(*constraints: Constraint) -> World:
    turned = np.eye(4)
    turned[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    turned[:3, 3] = (0.9, 0.3, 0.1)
    a = RigidBody.from_segments(
        "a", [box(1.0, (0.6, 0.2, 0.4))], None, (0.1, 0.2, 0), (0.5, 1.0, -0.3)
    )
    b = RigidBody.from_segments(
        "b", [rod(2.0, (-0.5, 0, 0), (0.5, 0, 0), 0.1)], turned, (0, 0, 0), (0, 2.0, 0)
    )
    return World((a, b), constraints)


HELD: dict[str, Callable[[], Constraint]] = {
    "nail": lambda: PointToNail("c", A, (0.5, 0.0, 0.4), 6.0),
    "moving nail": lambda: PointToNail("c", A, CARRIED, 6.0),
    "pin": lambda: PointToPoint("c", A, B, 6.0),
    "line": lambda: PointToLine("c", A, (0.5, 0.0, 0.4), (1, 2, 3), 6.0),
    "moving line": lambda: PointToLine("c", A, CARRIED, (1, 2, 3), 6.0),
    "plane": lambda: PointToPlane("c", A, (0.5, 0.0, 0.4), (1, 2, 3), 6.0),
}
MADE_OF_POINTS: dict[str, Callable[[], Constraint]] = {
    "hinge": lambda: Hinge("c", A, (0.4, 0.0, 0.3), (0, 1, 0), None, 0.2, 15.0),
    "hinge of two": lambda: Hinge("c", A, B, (0, 1, 0), None, 0.2, 15.0, 2000.0),
    "weld": lambda: Weld("c", A, (0.4, 0.0, 0.3), frequency=15.0),
    "weld of two": lambda: Weld("c", A, B, frequency=15.0, max_force=2000.0),
}


def law(run: Run, name: str) -> np.ndarray:
    start, rate = run.deviation(name)[0], run.deviation_rate(name)[0]
    growth = start + np.outer(run.time, rate + 6.0 * start)
    return growth * np.exp(-6.0 * run.time)[:, None]


@pytest.mark.parametrize("kind", HELD)
def test_deviation_returns_critically_damped(kind: str) -> None:
    run = simulate(world(HELD[kind]()), 1.0)
    for relation in run.world.relations:
        found = run.deviation(relation.name)
        assert np.abs(found[0]).max() > 1e-3
        assert found == pytest.approx(law(run, relation.name), abs=1e-9)
    assert run.ledger.relative_balance < 1e-8


@pytest.mark.parametrize("kind", MADE_OF_POINTS)
def test_joints_made_of_points_close(kind: str) -> None:
    run = simulate(world(MADE_OF_POINTS[kind]()), 1.2)
    for relation in run.world.relations:
        size = np.linalg.norm(run.deviation(relation.name), axis=1)
        assert size[0] > 0.05
        assert size[-1] < 1e-5
        force = np.linalg.norm(run.force(relation.name), axis=1)
        assert force.max() <= relation.max_force


@pytest.mark.parametrize("kind", HELD)
def test_rates_of_deviations_are_their_derivatives(kind: str) -> None:
    run = simulate(world(HELD[kind]()), 0.05)
    for relation in run.world.relations:
        D, rate = run.deviation(relation.name), run.deviation_rate(relation.name)
        middle = (D[2:] - D[:-2]) / 2e-3
        assert rate[1:-1] == pytest.approx(middle, abs=2e-4)


CURVES = {
    "circle": CircleCurve((0.3, 0.1, 0.6), (0.2, 1.0, 0.1), 0.5),
    "parabola": PolynomialCurve(((0.3, 0.1, 0.0), (1, 0.2, 0), (0, 0, 1.0))),
}


@pytest.mark.parametrize("name", CURVES)
def test_a_bead_stays_on_its_wire_without_being_held_along_it(name: str) -> None:
    curve = CURVES[name]
    run = simulate(world(PointToCurve("c", A, curve, 6.0)), 4.0)
    places = run.point_positions([A])[-1, 0]
    s = run.states[-1, run.engine.layout.curves["c"]]
    nearest = np.array(curve.at(float(s))[0], dtype=float)
    assert places == pytest.approx(nearest, abs=1e-6)
    assert np.abs(run.deviation("c")[0]).max() > 1e-2
    assert np.ptp(run.states[:, run.engine.layout.curves["c"]]) > 0.3
    assert run.ledger.relative_balance < 1e-7


def test_a_bead_on_a_frictionless_circle_is_a_pendulum() -> None:
    from scipy.integrate import solve_ivp

    ball = RigidBody.from_segments(
        "ball", [box(1.0, (0.01, 0.01, 0.01))], _at(0.5, 0, 0)
    )
    wire = CircleCurve((0, 0, 0), (0, 1, 0), 0.5)
    run = simulate(World((ball,), (PointToCurve("wire", Point("ball"), wire),)), 2.0)

    def rate(t: float, x: np.ndarray) -> list[float]:
        return [x[1], -9.81 / 0.5 * np.cos(x[0])]

    there = solve_ivp(rate, (0, 2), [0, 0], rtol=1e-10, atol=1e-12).y[0, -1]
    found = run.point_positions([Point("ball")])[-1, 0]
    assert found == pytest.approx(
        [0.5 * np.cos(there), 0, 0.5 * np.sin(there)], abs=1e-6
    )


def _at(x: float, y: float, z: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = (x, y, z)
    return pose


def test_a_point_takes_the_velocity_it_is_given() -> None:
    held = PointVelocity("c", A, (0.2, 0.0, -0.1), frequency=5.0)
    run = simulate(world(held), 2.0)
    start = run.deviation("c")[0]
    wanted = start * np.exp(-5.0 * run.time)[:, None]
    assert run.deviation("c") == pytest.approx(wanted, abs=1e-8)
    moved = np.diff(run.point_positions([A])[-2:, 0], axis=0)[0] / 1e-3
    assert moved == pytest.approx([0.2, 0, -0.1], abs=1e-4)
    assert run.ledger.relative_balance < 1e-8


def test_a_velocity_may_be_held_along_one_direction_only() -> None:
    held = PointVelocity("c", A, (0.0, 0.0, 0.0), ((0.0, 0.0, 1.0),))
    run = simulate(world(held), 1.0)
    assert run.deviation("c").shape[1] == 1
    assert abs(run.deviation("c")[-1, 0]) < 1e-4


def test_orientation_turns_a_body_and_lets_it_fall() -> None:
    held = Orientation("o", Point("b"), spread=0.3, frequency=15.0)
    run = simulate(world(held), 1.5)
    R = run.point_positions([Point("b"), Point("b", (1, 0, 0)), Point("b", (0, 1, 0))])[
        -1
    ]
    assert R[1] - R[0] == pytest.approx([1, 0, 0], abs=1e-6)
    assert R[2] - R[0] == pytest.approx([0, 1, 0], abs=1e-6)
    fall = run.position("b")[-1, 2] - run.position("b")[0, 2]
    assert fall == pytest.approx(-9.81 * 1.5**2 / 2, rel=1e-9)


def test_orientation_between_two_bodies_exerts_no_net_force() -> None:
    held = Orientation("o", Point("a"), Point("b"), spread=0.3, max_force=500.0)
    run = simulate(world(held), 1.0)
    mass = np.array([1.0, 2.0])
    velocity = [run.velocity(name)[-1, :3] for name in ("a", "b")]
    start = [run.velocity(name)[0, :3] for name in ("a", "b")]
    change = mass @ (np.array(velocity) - start)
    assert change == pytest.approx([0, 0, -9.81 * 3], abs=1e-6)


def test_a_weld_to_the_world_holds_still() -> None:
    run = simulate(world(Weld("w", Point("a"), (0.2, 0.1, 0.0), frequency=20.0)), 1.2)
    places = run.point_positions(
        [Point("a"), Point("a", (1, 0, 0)), Point("a", (0, 1, 0))]
    )[-1]
    wanted = np.array([[0.2, 0.1, 0], [1.2, 0.1, 0], [0.2, 1.1, 0]])
    assert places == pytest.approx(wanted, abs=1e-6)


def test_a_hinge_leaves_five_singular_values() -> None:
    run = simulate(world(Hinge("h", Point("a"), (0.0, 0.0, 0.0), (0, 1, 0))), 0.1)
    values = run.singular_values[0]
    assert (values > 1e-9 * values[-1]).sum() == 5
    # The force along the axis is shared evenly: the smallest forces win.
    plus, minus = run.force("h+"), run.force("h-")
    assert plus[0, 1] == pytest.approx(minus[0, 1], abs=1e-9)
    assert abs(plus[0, 1]) > 0.1
