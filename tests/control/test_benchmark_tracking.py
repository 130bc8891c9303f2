"""The comparison of controllers: one tidy table, honest about failures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from armwise.arms import Arm, Frame, InertialParameters, load_arm
from armwise.control import PD, Feedforward, TrackingTable, benchmark_tracking
from armwise.control.benchmark import fingerprint
from armwise.control.comparison import (
    compact_load,
    standard_controllers,
    standard_plants,
    tracking_tasks,
    with_friction,
)
from armwise.errors import ArgumentError
from armwise.motions import Quintic, Sinusoid, check_limits
from armwise.plants import Plant, SimulatedArm, perturbed
from armwise.report import write_tracking_report

TASKS = {
    "reach": Quintic(np.zeros(2), np.ones(2), 0.4),
    "wave": Sinusoid(np.zeros(2), np.full(2, 0.3), np.array([4.0, 6.0]), 0.5),
}
KP, KD = np.array([200.0, 80.0]), np.array([30.0, 12.0])


def plants(arm: Arm, batch: int, seed: int) -> Plant:
    return SimulatedArm(arm, batch=batch, seed=seed, control_rate_hz=250.0)


def forward(arm: Arm) -> Feedforward:
    return Feedforward(PD(KP, KD), arm)


@pytest.fixture(scope="module")
def table() -> TrackingTable:
    arm = load_arm("two_link_slotine")
    controllers = {
        "PD": partial(PD, KP, KD),
        "feedforward": partial(forward, arm),
        "wild": partial(PD, 1e6, 1.0),
    }
    return benchmark_tracking(TASKS, {"own": partial(plants, arm)}, controllers, (0, 1))


def test_there_is_one_row_for_every_joint_of_every_run(table: TrackingTable) -> None:
    assert table.frame.height == 2 * 1 * 3 * 2 * 2
    keys = table.frame.select("task", "plant", "controller", "seed", "joint")
    assert keys.is_duplicated().sum() == 0


def test_errors_are_right_and_runaways_are_counted(table: TrackingTable) -> None:
    overall = table.normalised("PD").filter(table.overall()["seed"] == 0)
    by = {(r["task"], r["controller"]): r for r in overall.to_dicts()}
    assert by["reach", "feedforward"]["normalised"] < 0.1
    assert by["reach", "PD"]["normalised"] == 1.0
    assert not by["wave", "wild"]["stable"]
    assert np.isnan(by["wave", "wild"]["rms_error"])
    assert table.unstable == 4


def test_the_table_survives_the_disk(table: TrackingTable, tmp_path: Path) -> None:
    table.write(tmp_path / "t.parquet")
    again = TrackingTable.read(tmp_path / "t.parquet")
    assert again.frame.equals(table.frame, null_equal=True)
    write_tracking_report(table, tmp_path / "f.html", "PD")
    page = (tmp_path / "f.html").read_text(encoding="utf-8")
    assert "Tracking error" in page
    assert "Error relative to PD" in page
    assert len(list(tmp_path.iterdir())) == 2
    (tmp_path / "noise.parquet").write_bytes(b"noise")
    with pytest.raises(ArgumentError, match=r"noise\.parquet"):
        TrackingTable.read(tmp_path / "noise.parquet")


def test_an_unknown_baseline_is_named(table: TrackingTable) -> None:
    with pytest.raises(ArgumentError, match="PD, feedforward, wild"):
        table.normalised("LQR")


def test_results_are_remembered_until_something_changes(tmp_path: Path) -> None:
    arm = load_arm("two_link_slotine")
    made = {"own": partial(plants, arm)}
    told: list[tuple[int, int]] = []

    def bench(gain: float) -> TrackingTable:
        controllers = {"PD": partial(PD, gain * KP, KD)}
        return benchmark_tracking(
            {"reach": TASKS["reach"]},
            made,
            controllers,
            cache=tmp_path,
            progress=lambda done, all_: told.append((done, all_)),
        )

    first, second = bench(1.0), bench(1.0)
    assert first.frame.equals(second.frame)
    assert len(list(tmp_path.glob("*.part"))) == 1
    bench(2.0)
    assert len(list(tmp_path.glob("*.part"))) == 2
    assert told == [(1, 1)] * 3


def test_the_warm_up_does_not_count() -> None:
    arm = load_arm("two_link_slotine")
    task = {"reach": Quintic(np.zeros(2), np.ones(2), 0.4)}
    made = {"own": partial(plants, arm)}
    all_of_it, end = (
        benchmark_tracking(task, made, {"PD": partial(PD, KP, KD)}, warm_up=w)
        for w in (0.0, 0.399)
    )
    peaks = [t.frame["peak_error"].max() for t in (all_of_it, end)]
    assert peaks[1] < 0.9 * peaks[0]  # type: ignore[operator]


def test_fingerprints_tell_content_not_history() -> None:
    arm = load_arm("two_link_slotine")
    fresh = fingerprint(partial(plants, arm), 1)
    assert arm.parameters.size  # now the arm carries cached properties
    assert fingerprint(partial(plants, arm), 1) == fresh
    assert fingerprint(partial(plants, perturbed(arm, 0.1)), 1) != fresh
    assert fingerprint(partial(plants, arm), 2) != fresh
    assert fingerprint(lambda: 0) is None
    assert fingerprint(object()) is None


def test_two_processes_give_the_same_table() -> None:
    arm = load_arm("two_link_slotine")
    options = ({"reach": TASKS["reach"]}, {"own": partial(plants, arm)})
    controllers = {"PD": partial(PD, KP, KD), "feedforward": partial(forward, arm)}
    one, two = (
        benchmark_tracking(*options, controllers, workers=n).frame.drop("seconds")
        for n in (1, 2)
    )
    assert one.equals(two)


def test_what_cannot_be_compared_is_named() -> None:
    arm = load_arm("two_link_slotine")
    with pytest.raises(ArgumentError, match="no controller"):
        benchmark_tracking(TASKS, {"own": partial(plants, arm)}, {})
    with pytest.raises(ArgumentError, match=r"functools\.partial"):
        benchmark_tracking(
            TASKS, {"own": lambda b, s: plants(arm, b, s)}, {"PD": PD}, workers=2
        )


@pytest.mark.parametrize("name", ["ddarm", "puma560", "panda", "ur10"])
def test_standard_tasks_stay_within_limits(name: str) -> None:
    arm = load_arm(name)
    for duration in (1.0, 4.0):
        for motion in tracking_tasks(arm, duration).values():
            check_limits(motion, arm)


def test_the_standard_comparison_prefers_those_who_know_more() -> None:
    arm = load_arm("ddarm")
    table = benchmark_tracking(
        {"reach": tracking_tasks(arm, 2.0)["reach"]},
        standard_plants(arm),
        standard_controllers(perturbed(arm, 0.1)),
    )
    found = {
        r["controller"]: r["normalised"] for r in table.normalised("PD").to_dicts()
    }
    assert table.unstable == 0
    assert found["feedforward"] < found["PD + gravity"] < 1.0
    assert found["composite"] < found["feedforward"]
    assert found["indirect"] < found["computed torque"]
    assert found["Craig-Hsu-Sastry"] < found["PD + gravity where it is"] < 1.0
    assert found["one linear model"] < 1.0
    assert found["mixture of local models"] < 1.0


def test_a_described_hand_counts_once_where_its_weight_is_felt() -> None:
    """Exact model, no friction: a hand counted twice would be half the load again."""
    arm = load_arm("two_link_slotine").with_gravity([0.0, -9.81, 0.0])
    hand = InertialParameters.from_center_of_mass(
        1.0, [0.1, 0.0, 0.0], np.diag([1e-3, 1e-3, 1e-3])
    )
    last = replace(arm.links[-1], inertia=arm.links[-1].inertia + hand)
    arm = replace(
        arm,
        links=(*arm.links[:-1], last),
        frames=(Frame("hand", len(arm.links) - 1, np.eye(4), hand),),
    )
    load = compact_load(arm, 1.0, "hand")
    table = benchmark_tracking(
        {"reach": tracking_tasks(arm, 2.0)["reach"]},
        standard_plants(arm, 0.0, load=load),
        {
            name: made
            for name, made in standard_controllers(arm, wrist=load.frame).items()
            if name in ("PD", "feedforward", "feedforward + wrench")
        },
    )
    rows = table.normalised("PD").to_dicts()
    size = {row["controller"]: row["rms_error"] for row in rows}
    assert size["feedforward + wrench"] < 0.2 * size["feedforward"]


def test_friction_is_added_in_proportion() -> None:
    arm = load_arm("ddarm")
    light, heavy = (with_friction(arm, share) for share in (0.01, 0.02))
    a, b = (np.array([j.drive.coulomb for j in x.joints]) for x in (light, heavy))
    np.testing.assert_allclose(b, 2 * a)
    assert np.all(a > 0)
