"""Estimates of a small arm with friction, and closed loops in two simulators."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.arms import Drive
from armwise.cli import main as cli
from armwise.motions import random_motion
from tests.identification.conftest import samples_of


def with_drives(arm, friction=0.05, rotor=0.1):
    """The arm with friction and rotors in proportion to its torques and inertias."""
    q, qd, qdd = random_motion(arm, 0).sample(np.linspace(0, 10, 200))
    torque = np.abs(aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)).max(axis=0)
    inertia = np.diag(aw.Dynamics(arm).mass_matrix(arm.rest))
    joints = list(arm.joints)
    for k, i in enumerate(arm.coordinates):
        size = friction * torque[k]
        drive = Drive(rotor * inertia[k], 0.6 * size, size, 0.2 * size)
        joints[i] = replace(joints[i], drive=drive)
    return replace(arm, joints=tuple(joints))


@pytest.fixture(scope="session")
def truth():
    return with_drives(aw.load_arm("ur5"))


@pytest.fixture(scope="session")
def estimate(truth):
    described = truth.with_parameters(
        np.where(truth.layout.is_inertial, 1.05 * truth.parameters, 0.0)
    )
    data = samples_of(truth, seconds=10.0)
    return aw.identify(described, data, friction="linear")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own: exit status, what it said, its warnings."""
    monkeypatch.chdir(tmp_path)

    def command(line):
        monkeypatch.setattr(sys, "argv", line.split())
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        said = capsys.readouterr()
        return exit_.value.code or 0, said.out, said.err

    return command
