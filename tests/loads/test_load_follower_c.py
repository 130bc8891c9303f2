"""The generated C of OnlineLoad against OnlineLoad itself."""

from __future__ import annotations

import ctypes
import json
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armwise as aw
from armwise.arms import InertialParameters
from armwise.cli.main import app
from armwise.dynamics import HeldBody
from armwise.errors import ArgumentError
from armwise.programs import find_compiler

compiler = find_compiler()
pytestmark = pytest.mark.skipif(compiler is None, reason="no C compiler")

RATE = 1000.0
BRICK = InertialParameters.from_center_of_mass(
    1.0, [0.01, 0.02, 0.05], np.diag([0.003, 0.002, 0.004])
)


def _log(seconds: float = 4.0, picked: float = 0.3):
    """A Panda waves; after two seconds it holds 0.3 kg more."""
    arm = aw.load_arm("panda")
    motion = aw.motions.random_motion(arm, 3, 8.0)
    t = np.arange(round(seconds * RATE)) / RATE
    q, qd, qdd = motion.sample(t)
    more = InertialParameters.from_center_of_mass(
        picked, [0.0, 0.0, 0.1], 1e-3 * np.eye(3)
    )
    A = HeldBody(arm, "flange").regressor(q, qd, qdd)
    load = np.where(t[:, None] < 2.0, BRICK.vector, (BRICK + more).vector)
    wrench = np.einsum("tij,tj->ti", A, load)
    noise = np.repeat([0.2, 0.01], 3) * np.random.default_rng(0).normal(
        size=(len(t), 6)
    )
    return arm, q, qd, qdd, wrench + noise + [1.0, -0.5, 0.3, 0.02, 0.01, -0.03]


class _Follower:
    def __init__(self, online: aw.OnlineLoad, folder: Path) -> None:
        assert compiler is not None
        _, source = online.generate(folder, "hand")
        library = folder / "hand.so"
        subprocess.run(
            [*compiler.command, "-std=c11", "-O3", "-Wall", "-Wextra", "-Werror",
             "-shared", "-fPIC", str(source), "-o", str(library), "-lm"],
            check=True,
        )  # fmt: skip
        self.text = source.read_text()
        self.c = ctypes.CDLL(str(library))
        self.state = ctypes.create_string_buffer(8192)
        self.c.hand_reset(self.state)

    def update(self, *arrays: np.ndarray) -> int:
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
        return int(self.c.hand_update(self.state, *pointers))

    def load(self) -> tuple[np.ndarray, np.ndarray]:
        values, covariance = np.zeros(10), np.zeros((10, 10))
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (values, covariance)]
        self.c.hand_load(self.state, *pointers)
        return values, covariance


def test_c_and_python_agree_and_see_the_change(tmp_path: Path) -> None:
    arm, *columns = _log()
    online = aw.OnlineLoad(arm, "flange", rate_hz=RATE)
    follower = _Follower(online, tmp_path)
    changed, sure = [], []
    for k, row in enumerate(zip(*columns, strict=True)):
        online.update(*row)
        if follower.update(*row) == 1:
            changed.append(k / RATE)
        if k % 500 == 499:
            values, covariance = follower.load()
            scale = np.abs(online.parameters.vector) + 1e-3
            assert np.max(np.abs(values - online.parameters.vector) / scale) < 1e-9
            assert covariance == pytest.approx(online.covariance, rel=1e-6, abs=1e-12)
            assert bool(follower.c.hand_is_sure(follower.state)) == online.is_sure
            sure.append(online.is_sure)
    assert changed == pytest.approx([c.time for c in online.changes], abs=2e-3)
    # 0.3 kg within 150 ms, and nothing else.
    assert len(changed) == 1
    assert 2.0 < changed[0] < 2.15
    assert sure[-1]


def test_a_wrench_in_other_axes_is_never_sure(tmp_path: Path) -> None:
    """Turned by 90° about x the same log made loads 72 m away, "sure enough"."""
    arm, *motion, wrench = _log()
    turned = wrench[:, [0, 2, 1, 3, 5, 4]] * [1.0, -1.0, 1.0, 1.0, -1.0, 1.0]
    online = aw.OnlineLoad(arm, "flange", rate_hz=RATE)
    follower = _Follower(online, tmp_path)
    far = 0
    for k, row in enumerate(zip(*motion, turned, strict=True)):
        online.update(*row)
        follower.update(*(np.ascontiguousarray(x) for x in row))
        if k % 100 == 99:
            moment = np.abs(online.parameters.vector[1:4]).max()
            is_far = moment > max(online.mass, 0.0) + 0.05
            far += is_far
            assert not (is_far and online.is_sure)
            assert bool(follower.c.hand_is_sure(follower.state)) == online.is_sure
    assert far > 0


def test_memory_is_fixed_and_a_sample_quick(tmp_path: Path) -> None:
    arm, *columns = _log(0.5)
    follower = _Follower(aw.OnlineLoad(arm, "flange", rate_hz=RATE), tmp_path)
    assert "malloc" not in follower.text
    row = [np.ascontiguousarray(x[0]) for x in columns]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in row]
    best = np.inf
    for _ in range(20):
        begin = time.perf_counter()
        for _ in range(200):
            follower.c.hand_update(follower.state, *pointers)
        best = min(best, (time.perf_counter() - begin) / 200)
    # 5 µs on a controller; here with a call from Python, on whatever machine.
    assert best < 5e-5
    bad = [x.copy() for x in row]
    bad[3][2] = np.nan
    before = follower.state.raw
    assert follower.update(*bad) == -1
    assert follower.state.raw == before


def test_a_name_that_is_none_in_c_is_refused(tmp_path: Path) -> None:
    arm = aw.load_arm("panda")
    with pytest.raises(ArgumentError, match="no name in C"):
        aw.OnlineLoad(arm, "flange").generate(tmp_path, "my load")


def test_the_command_follows_a_pipe_and_writes_c(tmp_path: Path) -> None:
    _, *columns = _log(2.5)
    names = ["time", *(f"{n}_{j}" for n in ("q", "qd", "qdd") for j in range(1, 8))]
    names += ["fx", "fy", "fz", "tx", "ty", "tz"]
    rows = np.column_stack([np.arange(len(columns[0])) / RATE, *columns])
    lines = [",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]
    words = ["follow-load", "panda", "-", "--frame", "flange", "--json"]
    result = CliRunner().invoke(
        app, [*words, "-o", str(tmp_path / "c")], input="\n".join(lines)
    )
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["rows"][1]["mass"] == pytest.approx(1.0, abs=0.05)
    assert [x["kind"] for x in answer["changes"]] == ["picked up"]
    assert (tmp_path / "c" / "load_follower.c").is_file()
    cut = CliRunner().invoke(app, words, input="time,q_1\n0,1\n")
    assert cut.exit_code == 1
    assert "no column 'q_2'" in str(cut.exception)
