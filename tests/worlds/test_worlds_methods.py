"""Constraint forces under bounds, at singularities, and by either path."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armwise.errors import WorldError
from armwise.motions import Sinusoid
from armwise.worlds import (
    ArticulatedBody,
    CashKarp,
    DampedLeastSquares,
    Hinge,
    Point,
    PointToNail,
    PointToPoint,
    Pseudoinverse,
    RigidBody,
    Run,
    SingularValueDropping,
    World,
    Yielding,
    planar_chain,
    rod,
    simulate,
)
from armwise.worlds.engine import WorldEngine
from armwise.worlds.methods import Bound
from papers.mitchell_mechanisms import three_link_world


def system(seed: int, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(6, rank)) * rng.uniform(0.01, 1.0, rank)
    return B @ B.T, B @ rng.normal(size=rank), B @ rng.normal(size=rank)


def bounds(most: float) -> tuple[Bound, ...]:
    return (Bound("one", slice(0, 3), most), Bound("two", slice(3, 6), most))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(1e-3, 1e3))
def test_dropping_keeps_forces_within_bounds_and_drops_no_more(
    seed: int, rank: int, most: float
) -> None:
    A, free, pull = system(seed, rank)
    found = SingularValueDropping().solve(A, free, pull, bounds(most))
    for part in bounds(most):
        assert np.linalg.norm(found.force[part.rows]) <= most
    least = SingularValueDropping().solve(A, free, pull, ()).dropped
    if found.dropped > least:
        looser = SingularValueDropping().solve(A, free, pull, (), found.dropped - 1)
        sizes = [np.linalg.norm(looser.force[part.rows]) for part in bounds(most)]
        assert max(sizes) > most


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(1e-2, 1e2))
def test_yielding_holds_the_overloaded_at_their_bound(
    seed: int, rank: int, most: float
) -> None:
    A, free, pull = system(seed, rank)
    found = Yielding().solve(A, free, pull, bounds(most))
    for part in bounds(most):
        size = np.linalg.norm(found.force[part.rows])
        assert size <= most * (1 + 1e-9)
        if part.name in found.at_bound:
            assert size == pytest.approx(most)


def test_without_bounds_the_smallest_exact_forces_are_found() -> None:
    A, free, pull = system(1, 4)
    wanted = -np.linalg.pinv(A, rcond=1e-10) @ (free + pull)
    for method in (SingularValueDropping(), Yielding(), Pseudoinverse(1e-10)):
        found = method.solve(A, free, pull, bounds(np.inf))
        assert found.force == pytest.approx(wanted, rel=1e-6, abs=1e-8)
    damped = DampedLeastSquares(1e-9).solve(A, free, pull, ())
    assert damped.force == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def random_world(rng: np.random.Generator) -> World:
    segment = rod(1.0, (-0.5, 0, 0), (0.5, 0, 0), 0.1)
    bodies = [
        RigidBody.from_segments(
            name, [segment], None, rng.normal(size=3), rng.normal(size=3)
        )
        for name in ("a", "b")
    ]
    arm = ArticulatedBody("arm", planar_chain(3), q=tuple(rng.normal(size=3)))
    return World(
        (*bodies, arm),
        (
            PointToNail("n", Point("a"), (0.1, 0.2, 0.3)),
            PointToPoint("p", Point("a", (0.5, 0, 0)), Point("b", (-0.5, 0, 0))),
            PointToPoint("q", Point("b", (0.5, 0, 0)), Point("arm", link="tip")),
        ),
    )


@pytest.mark.parametrize("most_traced", [0, 10**6], ids=["looped", "traced"])
@pytest.mark.parametrize("seed", range(2))
def test_the_fast_and_the_careful_path_agree(
    seed: int, most_traced: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armwise.worlds.engine.MOST_TRACED", most_traced)
    engine = WorldEngine(
        random_world(np.random.default_rng(seed)), SingularValueDropping(), "c"
    )
    state = engine.start()
    signal = np.zeros(engine.signals.size)
    fast = np.empty(engine.layout.size)
    assert engine.loop.rates(state, signal, fast)
    careful, _, _ = engine.careful_rates(state, signal)
    part = engine.layout.velocity_slice
    assert fast[: part.stop] == pytest.approx(careful[: part.stop], rel=1e-8, abs=1e-8)
    assert fast[part.stop :] == pytest.approx(careful[part.stop :], rel=1e-4, abs=1e-4)


def test_the_fast_path_shares_redundant_forces_like_the_careful_one() -> None:
    body = RigidBody.from_segments("a", [rod(1.0, (0, 0, 0), (1, 0, 0), 0.1)])
    world = World((body,), (Hinge("h", Point("a"), (0, 0, 0), (0, 1, 0)),))
    run = simulate(world, 0.5, backend="c")
    assert run.steps.careful == 0
    engine = run.engine
    fast = np.empty(engine.layout.size)
    assert engine.loop.rates(run.states[-1].copy(), np.zeros(0), fast)
    careful, _, _ = engine.careful_rates(run.states[-1], np.zeros(0))
    part = engine.layout.velocity_slice
    assert fast[part] == pytest.approx(careful[part], rel=1e-9, abs=1e-9)


def test_solving_by_loops_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A carried, a breaking and a planar constraint, with the equation solved in C."""
    ball = RigidBody.from_segments("ball", [rod(1.0, (0, 0, 0), (1, 0, 0), 0.1)])
    arm = ArticulatedBody("arm", planar_chain(3), q=(-0.5, 1.0, 0.4))
    carried = Sinusoid(np.zeros(3), np.full(3, 0.2), np.array([1.0, 2.0, 3.0]), 10.0)
    weak = PointToNail("weak", Point("arm", link="tip"), (2.3, 0, -0.7), 5, 60.0, 0.1)
    world = World((ball, arm), (PointToNail("carry", Point("ball"), carried), weak))
    runs = []
    for most in (0, 10**6):
        monkeypatch.setattr("armwise.worlds.engine.MOST_TRACED", most)
        runs.append(simulate(world, 1.0, method=Yielding()))
    assert runs[0].log
    assert [h.name for h in runs[0].log] == [h.name for h in runs[1].log]
    assert runs[0].steps == runs[1].steps
    assert runs[0].states == pytest.approx(runs[1].states, rel=1e-6, abs=1e-7)


def test_numpy_and_c_take_the_same_steps() -> None:
    world = three_link_world()
    one, other = (simulate(world, 0.2, backend=backend) for backend in ("c", "numpy"))
    assert one.states[:, :6] == pytest.approx(other.states[:, :6], rel=1e-6, abs=1e-6)
    assert other.steps.fast == 0


@pytest.fixture(scope="module")
def singular() -> Run:
    return simulate(three_link_world(), 2.0)


def test_the_stretched_arm_starts_with_two_singular_values_at_zero(
    singular: Run,
) -> None:
    values = singular.singular_values[0]
    assert (values < 1e-12 * values[-1]).sum() == 2
    assert singular.dropped[0] == 2
    assert singular.residual[0] > 1.0


def test_the_stretched_arm_passes_its_singularity_with_bounded_force(
    singular: Run,
) -> None:
    force = np.linalg.norm(singular.force("nail"), axis=1)
    assert 1e4 < force.max() <= 200_000.0
    assert singular.dropped[-1] == 1
    assert singular.residual[-1] < 1e-9
    deviation = np.linalg.norm(singular.deviation("nail"), axis=1)
    assert deviation[-1] < 0.1 * deviation[0]


def test_plain_pseudoinversion_destabilises_there() -> None:
    with pytest.raises(WorldError, match="is too large") as stopped:
        simulate(three_link_world(), 2.0, method=Pseudoinverse())
    run = cast("Run", stopped.value.run)
    assert run.time[-1] < 0.1
    assert np.all(np.isfinite(run.states[0]))


def test_damped_least_squares_passes_as_well() -> None:
    run = simulate(three_link_world(), 0.5, method=DampedLeastSquares(1e-3))
    assert np.linalg.norm(run.force("nail"), axis=1).max() < 10_000.0


def test_cash_karp_closes_the_ledger_across_the_singularity() -> None:
    run = simulate(three_link_world(), 0.5, integrator=CashKarp())
    assert run.ledger.relative_balance < 1e-8
    assert run.dropped[0] == 2
    assert run.dropped[-1] == 1


def test_a_weak_constraint_gives_its_all_and_no_more() -> None:
    body = RigidBody.from_segments("b", [rod(2.0, (-0.5, 0, 0), (0.5, 0, 0), 0.1)])
    nail = PointToNail("nail", Point("b"), (0, 0, 0), max_force=10.0)
    for method in (SingularValueDropping(), Yielding()):
        run = simulate(World((body,), (nail,)), 0.5, method=method)
        force = np.linalg.norm(run.force("nail"), axis=1)
        assert force.max() <= 10.0 + 1e-9
    # At its bound the nail carries 10 N of 19.62 N.
    assert run.velocity("b")[-1, 2] == pytest.approx(-0.5 * 9.62 / 2, rel=1e-6)
