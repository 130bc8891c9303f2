"""Table 1 of `izaguirre1992`: how far ten fits of the same parameter spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

ROTORS = (0.050155, 0.086779, 0.054446, 0.012358, 0.018743, 0.002849)
COULOMB = (0.074645, 0.229495, 0.127999, 0.038097, 0.037993, 0.027456)
VISCOUS = (0.142105, 0.292792, 0.177024, 0.002107, 0.070966, 0.012595)
"""Standard deviations of ia, fs and ds of joints 1 to 6; that of ds4 looks misprinted:
its average, 0.088, lies outside the maximum, 0.046, and the minimum, 0.147."""

LINKS = {
    "link_6": {
        "m": 1.119838, "mx": 0.002621, "my": 0.002, "mz": 0.009833, "Ixx": 0.006396,
        "Iyy": 0.005895, "Izz": 0.001691, "Ixy": 0.001391, "Iyz": 0.001307,
        "Ixz": 0.000831,
    },
    "link_5": {
        "mx": 0.012684, "my": 0.014106, "Ixx": 0.008077, "Izz": 0.016054,
        "Ixy": 0.004036, "Iyz": 0.002689, "Ixz": 0.005822,
    },
    "link_4": {
        "mx": 0.018356, "my": 0.229325, "Ixx": 0.092222, "Izz": 0.081800,
        "Ixy": 0.011871, "Iyz": 0.004918, "Ixz": 0.001974,
    },
    "link_3": {
        "mx": 0.077495, "my": 0.182303, "Ixx": 0.09324, "Ixy": 0.020517,
        "Iyz": 0.027816, "Ixz": 0.021493,
    },
    "link_2": {"mx": 0.235012, "my": 0.040522, "Ixy": 0.049358, "Iyz": 0.026013},
}  # fmt: skip
"""Of the links' moments; the paper's d, e, f are Ixy, Iyz, Ixz."""


def table_1_std(names: Sequence[str]) -> Float[np.ndarray, " parameters"]:
    """The printed standard deviations, in the order of our names."""
    drives = {"rotor_inertia": ROTORS, "coulomb": COULOMB, "viscous": VISCOUS}
    found = []
    for name in names:
        part, _, kind = name.partition(".")
        if kind in drives:
            found.append(drives[kind][int(part.removeprefix("joint_")) - 1])
        else:
            found.append(LINKS[part][kind])
    return np.array(found)
