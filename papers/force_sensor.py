"""A load on the spring of a force sensor: tapped, and moved (`aah1986` Fig. 9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.plants import WristSensor
from armwise.plants.sensors import Mount, Sampler
from armwise.plants.state import State
from armwise.recordings import low_pass
from papers.atkeson_loads import BAR, DDARM_MOTION, ddarm_rig
from papers.load_rig import Vibration

if TYPE_CHECKING:
    from jaxtyping import Float

RATE_HZ = 1000.0
RESONANCE_HZ = 30.0
DAMPING = {False: 0.05, True: 0.5}
"""Without and with rubber washers; the paper shows curves but no numbers."""

TAP = 20.0
"""Size of a tap in [N]."""


@dataclass(frozen=True, eq=False)
class Record:
    """What one channel of the sensor said.

    Attributes:
        time: In [s].
        force: In [N].
    """

    time: Float[np.ndarray, " samples"]
    force: Float[np.ndarray, " samples"]

    @property
    def ringing(self) -> float:
        """Time from the largest deflection to the last above a tenth of it in [s]."""
        size = np.abs(self.force)
        top = int(size.argmax())
        last = int(np.flatnonzero(size > 0.1 * size[top])[-1])
        return float(self.time[last] - self.time[top])

    @property
    def unrest(self) -> float:
        """What is faster than 15 Hz, root mean square in [N]."""
        rate = 1.0 / float(self.time[1] - self.time[0])
        return float(np.std(self.force - low_pass(self.force, 15.0, rate)))


@cache
def tapped(has_washers: bool) -> Record:
    """Tap the load at 20 ms, for 5 ms."""

    def hit(state: State) -> np.ndarray:
        is_on = 0.02 <= state.time < 0.025
        return np.full((1, 6), TAP if is_on else 0.0)

    def wrench(_: str) -> Sampler:
        return hit

    sensor = WristSensor(
        "wrist", resonance_hz=RESONANCE_HZ, damping=DAMPING[has_washers]
    )
    mount = Mount(1, 1, 1.0 / RATE_HZ, np.random.default_rng(0), wrench)
    read, state = sensor.mounted(mount), State.at_rest(1, 1)
    time = np.arange(round(0.6 * RATE_HZ)) / RATE_HZ
    force = []
    for t in time:
        state.time = float(t)
        force.append(float(read(state)[0, 2]))
    return Record(time, np.array(force))


@cache
def moved_wrench(has_washers: bool) -> Record:
    """Move the bar on a direct-drive arm that shakes near the sensor's resonance."""
    rig = replace(
        ddarm_rig(),
        vibration=Vibration(1e-5, (9.0, 19.0, 28.0)),
        damping=DAMPING[has_washers],
        resonance_hz=RESONANCE_HZ,
    )
    run = rig.record(DDARM_MOTION, BAR, 1, seed=5)[0]
    return Record(run.time, run.wrench[:, 2])
