"""Playing: the clock, the sliders and the plots stay in step, without a browser."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

import armwise as aw
from armwise.view.scene import make_scene, make_world_scene
from armwise.view.serve import HOST, Player, free_port, slider_values
from armwise.worlds.scenario import read_world

from .test_view_world import WORLDS


@pytest.fixture
def server():
    viser = pytest.importorskip("viser")
    with contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(HOST, free_port(0), verbose=False)
        yield server
        server.stop()


@pytest.fixture
def player(server) -> Player:
    """Two joints that turn at one and two radians a second, for two seconds."""
    arm = aw.load_arm("two_link_uno")
    t = np.arange(0.0, 2.0, 0.01)
    qd = np.broadcast_to([1.0, 2.0], (200, 2))
    still = np.zeros((200, 2))
    player = Player(
        server, make_scene(arm, aw.Samples(t, t[:, None] * qd, qd, still, still))
    )
    player.step(0.0)
    return player


def test_time_runs_as_fast_as_it_is_told(player: Player):
    for speed in ("1", "0.1"):
        player.panel._speed.value = speed
        player.panel._time.value = 0.0
        player.panel.is_playing = True
        begin = player._last
        for k in range(1, 301):
            player.step(begin + k * 1e-3)
        assert player.panel.time == pytest.approx(0.3 * float(speed), abs=2e-3)
        assert player.panel.q == pytest.approx(
            [1, 2] * np.array(player.panel.time), abs=0.03
        )
        player.panel.is_playing = False


def test_the_end_leads_back_to_the_beginning(player: Player):
    player.panel._time.value = 1.9
    player.panel.is_playing = True
    player.step(0.4)
    assert player.panel.time == 0.0


def test_a_pause_of_the_machine_does_not_skip(player: Player):
    player.panel.is_playing = True
    player.step(3600.0)
    assert player.panel.time == pytest.approx(0.5)


def test_a_hand_on_the_time_moves_joints_and_plots(player: Player):
    plot = player.panel._torques._plots[0]
    before = plot.data[0].copy()
    player.panel._torques._window.value = 0.5
    player.panel._time.value = 1.5
    player.step(0.1)
    assert player.panel.q == pytest.approx([1.5, 3.0])
    assert plot.data[0][0] > before[0]
    assert np.ptp(plot.data[0]) == pytest.approx(0.5, abs=0.02)


def test_a_hand_on_a_joint_moves_the_arm(player: Player):
    frame = player._canvas._frames[1]
    before = np.array(frame.position)
    player.panel._joints[0].value = 1.0
    player.step(0.1)
    assert np.linalg.norm(frame.position - before) > 0.1
    assert player.panel.time == 0.0


def test_layers_are_shown_and_hidden(player: Player):
    layers = player._canvas._layers
    assert all(handle.visible for handle in layers["skeleton"])
    assert not any(handle.visible for handle in layers["inertia 1"])
    player.panel._layers["skeleton"].value = False
    player.panel._layers["inertia 1"].value = True
    player.step(0.1)
    assert not any(handle.visible for handle in layers["skeleton"])
    assert all(handle.visible for handle in layers["inertia 1"])


def test_a_world_alone_plays(server):
    run = read_world(WORLDS / "nail.toml").run()
    player = Player(server, make_world_scene(run))
    player.panel._time.value = 5.0
    player.step(1.0)
    (cylinder,) = player._canvas._world._frames
    around = player._scene.surroundings
    expected = around.poses[around.row_at(5.0), 0, :3, 3]
    np.testing.assert_allclose(cylinder.position, expected)
    arrows = player._canvas._world._arrows.points
    np.testing.assert_allclose(
        arrows[0, 0], around.constraints[0].points[around.row_at(5.0), 0], rtol=1e-6
    )


@pytest.mark.parametrize("lower", [0.820305, 0.872665, -0.1234567, -2.0, 1.0])
def test_a_slider_starts_between_its_ends(lower: float) -> None:
    for upper in (lower + 1e-3, lower + 4.59):
        for start in (lower, upper, 0.5 * (lower + upper)):
            low, high, value = slider_values(lower, upper, start)
            assert low <= value <= high
            assert low <= lower + 1e-3
            assert high >= upper - 1e-3
