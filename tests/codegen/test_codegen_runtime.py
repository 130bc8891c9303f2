"""The two-rate runtime: wait-free, in time, and near the whole torque."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.codegen.files import RUNTIME_FUNCTIONS
from armwise.codegen.realtime import MEAN_AGE, run_realtime, run_stress, two_rate_error
from armwise.errors import ArgumentError, ArmwiseError
from armwise.programs.compiler import find_compiler

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")


@pytest.fixture(scope="module")
def puma():
    return aw.load_arm("puma260")


@pytest.fixture(scope="module")
def code(puma, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runtime") / "out"
    return aw.generate(puma, folder, RUNTIME_FUNCTIONS, runtime=True, tries=1)


def fast_motion(speed_deg):
    start = np.deg2rad([0.0, -90.0, 90.0, 0.0, 0.0, 0.0])
    end = start + np.deg2rad([90.0, 90.0, -90.0, 0.0, 0.0, 0.0])
    return aw.motions.Quintic(start, end, 1.875 * 90.0 / speed_deg)


@needs_compiler
def test_no_read_is_torn(code):
    found = run_stress(code, 20_000)
    assert found["torn"] == 0
    assert found["backwards"] == 0
    assert found["written"] >= found["taken"] == 20_000


def sanitized(code, exchanges):
    """Run under the thread sanitizer: False if it found a race."""
    try:
        found = run_stress(code, exchanges, ("-fsanitize=thread", "-g"))
    except ArmwiseError as problem:
        if "status 66" in str(problem):  # how the sanitizer ends a racing program
            return False
        pytest.skip(f"no thread sanitizer here: {problem}")
    return found["torn"] == found["backwards"] == 0


@needs_compiler
def test_the_controller_answers_every_sample_with_its_torque(code, puma, tmp_path):
    from subprocess import run

    from armwise.codegen.realtime import build_controller

    program = build_controller(code, tmp_path)
    rng = np.random.default_rng(0)
    # Still and always the same posture: old terms are right, so the torque is exact.
    q, qd = rng.normal(size=6), np.zeros(6)
    references = rng.normal(size=(20, 3, 6))
    kp, kd = rng.uniform(1.0, 2.0, (2, 6))
    samples = [np.concatenate([q, qd, *row]) for row in references]
    words = [str(program), *map(str, [*kp, *kd, 0.0])]
    done = run(words, input=np.array(samples).tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr
    torque = np.frombuffer(done.stdout).reshape(20, 6)
    model = aw.Dynamics(puma).inverse_dynamics(q, qd, references[:, 2])
    feedback = kp * (references[:, 0] - q) + kd * references[:, 1]
    np.testing.assert_allclose(torque, model + feedback, atol=1e-9)
    assert run(words[:3], capture_output=True).returncode == 2


@needs_compiler
def test_the_thread_sanitizer_is_content(code):
    assert sanitized(code, 2_000)


@needs_compiler
def test_the_thread_sanitizer_sees_a_broken_exchange(code):
    """A writer that stays in the slot it gave away must be caught."""
    path = code.folder / f"{code.name}_exchange.h"
    text = path.read_text()
    broken = text.replace("e->back = atomic_exchange", "(void)atomic_exchange")
    broken = broken.replace(
        "acq_rel) & 3u;\n}\n\n/* Reader", "acq_rel);\n}\n\n/* Reader"
    )
    assert broken != text
    try:
        path.write_text(broken)
        assert not sanitized(code, 2_000)
    finally:
        path.write_text(text)


@needs_compiler
def test_both_tasks_run(puma):
    report = run_realtime(puma, rate_hz=500, seconds=0.4, background_hz=100, lead=0.005)
    assert report.samples == 200
    assert report.background is not None
    assert report.synchronous.median < 20e-6  # under 1 µs on an idle machine
    assert max(report.torque_error) < 0.25 * max(report.torque_peak)


def test_a_background_ten_times_slower_costs_less_than_one_percent(puma):
    found = two_rate_error(puma, fast_motion(180.0))
    assert found.fraction < 0.01
    assert found.error[:3].max() < 0.01 * found.peak[:3].max()


def test_working_ahead_helps_and_slower_is_worse(puma):
    motion = fast_motion(180.0)
    ahead = two_rate_error(puma, motion, lead=MEAN_AGE).fraction
    plain = two_rate_error(puma, motion, lead=0.0).fraction
    slower = two_rate_error(puma, motion, ratio=40, lead=0.0).fraction
    assert 3 * ahead < plain < slower
    assert two_rate_error(puma, fast_motion(30.0), lead=0.0).fraction < 0.01


def test_bad_rates(puma):
    with pytest.raises(ArgumentError, match="ratio"):
        two_rate_error(puma, fast_motion(180.0), ratio=0)
    for options in ({"rate_hz": 0}, {"seconds": -1}, {"rate_hz": 1e5, "seconds": 60}):
        with pytest.raises(ArgumentError):
            run_realtime(puma, **options)
    with pytest.raises(ArgumentError, match="background"):
        run_realtime(puma, background_hz=-1)
