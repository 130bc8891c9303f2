"""Bad data about a load: one error that names the defect and the remedy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.arms import InertialParameters
from armwise.dynamics import HeldBody
from armwise.errors import (
    ArgumentError,
    NotIdentifiable,
    NotPhysical,
    RecordingError,
)
from armwise.loads import (
    IntegralWindows,
    OptimalFilter,
    StaticPoses,
    WristSamples,
    identify_load,
)
from armwise.recordings import Preparation
from tests.loads import rig


def test_no_arm() -> None:
    with pytest.raises(ArgumentError, match="once the arm is known"):
        identify_load(rig.samples(duration=1.0))


def test_an_arm_of_other_joints() -> None:
    with pytest.raises(ArgumentError, match="has 3 joints, but the samples have 6"):
        identify_load(rig.samples(duration=1.0), aw.load_arm("ddarm"))


def test_no_such_frame_or_component() -> None:
    data = rig.samples(duration=1.0)
    with pytest.raises(ArgumentError, match="no link or frame 'palm'"):
        identify_load(data, rig.puma(), sensor_frame="palm")
    with pytest.raises(ArgumentError, match="no component 'mx'"):
        identify_load(data, rig.puma(), components=("fx", "mx"))


def test_no_motion() -> None:
    data = rig.static_samples(poses=8)
    with pytest.raises(NotIdentifiable, match=r"hardly moves.*StaticPoses"):
        identify_load(data, rig.puma())


def test_one_orientation() -> None:
    data = rig.static_samples(poses=1)
    with pytest.raises(NotIdentifiable, match="only one orientation"):
        identify_load(data, rig.puma())
    with pytest.raises(NotIdentifiable, match="1 pose that point gravity in too few"):
        identify_load(data, rig.puma(), method=StaticPoses())


def test_never_still() -> None:
    with pytest.raises(NotIdentifiable, match="never stands still"):
        identify_load(rig.samples(), rig.puma(), method=StaticPoses())


def test_the_wrong_sign() -> None:
    data = rig.samples()
    with pytest.raises(RecordingError, match=r"wrong sign.*negate the wrench"):
        identify_load(replace(data, wrench=-np.asarray(data.wrench)), rig.puma())


def test_other_axes() -> None:
    data = rig.samples()
    turned = np.asarray(data.wrench)[:, [1, 0, 2, 4, 3, 5]] * [-1, 1, 1, -1, 1, 1]
    with pytest.raises(RecordingError, match=r"turned by 90° about -?z"):
        identify_load(replace(data, wrench=turned), rig.puma())


def test_base_axes() -> None:
    data = rig.samples()
    R = aw.Dynamics(rig.puma()).link_pose(data.q, "wrist")[:, :3, :3]
    wrench = np.asarray(data.wrench).reshape(-1, 2, 3)
    in_base = np.einsum("tij,tkj->tki", R, wrench).reshape(-1, 6)
    with pytest.raises(RecordingError, match="base axes"):
        identify_load(replace(data, wrench=in_base), rig.puma())


def test_a_saturated_sensor() -> None:
    data = rig.samples()
    clipped = np.clip(data.wrench, -6.0, 6.0)
    with pytest.raises(RecordingError, match=r"stays at -?6 .*saturated"):
        identify_load(replace(data, wrench=clipped), rig.puma())


def test_a_sensor_far_too_slow() -> None:
    data = rig.samples(duration=10.0)
    held = np.repeat(np.asarray(data.wrench)[::100], 100, axis=0)
    with pytest.raises(RecordingError, match=r"changes 1\.9 times a second"):
        identify_load(replace(data, wrench=held), rig.puma())


def test_neither_wrench_nor_torque() -> None:
    data = replace(rig.samples(duration=1.0), wrench=None)
    with pytest.raises(RecordingError, match="neither a wrench nor joint torques"):
        identify_load(data, rig.puma())


def test_a_wrench_of_zeros() -> None:
    data = rig.samples(duration=1.0)
    with pytest.raises(RecordingError, match="zero throughout"):
        identify_load(replace(data, wrench=np.zeros((len(data), 6))), rig.puma())


def test_uneven_time() -> None:
    data = rig.samples(duration=2.0)
    time = np.array(data.time)
    time[100:] += 0.5
    with pytest.raises(ArgumentError, match="time base is not even"):
        identify_load(replace(data, time=time), rig.puma())


def test_wrong_shapes_of_wrist_samples() -> None:
    zeros = np.zeros((5, 3))
    with pytest.raises(ArgumentError, match=r"wrench has shape \(5, 3\)"):
        WristSamples(np.arange(5.0), zeros, zeros, zeros, zeros)


def test_methods_that_need_joints_or_longer_data() -> None:
    data = rig.samples()
    rows = rig.body().motion(data.q, data.qd, data.qdd)
    wrist = WristSamples(data.time, rows[:, 0], rows[:, 1], rows[:, 2], data.wrench)
    with pytest.raises(ArgumentError, match="IntegralWindows works on joint motion"):
        identify_load(wrist, method=IntegralWindows())
    with pytest.raises(ArgumentError, match="holds 0 samples"):
        identify_load(data, rig.puma(), method=IntegralWindows(1e-3))
    prepared = replace(data, preparation=Preparation(cutoff_hz=10.0))
    with pytest.raises(ArgumentError, match="OptimalFilter filters by itself"):
        identify_load(prepared, rig.puma(), method=OptimalFilter(1e-4))


def test_a_consistent_static_estimate_is_refused() -> None:
    with pytest.raises(ArgumentError, match="needs all ten parameters"):
        identify_load(
            rig.static_samples(), rig.puma(), method=StaticPoses(), consistent=True
        )


def test_an_empty_hand_is_said_to_be_empty() -> None:
    load = identify_load(
        rig.samples(rig.GRIPPER), rig.puma(), gripper=rig.GRIPPER, checked=False
    )
    assert load.warnings[-1].code == "mass-not-significant"
    assert "hand may be empty" in load.warnings[-1].text


def test_a_load_no_body_can_be_is_not_exported() -> None:
    from armwise.loads import to_ur_script

    load = identify_load(rig.samples(rig.BAR, noise=3.0, seed=1), rig.puma())
    assert not load.is_physical
    with pytest.raises(NotPhysical, match="consistent=True"):
        to_ur_script(load)


def test_a_centre_that_is_not_known_is_not_exported() -> None:
    """A SCARA never shows how high its load is: no controller is told nan."""
    from armwise.loads import to_ros_payload, to_ur_script

    load = identify_load(rig.static_samples(rig.BAR), rig.puma(), method=StaticPoses())
    vector = load.parameters.vector.copy()
    vector[3] = np.nan
    lost = replace(load, parameters=InertialParameters(vector))
    for write in (to_ur_script, to_ros_payload):
        with pytest.raises(NotIdentifiable, match="of which z at"):
            write(lost)


def test_a_load_beyond_the_arm_is_said() -> None:
    """Such as a wrench in other units: 1.6 kg that come out as 1600."""
    panda = aw.load_arm("panda")
    heavy = InertialParameters.from_center_of_mass(
        900.0, [0.0, 0.0, 0.1], np.diag([4.0, 4.0, 2.0])
    )
    t = np.arange(2000) / 200.0
    q, qd, qdd = aw.motions.random_motion(panda, 3, 10.0).sample(t)
    wrench = HeldBody(panda, "flange").regressor(q, qd, qdd) @ heavy.vector
    wrench += 0.1 * np.random.default_rng(0).normal(size=wrench.shape)
    data = aw.Samples(t, q, qd, qdd, np.zeros((len(t), 0)), wrench)
    load = aw.identify_load(data, panda, frame="flange")
    texts = {warning.code: warning.text for warning in load.warnings}
    assert "beyond what panda can hold" in texts["load-too-heavy"]


def test_an_excitation_begins_where_the_arm_stands() -> None:
    panda = aw.load_arm("panda")
    start = np.array([0.3, -0.5, 0.2, -1.8, 0.1, 1.6, 0.7])
    plan = aw.loads.design_load_excitation(
        panda, "flange", duration=6.0, candidates=20, start=start
    )
    q, qd, _ = plan.motion.sample(np.linspace(0.0, 6.0, 600))
    assert q[0] == pytest.approx(start, abs=1e-9)
    assert q[-1] == pytest.approx(start, abs=1e-9)
    assert np.abs(qd[0]).max() < 1e-9
    assert np.all(q >= panda.limits("lower"))
    assert np.all(q <= panda.limits("upper"))
    assert np.abs(q - start).max() > 0.3
    with pytest.raises(ArgumentError, match="beyond the limits"):
        aw.loads.design_load_excitation(panda, "flange", start=start + 9.0)


def _recording(
    data: aw.Samples, tau: np.ndarray, wrench: np.ndarray | None = None
) -> aw.Recording:
    """The samples as a log, for what shows only in raw signals."""
    names = [f"q_{j + 1}" for j in range(6)]
    columns = dict(zip(names, data.q.T, strict=True))
    columns |= {f"tau_{j + 1}": x for j, x in enumerate(tau.T)}
    if wrench is not None:
        columns |= dict(
            zip(("fx", "fy", "fz", "tx", "ty", "tz"), wrench.T, strict=True)
        )
    channels = {k: aw.recordings.Channel(data.time, v) for k, v in columns.items()}
    return aw.Recording.from_channels(channels)


def test_a_saturated_sensor_shows_through_the_low_pass() -> None:
    data = rig.samples(bias=1.0)
    wrench = np.array(data.wrench)
    clipped = np.clip(wrench, *np.quantile(wrench[:, 0], [0.1, 0.9]))
    nothing = np.zeros((len(data), 0))
    with pytest.raises(RecordingError, match=r"fx stays at .*saturated"):
        identify_load(_recording(data, nothing, clipped), rig.puma())
    wrench[:, 0] = clipped[:, 0]
    without = ("fy", "fz", "tx", "ty", "tz")
    log = _recording(data, nothing, wrench)
    assert identify_load(log, rig.puma(), components=without).mass > 1.0


def test_torques_of_swapped_and_clipped_logs_are_named() -> None:
    data, dynamics = rig.samples(duration=5.0, noise=0.0), aw.Dynamics(rig.puma())
    empty = dynamics.inverse_dynamics(data.q, data.qd, data.qdd)
    wrist = rig.puma().layout.link(rig.puma().find_frame("wrist")[0])
    regressor = dynamics.regressor(data.q, data.qd, data.qdd)[:, :, wrist]
    T = rig.puma().find_frame("wrist")[1]
    full = empty + regressor @ rig.BRICK.transformed(T).vector
    noise = np.random.default_rng(0).normal(0.0, 0.02, full.shape)
    full, empty = full + noise, empty - noise
    swapped = identify_load(
        _recording(data, empty), rig.puma(), bare=_recording(data, full)
    )
    texts = {warning.code: warning.text for warning in swapped.warnings}
    assert "the two logs may be swapped" in texts["mass-negative"]
    assert "gains-dominate" not in texts
    limit = 0.6 * np.abs(full[:, 1]).max()
    full[:, 1] = np.clip(full[:, 1], -limit, limit)
    clipped = identify_load(
        _recording(data, full), rig.puma(), bare=_recording(data, empty)
    )
    assert "torque-clipped" in {warning.code for warning in clipped.warnings}


def test_an_excitation_of_an_arm_without_limits_assumes_some() -> None:
    panda = aw.load_arm("panda")
    joints = tuple(replace(x, limits=aw.arms.Limits()) for x in panda.joints)
    endless = replace(panda, joints=joints)
    plan = aw.loads.design_load_excitation(
        endless, "flange", duration=4.0, candidates=10
    )
    qd = plan.motion.sample(np.linspace(0.0, 4.0, 800))[1]
    assert np.abs(qd).max() <= 2.0
    assert "2 rad/s" in plan.notes[0]
    plan = aw.loads.design_load_excitation(panda, "flange", candidates=2)
    assert plan.notes == ()
