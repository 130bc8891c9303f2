"""Division of a link's inertia among the bodies that make it up in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armwise.arms.arm import Arm, Frame
from armwise.arms.inertia import InertialParameters
from armwise.errors import NotPhysical

# Judgement: thousands of roundings, far less than six digits of a file.
RESIDUE = 1e-12
"""Of a link's largest parameter: less than this is left over from rounding."""


@dataclass(frozen=True)
class InertiaDivision:
    """Who carries what of a moving link.

    Attributes:
        own: What the link itself carries, in its frame.
        keeps_frames: Whether the links fixed to it keep what they had; else they
            are emptied, and the link carries everything.
    """

    own: InertialParameters
    keeps_frames: bool


def divide_inertia(
    total: InertialParameters, frames: Sequence[Frame]
) -> InertiaDivision:
    """Let fixed links keep their inertia where the rest is still a body."""
    fixed = InertialParameters.zero()
    for frame in frames:
        fixed += frame.inertia.transformed(frame.pose)
    if not np.any(fixed.vector):
        return InertiaDivision(total, True)
    own = total - fixed
    # Nothing but rounding is left for the link itself.
    if np.abs(own.vector).max() <= RESIDUE * np.abs(total.vector).max():
        return InertiaDivision(InertialParameters.zero(), True)
    # Else the identified link is lighter than what was fixed to it.
    if own.is_physical():
        return InertiaDivision(own, True)
    return InertiaDivision(total, False)


def require_writable(arm: Arm, links: Sequence[int], allow_unphysical: bool) -> None:
    """Refuse links whose numbers a file cannot state, or should not silently."""
    for i in links:
        name, inertia = arm.links[i].name, arm.links[i].inertia
        if not inertia.has_mass and np.any(inertia.first_moment):
            raise NotPhysical(
                f"{arm.name}: {name} has first moments but no mass, so no centre of "
                "mass to write. Identify parameters a body can have, then save those."
            )
        # A broken triangle inequality alone is a defect, not refused, as in the reader.
        if inertia.has_negative() and not allow_unphysical:
            raise NotPhysical(
                f"{arm.name}: {name}: {inertia.defect()}; not written. Identify "
                "parameters a body can have, or save with allow_unphysical=True."
            )


def frames_on(arm: Arm, link: int) -> list[Frame]:
    """List the frames that belong to a link."""
    return [frame for frame in arm.frames if frame.link == link]
