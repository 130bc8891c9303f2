"""`izaguirre1992` §3 and §7.2: counts, two rates and runs without feedback."""

from __future__ import annotations

import numpy as np

from armwise.arms import load_arm
from armwise.papers.izaguirre_code import (
    open_loop_errors,
    operation_counts,
)


def test_fewer_operations_than_the_papers():
    found = operation_counts()
    assert found["inertia and gravity"] <= (83, 60)
    assert found["velocity torques"] <= (140, 110)
    assert found["inertia and gravity, arbitrary load"] <= (190, 150)
    assert found["velocity torques, arbitrary load"] <= (200, 170)


def test_open_loop_drifts_slowly_unless_gravity_follows():
    truth = load_arm("puma260")
    off = 1 + 0.002 * np.random.default_rng(1).standard_normal(truth.parameters.size)
    model = truth.with_parameters(off * truth.parameters)
    found = open_loop_errors(model, truth, ["together"])["together"]
    assert max(found.fast) < 0.10
    assert max(found.slow_compensated) < 0.10
    assert max(found.slow) > 2 * max(found.slow_compensated)
