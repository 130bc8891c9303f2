"""Integrators keep their order; events are found where they are."""

from __future__ import annotations

import numpy as np
import pytest

import armwise
from armwise.errors import ArgumentError
from armwise.worlds import (
    CashKarp,
    Event,
    Moment,
    Point,
    PointToNail,
    RigidBody,
    RungeKutta4,
    SemiImplicit,
    World,
    rod,
    simulate,
    sphere,
)
from papers.mitchell_rivals import three_links


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    run = simulate(three_links(), 0.64, step=1e-4, record_every=64)
    return run.position("arm")[-1]


@pytest.mark.parametrize(
    ("integrator", "order"), [(RungeKutta4(), 4), (SemiImplicit(), 1)]
)
def test_halving_the_step_shows_the_order(
    integrator: object, order: int, truth: np.ndarray
) -> None:
    errors = [
        np.abs(
            simulate(three_links(), 0.64, step=h, integrator=integrator).position(
                "arm"
            )[-1]
            - truth
        ).max()
        for h in (8e-3, 4e-3)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.4)


@pytest.mark.parametrize("integrator", [RungeKutta4(), SemiImplicit(), CashKarp()])
def test_compiled_and_plain_steps_are_the_same(integrator: object) -> None:
    one, other = (
        simulate(three_links(), 0.05, integrator=integrator, backend=backend)
        for backend in ("c", "numpy")
    )
    assert one.states == pytest.approx(other.states, rel=1e-9, abs=1e-10)


def test_cash_karp_keeps_its_tolerance(truth: np.ndarray) -> None:
    run = simulate(three_links(), 0.64, step=0.02, integrator=CashKarp(1e-10))
    assert run.position("arm")[-1] == pytest.approx(truth, abs=1e-8)


def test_the_plants_integrators_of_the_same_name_will_do() -> None:
    run = simulate(three_links(), 0.01, integrator=armwise.plants.RungeKutta4())
    assert run.steps.fast == 10
    with pytest.raises(ArgumentError, match="CashKarp"):
        simulate(three_links(), 0.01, integrator=armwise.plants.DormandPrince())


def ball() -> RigidBody:
    return RigidBody.from_segments("ball", [sphere(1.0, 0.1)])


def below(moment: Moment) -> float:
    return float(moment.position("ball")[2]) + 1.0


def test_an_event_is_found_to_the_nanosecond() -> None:
    event = Event("one metre down", below, is_final=True)
    run = simulate(World((ball(),)), 2.0, step=0.01, events=[event])
    assert run.time[-1] == pytest.approx(np.sqrt(2 / 9.81), abs=1e-9)
    assert run.position("ball")[-1, 2] == pytest.approx(-1.0, abs=1e-9)
    assert [line.kind for line in run.log] == ["event"]


def test_an_event_releases_a_constraint() -> None:
    rodded = RigidBody.from_segments("ball", [rod(1.0, (0, 0, 0), (1, 0, 0), 0.1)])
    nail = PointToNail("nail", Point("ball"), (0.0, 0.0, 0.0))

    def lowest(moment: Moment) -> float:
        return float(moment.point_position(Point("ball", (1, 0, 0)))[0])

    event = Event("hanging straight", lowest, -1, releases=("nail",))
    run = simulate(World((rodded,), (nail,)), 1.0, events=[event])
    assert [line.kind for line in run.log] == ["event", "released"]
    after = run.time > run.log[0].time
    assert np.linalg.norm(run.force("nail")[after], axis=1).max() == 0.0
    height = run.position("ball")[after, 2]
    fall = np.polyfit(run.time[after], height, 2)[0]
    assert fall == pytest.approx(-9.81 / 2, rel=1e-4)
    assert run.ledger.relative_balance < 1e-8


def test_states_are_kept_as_often_as_asked() -> None:
    run = simulate(World((ball(),)), 1.0, record_every=100)
    assert run.time == pytest.approx(np.arange(11) * 0.1)
    assert run.position("ball")[:, 2] == pytest.approx(-9.81 / 2 * run.time**2)


def test_a_free_spinning_body_keeps_energy_and_momentum() -> None:
    body = RigidBody.from_segments(
        "b", [rod(1.0, (0, 0, 0), (1, 0, 0)), sphere(1.0, 0.2, (0, 0.5, 0))], None,
        (0, 0, 0), (1, 2, 3),
    )  # fmt: skip
    run = simulate(World((body,), gravity=(0, 0, 0)), 10.0, record_every=100)
    energy = run.ledger.energy
    assert np.abs(energy / energy[0] - 1).max() < 1e-10
    quaternion = run.position("b")[:, 3:]
    assert np.linalg.norm(quaternion, axis=1) == pytest.approx(1.0, abs=1e-14)
    from armwise.arms.poses import rotation_from_quaternion

    turning = [
        rotation_from_quaternion(q) @ body.inertia.central_inertia @ w
        for q, w in zip(quaternion, run.velocity("b")[:, 3:], strict=True)
    ]
    assert np.ptp(turning, axis=0).max() < 1e-9
