"""A bridge breaks where statics says the load is largest, and the rest goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import root

from armwise.worlds import (
    Point,
    PointToNail,
    RigidBody,
    Run,
    SingularValueDropping,
    World,
    Yielding,
    read_world,
    simulate,
    sphere,
)
from armwise.worlds.methods import ForceMethod

EXAMPLE = Path(__file__).parents[2] / "examples" / "worlds" / "bridge.toml"
SPAN, LENGTH, MASS, PLANKS = 2.6, 0.5, 2.0, 6


def static_forces(load: float) -> dict[str, float]:
    """Forces in the joints of the hanging bridge, from equilibrium alone.

    Horizontal tension is the same everywhere; each plank's weight and load adds to
    the vertical one. The two unknown tensions at the left nail close the span.
    """
    weights = np.full(PLANKS, 9.81 * MASS)
    weights[1] += load

    def joints(start: np.ndarray) -> np.ndarray:
        vertical = start[1] - np.concatenate([[0], np.cumsum(weights)])
        return np.column_stack([np.full(PLANKS + 1, start[0]), vertical])

    def gap(start: np.ndarray) -> np.ndarray:
        forces = joints(start)
        along = (forces[1:] + forces[:-1]) / 2
        planks = LENGTH * along / np.linalg.norm(along, axis=1)[:, None]
        return np.asarray(planks.sum(axis=0) - [SPAN, 0])

    found = root(gap, [weights.sum() / 2, weights.sum() / 2])
    names = ["left nail", *(f"pin {i}" for i in range(1, PLANKS)), "right nail"]
    sizes = np.linalg.norm(joints(found.x), axis=1)
    return dict(zip(names, sizes.tolist(), strict=True))


@pytest.fixture(scope="module")
def bridge() -> Run:
    return read_world(EXAMPLE).run()


def test_forces_are_those_of_statics_until_it_breaks(bridge: Run) -> None:
    k = int(np.searchsorted(bridge.time, 4.0))
    wanted = static_forces(60.0 * 4.0)
    found = {name: np.linalg.norm(bridge.force(name)[k]) for name in wanted}
    assert found == pytest.approx(wanted, rel=0.03)


def test_it_breaks_where_statics_says(bridge: Run) -> None:
    broken = [line for line in bridge.log if line.kind == "broken"]
    load = 60.0 * broken[0].time
    wanted = static_forces(load)
    assert broken[0].name == max(wanted, key=lambda name: wanted[name])
    assert wanted[broken[0].name] == pytest.approx(400.0, rel=0.1)
    assert "bound of 400 N" in broken[0].cause


def test_the_rest_goes_on(bridge: Run) -> None:
    broken = [line for line in bridge.log if line.kind == "broken"]
    assert [line.name for line in broken] == ["left nail"]
    assert bridge.time[-1] == pytest.approx(8.0)
    late = bridge.time > broken[0].time + 0.2
    for name in ("pin 1", "pin 5", "right nail"):
        assert np.linalg.norm(bridge.deviation(name)[late], axis=1).max() < 1e-5
    assert np.abs(bridge.force("left nail")[late]).max() == 0.0
    assert bridge.ledger.relative_balance < 1e-8
    assert bridge.steps.careful < 500  # without the nail, the loop in C goes on


def test_the_thesis_own_scheme_lets_the_whole_bridge_slacken(bridge: Run) -> None:
    """Dropping singular values breaks it, but not where the load is largest."""
    scenario = replace(
        read_world(EXAMPLE), method=SingularValueDropping(), duration=5.6
    )
    broken = [line.name for line in scenario.run().log if line.kind == "broken"]
    assert len(broken) > 1


@pytest.mark.parametrize(
    ("method", "fall"), [(Yielding(), 9.81 - 5.0), (SingularValueDropping(), 9.81)]
)
def test_a_nail_torn_beyond_its_deviation_is_removed_and_logged(
    method: ForceMethod, fall: float
) -> None:
    ball = RigidBody.from_segments("ball", [sphere(1.0, 0.1)])
    nail = PointToNail("nail", Point("ball"), (0, 0, 0), 10.0, 5.0, 0.05)
    run = simulate(World((ball,), (nail,)), 0.3, method=method)
    (line,) = run.log
    assert (line.kind, line.name) == ("broken", "nail")
    # Yielding it gives its 5 N all the way; with every singular value dropped, none.
    assert line.time == pytest.approx(np.sqrt(2 * 0.05 / fall), abs=2e-3)
    after = run.time > line.time
    assert np.abs(run.force("nail")[after]).max() == 0.0
