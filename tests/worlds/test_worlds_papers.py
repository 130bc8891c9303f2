"""`mitchell1997` chapter 2, and the same mechanisms held by others."""

from __future__ import annotations

import numpy as np
import pytest

from papers import mitchell_worlds
from papers.mitchell_rivals import (
    MECHANISMS,
    four_bar_angles,
    held_by_mujoco,
    held_by_spring,
    held_by_us,
)


@pytest.mark.slow
def test_every_figure_of_the_chapter_but_the_drift() -> None:
    rows = mitchell_worlds.rows(rival_duration=0.5)
    bad = {
        row["experiment"]
        for row in rows
        if row["verdict"] in ("differs", "claim fails")
    }
    assert bad == {"Fig. 2.7"}  # our energy does not drift
    assert sum(row["verdict"] == "claim holds" for row in rows) >= 15
    shown = " ".join(str(row["experiment"]) for row in rows)
    for number in (2, 3, 4, 5, 6, 7, 8, 10, 12):
        assert f"2.{number}" in shown


@pytest.mark.parametrize("name", MECHANISMS)
def test_our_nail_holds_a_hundred_times_better_than_others(name: str) -> None:
    pytest.importorskip("mujoco")
    make = MECHANISMS[name]
    ours = held_by_us(make(), 2.0)
    assert ours.balance is not None
    assert ours.balance < 1e-8
    for other in (
        held_by_mujoco(make(), 2.0, is_stiff=True),
        held_by_spring(make(), 2.0, 1e6, 300.0),
    ):
        assert other.deviation > 100 * ours.deviation


def test_mujoco_runs_the_same_mechanism() -> None:
    """Its nail gives way, yet over a short time the motion is the same."""
    mujoco = pytest.importorskip("mujoco")
    from armwise.worlds import simulate
    from papers.mitchell_rivals import mjcf, three_links

    world = three_links()
    model = mujoco.MjModel.from_xml_string(mjcf(world, True, 1e-3))
    data = mujoco.MjData(model)
    data.qpos[:] = world.bodies[0].q  # type: ignore[union-attr]
    for _ in range(300):
        mujoco.mj_step(model, data)
    run = simulate(world, 0.3)
    assert run.position("arm")[-1] == pytest.approx(data.qpos, abs=1e-4)


@pytest.mark.parametrize("crank", [-2.0, 0.3, 1.5])
def test_the_four_bar_closes(crank: float) -> None:
    angles = np.cumsum(four_bar_angles(crank))
    tip = np.array([0.3, 0.9, 0.7]) @ np.exp(1j * angles)
    assert tip == pytest.approx(1.0, abs=1e-12)
