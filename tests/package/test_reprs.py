"""Answers that a session shows in one line."""

from __future__ import annotations

from dataclasses import is_dataclass

import numpy as np
import pytest

import armwise as aw

VERBS = (
    "base_parameters", "build_problem", "calibrate", "calibrate_recording",
    "calibrate_torques", "design_excitation", "generate", "identify",
    "identify_fleet", "identify_load", "learn", "load_arm", "prepare",
    "read_recording", "reduce", "run", "simulate",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_every_answer_has_a_line_of_its_own(verb: str) -> None:
    function = getattr(aw, verb)
    module = __import__(function.__module__, fromlist=["x"])
    name = function.__annotations__["return"]
    answer = getattr(module, name, None)
    if answer is None:  # imported for type checkers only
        folder = aw.worlds if verb == "simulate" else aw.recordings
        answer = getattr(folder, name)
    assert is_dataclass(answer)
    # A dataclass's own repr, which would show every array, is written by exec.
    assert answer.__repr__.__code__.co_filename.endswith(".py"), answer


def test_lines_are_short_and_say_what_matters() -> None:
    arm = aw.load_arm("ur10")
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 8.0, 0.01)
    w = rng.uniform(1.0, 5.0, 6)
    q, qd, qdd = (
        np.sin(w * t[:, None]),
        w * np.cos(w * t[:, None]),
        -(w**2) * np.sin(w * t[:, None]),
    )
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    samples = aw.Samples(
        time=t, q=q, qd=qd, qdd=qdd, tau=tau + rng.normal(size=q.shape)
    )
    recording = aw.Recording.from_arrays(t, q=q, tau=tau)
    estimate = aw.identify(arm, samples, friction="linear")
    shown = [repr(x) for x in (arm, samples, recording, estimate, estimate.base)]
    assert all(len(line) < 250 and "\n" not in line for line in shown), shown
    assert "800 of 6 joints over 7.99 s" in shown[1]
    assert "12 channels (q_1, q_2" in shown[2]
    assert (
        "36 base parameters" in shown[3].replace("+", "")
        or "base parameters" in shown[3]
    )
    assert "combinations" in shown[4]
