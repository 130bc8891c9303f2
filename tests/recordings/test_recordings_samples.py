from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from armwise.errors import ArgumentError, RecordingError
from armwise.recordings import Channel, Preparation, Recording, Samples


def samples(rows=10, dof=2, **changes):
    block = np.arange(rows * dof, dtype=float).reshape(rows, dof)
    given = {"time": np.arange(rows) * 0.1, "q": block, "qd": block}
    given |= {"qdd": block, "tau": block}
    return Samples(**(given | changes))


def test_built_by_keyword_and_frozen():
    data = samples()
    assert (len(data), data.dof, data.segments) == (10, 2, (slice(0, 10),))
    with pytest.raises(ValueError, match="read-only"):
        data.q[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.q = data.qd  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tau": np.zeros((9, 2))}, r"tau has shape \(9, 2\)"),
        ({"qd": np.zeros((10, 3))}, r"qd has shape \(10, 3\)"),
        ({"wrench": np.zeros((10, 3))}, r"wrench has shape"),
        ({"q": np.zeros(10)}, r"q \(N, n\)"),
        ({"qdd": np.full((10, 2), np.nan)}, "qdd is not finite in row 0"),
        ({"time": np.zeros(10)}, "time does not increase in row 1"),
        ({"starts": (0, 12)}, "there are 10 rows"),
        ({"starts": (1,)}, "begin with 0"),
    ],
)
def test_refuses_what_does_not_fit(changes, message):
    with pytest.raises(ArgumentError, match=message):
        samples(**changes)


def test_torque_may_be_missing():
    data = samples(tau=np.zeros((10, 0)))
    assert not data.has_torque


def test_slices_keep_segments_apart():
    joined = Samples.concatenate([samples(), samples(), samples(5)])
    assert joined.starts == (0, 10, 20)
    assert joined[8:23].segments == (slice(0, 2), slice(2, 12), slice(12, 15))
    first, rest = joined.split(0.5)
    assert len(first) + len(rest) == 25
    with pytest.raises(ArgumentError, match="slices"):
        joined[3]  # type: ignore[index]


def test_join_refuses_other_arms():
    with pytest.raises(ArgumentError, match="cannot be joined"):
        Samples.concatenate([samples(), samples(dof=3)])


def test_direction_is_the_sign_for_hand_made_samples():
    qd = np.array([[-1.0, 0.0], [2.0, 1e-12], [0.0, -3.0]])
    data = samples(3, qd=qd)
    np.testing.assert_array_equal(data.direction(), np.sign(qd))
    np.testing.assert_array_equal(data.low_passed(qd), qd)


def test_direction_looks_through_the_torques_low_pass():
    time = np.arange(2000) / 200.0
    qd = np.sin(2 * np.pi * 0.5 * time)[:, None]
    made = Preparation(torque_bandwidth_hz=5.0, speed_resolution=(1e-6,))
    data = Samples(time=time, q=qd, qd=qd, qdd=qd, tau=qd, preparation=made)
    seen = data.direction()[:, 0]
    # A step of a Butterworth of 5 Hz, both ways, takes about 0.1 s to turn over.
    assert abs(seen[200]) < 0.05
    assert seen[250] == pytest.approx(-1.0, abs=0.02)
    assert 0.2 < abs(seen[195]) < 0.9
    joined = Samples.concatenate([data, data])
    np.testing.assert_allclose(joined.direction()[2000:, 0], seen, atol=1e-12)


def test_direction_of_a_coupling_counts_both_joints():
    qd = np.array([[1.0, -2.0], [1.0, 3.0]])
    data = samples(2, qd=qd)
    weights = np.array([[1.0, 1.0]])
    np.testing.assert_array_equal(data.direction(weights), [[-1.0], [1.0]])


def test_recording_names_missing_channels():
    time = np.arange(4.0)
    rec = Recording.from_arrays(time, q=np.zeros((4, 2)), source="run3.csv")
    assert rec.dof == 2
    with pytest.raises(RecordingError, match=r"run3.csv has no channel 'tau_1'"):
        rec["tau_1"]
    with pytest.raises(RecordingError, match="one value per time stamp"):
        Channel(time, np.zeros(3))
    with pytest.raises(TypeError):
        rec.channels["x"] = rec["q_1"]  # type: ignore[index]


def test_recording_splits_by_time():
    rec = Recording.from_arrays(np.arange(10.0), q=np.zeros((10, 1)))
    first, rest = rec.split(0.6)
    assert (first["q_1"].time[-1], rest["q_1"].time[0]) == (5.0, 6.0)
    assert rec.between(2.0, 5.0)["q_1"].time.tolist() == [2.0, 3.0, 4.0]


def test_channels_share_a_table_exactly_when_they_share_their_stamps():
    time = np.arange(4.0)
    channels = {
        "q_1": Channel(time, time),
        "tau_1": Channel(time.copy(), 2.0 * time, "N m"),  # equal, not the same object
        "volts": Channel(time + 0.5, time, "V"),
    }
    rec = Recording.from_channels(channels)
    assert [list(table.columns) for table in rec.tables] == [
        ["q_1", "tau_1"],
        ["volts"],
    ]
    assert (rec["tau_1"].unit, rec.tables[1].name) == ("N m", "volts")
    assert rec.index_of("volts") == 1
    chosen = rec.select(["volts"])
    assert (list(chosen.channels), len(chosen.tables)) == (["volts"], 1)
    moved = rec.with_channels({"volts": Channel(time, time)})
    assert len(moved.tables) == 1
    with pytest.raises(RecordingError, match="two channels 'q_1'"):
        Recording((rec.tables[0], rec.tables[0]))
