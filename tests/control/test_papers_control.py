"""App. A of atkeson1986, ch. 3 of astley1996 and mitchell1997, ours beside theirs."""

from __future__ import annotations

import numpy as np
import pytest

from papers import astley_adaptive, atkeson_control, mitchell_runs
from papers.mitchell_grid import Part, full_grid, run_grid
from papers.mitchell_tasks import TASKS, Scheme, Task


def test_app_a_keeps_the_order_and_the_peaks() -> None:
    rows = atkeson_control.rows()
    verdicts = [row["verdict"] for row in rows]
    assert verdicts.count("claim holds") == 5
    assert verdicts.count("agrees") == 5
    others = {
        row["verdict"]: row["quantity"]
        for row in rows
        if row["verdict"] in ("claim fails", "differs")
    }
    assert others == {
        "claim fails": "joint 3: peak error of 5 over that of 4",
        "differs": "feedforward: peak error of joint 2 [°]",
    }


def test_composite_adaptation_on_the_two_link_arm() -> None:
    case = astley_adaptive.two_link_case(duration=6.0)
    assert case.parameters == 6
    assert case.worst < 0.01
    assert case.tracking_gain > 10


@pytest.mark.slow
def test_composite_adaptation_on_the_puma() -> None:
    case = astley_adaptive.puma_case(periods=1.0)  # the rows take two
    assert case.parameters == 36
    assert case.worst < 0.05
    assert case.overall < 0.005
    assert case.tracking_gain > 10


def test_the_grid_is_the_whole_grid() -> None:
    assert len(TASKS) == 2 * 3 * 4
    cells = {
        (part.arm, scheme.name, scheme.rule, scheme.eta, force)
        for part in full_grid()
        for scheme, forces in part.cells
        for force in forces
    }
    for arm in ("two_link_slotine", "two_link_uno"):
        for force in ("none", "gravity", "viscosity"):
            assert (arm, "PD", "none", 0.0, force) in cells
            for name in ("IDSL", *(f"M{n}" for n in range(1, 9))):
                for rule in ("gradient", "recursive"):
                    assert (arm, name, rule, 0.01, force) in cells


def test_a_corner_of_the_grid_shows_what_the_thesis_saw() -> None:
    schemes = [Scheme("PD"), *(Scheme(n, "gradient", 0.05) for n in ("IDSL", "M2"))]
    wild = Scheme("M1", "gradient", 50.0)
    part = Part(
        "two_link_uno",
        False,
        (*((s, ("none", "viscosity")) for s in schemes), (wild, ("none",))),
        (Task("sinusoid", "wide", 1.0),),
        adapt=6.0,
        measure=2.0,
    )
    frame = run_grid((part,), workers=1)
    found = {(r["controller"], r["force"]): r for r in frame.to_dicts()}
    assert found["PD", "none"]["normalised"] == 1.0
    assert found["IDSL", "none"]["normalised"] < found["M2", "none"]["normalised"] < 0.5
    assert found["IDSL", "viscosity"]["l2"] > found["IDSL", "none"]["l2"]
    assert not found["M1", "none"]["stable"]
    assert np.isnan(found["M1", "none"]["l2"])


def test_gravity_is_there_and_no_controller_knows() -> None:
    schemes = (Scheme("PD"), Scheme("IDSL", "gradient", 0.05))
    errors = {}
    for gravity in (False, True):
        cells = tuple((s, ("gravity" if gravity else "none",)) for s in schemes)
        task = (Task("sinusoid", "wide", 0.5),)
        part = Part("two_link_uno", gravity, cells, task, adapt=4.0, measure=1.0)
        frame = run_grid((part,), workers=1)
        errors[gravity] = dict(zip(frame["controller"], frame["l2"], strict=True))
    assert errors[True]["PD"] > 1.5 * errors[False]["PD"]
    assert errors[True]["IDSL"] > 3 * errors[False]["IDSL"]


def test_point_to_point_tasks_visit_the_corners() -> None:
    motion = Task("point to point", "small", 1.0).plan(8.0)
    q = motion.sample(np.linspace(0.0, 8.0, 4001)).q
    np.testing.assert_allclose(q.min(axis=0), [0.5, 1.1], atol=0.02)
    np.testing.assert_allclose(q.max(axis=0), [1.3, 1.9], atol=0.02)


def test_slower_and_stiffer_pd_is_better() -> None:
    errors = mitchell_runs.pd_errors((0.25, 1.0))
    assert errors[1.0][0] < errors[1.0][1]
    assert np.all(errors[4.0] < errors[1.0])
