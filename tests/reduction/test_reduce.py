"""Reduction keeps what matters, and says what it costs."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError, NotPhysical
from armwise.identification import (
    led_from_tip,
    reduction_cost,
    significance,
    standing_of,
)
from tests.identification.conftest import samples_of, with_drives


@pytest.fixture(scope="module")
def case():
    arm = with_drives(aw.load_arm("puma560"))
    data = samples_of(arm)
    estimate = aw.identify(arm, data, aw.WeightedLeastSquares(), friction="linear")
    return arm, data, estimate


def test_fewer_parameters_predict_nearly_as_well(case):
    arm, data, estimate = case
    small = aw.reduce(estimate, data, threshold=0.01)
    assert small.base.count < 0.8 * estimate.base.count
    assert small.condition_number < estimate.condition_number
    other = samples_of(arm, seed=4, noise=0.0, seed_motion=2)
    assert small.validate(other).relative_error.max() < 0.05


def test_only_leaders_are_left(case):
    _, data, estimate = case
    small = aw.reduce(estimate, data, threshold=0.02)
    assert np.count_nonzero(small.parameters) == small.base.count
    np.testing.assert_allclose(
        aw.Dynamics(small.arm).inverse_dynamics(data.q, data.qd, data.qdd),
        small.predict(data),
        atol=1e-9,
    )


def test_nothing_is_dropped_at_zero(case):
    _, data, estimate = case
    same = aw.reduce(estimate, data, threshold=0.0)
    assert same.base.count == estimate.base.count
    np.testing.assert_allclose(same.base_values, estimate.base_values, rtol=1e-6)


def test_uncertain_ones_go_too(case):
    _, data, estimate = case
    small = aw.reduce(estimate, data, largest_relative_std=0.1)
    assert np.all(small.base_std <= 0.1 * np.abs(small.base_values))


def test_senseless_thresholds_are_refused(case):
    _, data, estimate = case
    with pytest.raises(ArgumentError):
        aw.reduce(estimate, data, threshold=1.5)


def test_the_whole_arms_torque_drops_more_than_the_joints_own(case):
    _, data, estimate = case
    joint, arm = (significance(estimate, [data], of) for of in ("joint", "arm"))
    assert np.all(arm <= joint)
    # The strongest joint decides alone: there both rules are one.
    torques = estimate.base_values * np.einsum(
        "sjp,pb->sjb",
        aw.Dynamics(estimate.prior_arm).regressor(data.q, data.qd, data.qdd),
        np.eye(estimate.prior_arm.parameters.size)[:, list(estimate.base.indices)],
    )
    expected = np.abs(torques).max(axis=(0, 1)) / np.abs(data.tau).max()
    is_smooth = [not n.endswith("coulomb") for n in leaders(estimate)]
    np.testing.assert_allclose(arm[is_smooth], expected[is_smooth], rtol=1e-6)
    assert aw.reduce(estimate, data, of="arm").base.count == np.sum(arm >= 0.01)


def test_the_cost_is_the_change_of_predicted_torque(case):
    _, data, estimate = case
    small = aw.reduce(estimate, data, threshold=0.05)
    cost = reduction_cost(estimate, small, data)
    change = small.predict(data) - estimate.predict(data)
    np.testing.assert_allclose(cost.rms, np.sqrt((change**2).mean(axis=0)))
    np.testing.assert_allclose(cost.largest, np.abs(change).max(axis=0))
    assert cost.largest.max() > 0
    assert np.all(reduction_cost(estimate, estimate, data).largest == 0)


def leaders(estimate):
    return [estimate.base.names[i] for i in estimate.base.indices]


def test_other_leaders_say_the_same(case):
    """β' = K' π for the same π, with the covariance of the same fit."""
    _, data, estimate = case
    other = led_from_tip(estimate)
    assert other.base.count == estimate.base.count
    assert leaders(other) != leaders(estimate)
    np.testing.assert_allclose(
        other.base_values, other.base.values(estimate.all_parameters), rtol=1e-6,
        atol=1e-9,
    )  # fmt: skip
    alone = [k for k, name in enumerate(leaders(other)) if "viscous" in name]
    same = [k for k, name in enumerate(leaders(estimate)) if "viscous" in name]
    np.testing.assert_allclose(
        other.base_std[alone], estimate.base_std[same], rtol=1e-9
    )
    small = aw.reduce(other, data)
    assert small.fit.relative_error.max() < 0.05


def test_what_a_published_model_keeps_is_looked_up(case):
    arm, data, estimate = case
    small = aw.reduce(estimate, data, threshold=0.02)
    own = standing_of(small.arm, estimate, small)
    assert own == {name: name for name in leaders(small)}
    standing = standing_of(arm, estimate, small)
    assert set(standing) == {
        n for n, x in zip(arm.parameter_names, arm.parameters, strict=True) if x
    }
    assert None in standing.values()
    with pytest.raises(ArgumentError, match="same arm"):
        standing_of(aw.load_arm("ddarm"), estimate, small)


def test_a_reduced_model_has_no_forward_dynamics(case, tmp_path):
    _, data, estimate = case
    small = aw.reduce(estimate, data, threshold=0.2)
    assert small.left_out
    code = aw.generate(small, tmp_path / "code", ["inverse_dynamics"], tries=1)
    assert "do not invert M" in code.notes[0]
    with pytest.raises(NotPhysical, match="before reduction"):
        aw.generate(small, tmp_path / "other", ["forward_dynamics"])
    assert not (tmp_path / "other").exists()


def test_three_commands_from_log_to_code(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from armwise.cli.main import app

    monkeypatch.chdir(tmp_path)
    for command in (
        "simulate ddarm --duration 3 -o run.csv",
        "identify ddarm run.csv --friction linear -o out",
        "reduce ddarm out/estimate.json run.csv -o small.json --compare ddarm",
        "generate small.json -o code --functions inverse_dynamics",
        "inspect small.json",
    ):
        done = CliRunner().invoke(app, command.split(), catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert (tmp_path / "code" / "ddarm.h").is_file()
