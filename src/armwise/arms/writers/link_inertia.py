"""Division of a link's inertia among the bodies that make it up in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
        frames: The links fixed to it, with what each carries.
        fraction: Of what those had before.
    """

    own: InertialParameters
    frames: tuple[Frame, ...]
    fraction: float

    def note(self, name: str) -> str:
        """Say what became of the links fixed to one of this name."""
        bodies = ", ".join(f.name for f in self.frames if np.any(f.inertia.vector))
        if not self.fraction:
            return (
                f"All that was identified of {name} is in {name} itself: what is fixed "
                "to it has no inertia of its own any more."
            )
        return (
            f"{name}, with what is fixed to it, was identified lighter than that was "
            f"described: {bodies} keep {100.0 * self.fraction:.2g} % of their inertia."
        )


def divide_inertia(
    total: InertialParameters, frames: Sequence[Frame]
) -> InertiaDivision:
    """Let fixed links keep as much of their inertia as leaves the link a body."""
    fixed = InertialParameters.zero()
    for frame in frames:
        fixed += frame.inertia.transformed(frame.pose)
    if not np.any(fixed.vector):
        return InertiaDivision(total, tuple(frames), 1.0)
    own = total - fixed
    # Nothing but rounding is left for the link itself.
    if np.abs(own.vector).max() <= RESIDUE * np.abs(total.vector).max():
        return InertiaDivision(InertialParameters.zero(), tuple(frames), 1.0)
    # A body that has some thickness keeps some: simulators refuse what rounding allows.
    is_body = _is_thick if _is_thick(total) else InertialParameters.is_physical
    if is_body(own):
        return InertiaDivision(own, tuple(frames), 1.0)
    # The identified link is lighter than what was fixed to it. Simulators refuse bodies
    # without inertia, so that those keep half of the most that leaves it a body.
    low, high = 0.0, 1.0
    for _ in range(30 if total.is_physical() else 0):
        middle = 0.5 * (low + high)
        remainder = InertialParameters(total.vector - middle * fixed.vector)
        low, high = (middle, high) if is_body(remainder) else (low, middle)
    return divided_at(total, frames, 0.5 * low)


def _is_thick(body: InertialParameters) -> bool:
    """Whether a body extends into every direction, however little."""
    return bool(np.linalg.eigvalsh(body.pseudo_inertia)[0] > 0.0)


def divided_at(
    total: InertialParameters, frames: Sequence[Frame], fraction: float
) -> InertiaDivision:
    """Let fixed links keep a fraction of their inertia; the link carries the rest."""
    own, scaled = total, []
    for frame in frames:
        inertia = InertialParameters(fraction * frame.inertia.vector)
        own = own - inertia.transformed(frame.pose)
        scaled.append(replace(frame, inertia=inertia))
    return InertiaDivision(own, tuple(scaled), fraction)


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
