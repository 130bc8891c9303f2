"""What is assumed of torque gains."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.errors import ArgumentError
from armwise.regression import GAIN_STD, joint_gain_std


def test_the_kind_of_signal_says_how_far_a_gain_may_be_off():
    assert np.array_equal(joint_gain_std("current", 3), [0.1, 0.1, 0.1])
    assert np.array_equal(joint_gain_std(None, 2), [GAIN_STD["unknown"]] * 2)
    assert np.array_equal(joint_gain_std(None, 1, "sensor"), [GAIN_STD["sensor"]])
    assert np.array_equal(joint_gain_std([0.0, 0.03], 2), [0.0, 0.03])


@pytest.mark.parametrize("wrong", ["volts", -0.1, 1.0, np.nan, [0.1, 0.1]])
def test_what_is_no_deviation_of_a_gain_is_refused(wrong: object):
    with pytest.raises(ArgumentError):
        joint_gain_std(wrong, 3)
