"""What a watchdog says when something has happened to a sensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from armwise.calibration.drift import Drifted
    from armwise.calibration.failures import Failure
    from armwise.calibration.step_search import Jump
    from armwise.calibration.structure import Structure


@dataclass(frozen=True)
class Alarm:
    """Something happened to a joint's sensor.

    Attributes:
        kind: `jump` (the reading stepped as no joint can move), `drift` (gravity says
            that a gain or an offset has moved), `stuck`, `saturated` or `missing`.
        joint: Whose sensor.
        quantity: What is wrong: `offset`, `gain` or `reading`.
        onset: When it began in [s].
        time: When it was noticed in [s].
        size: How much too far positions read since, in [rad] or [m], for gains as a
            share of the motion; NaN where it has no meaning.
        std: Standard deviation of the size.
        message: All of it in a sentence.
    """

    kind: str
    joint: str
    quantity: str
    onset: float
    time: float
    size: float = np.nan
    std: float = np.nan
    message: str = ""


class Wording:
    """Puts what witnesses found into alarms.

    Args:
        structure: The arm, and its sensors' unknowns.
    """

    def __init__(self, structure: Structure) -> None:
        arm = structure.arm
        self._joints, self._unknowns = arm.coordinate_names, structure.unknowns
        slides = {joint.name for joint in arm.joints if joint.kind == "prismatic"}
        self._turns = [name not in slides for name in self._joints]

    def jump(self, found: Jump) -> Alarm:
        """A reading that stepped."""
        joint = self._joints[found.joint]
        size = self._size(found.joint, "offset", found.size, found.std)
        message = (
            f"The reading of {joint} jumped by {size} at t = {found.onset:.3f} s, "
            "as no joint can move."
        )
        return Alarm("jump", joint, "offset", *found[1:], message)

    def drift(self, found: Drifted) -> Alarm:
        """A gain or an offset that moved."""
        unknown, onset, moved, std = found.shift
        joint, quantity = self._unknowns[unknown].rsplit(".", 1)
        index = self._joints.index(joint)
        size = self._size(index, quantity, -moved, std)
        far = "reads too far" if quantity == "offset" else "turns too far"
        message = (
            f"{joint} {far} by {size} since about t = {onset:.0f} s, by the weight of "
            "the links."
        )
        return Alarm("drift", joint, quantity, onset, found.time, -moved, std, message)

    def failure(self, found: Failure) -> Alarm:
        """A sensor that fails."""
        joint = self._joints[found.joint]
        what = {
            "missing": "gives no number",
            "stuck": "stays the same",
            "saturated": "stays at the end of its range",
        }[found.kind]
        message = f"The sensor of {joint} {what} from t = {found.onset:.3f} s on"
        if np.isfinite(found.excess):
            message += (
                f" under {found.excess:.3g} N m (N) more than a joint at rest needs: "
                "it is stuck, or the joint is blocked"
            )
        return Alarm(
            found.kind, joint, "reading", found.onset, found.time, message=f"{message}."
        )

    def _size(self, joint: int, quantity: str, size: float, std: float) -> str:
        if quantity == "gain":
            return f"{size:+.2%} ± {std:.2%}"
        if self._turns[joint]:
            return f"{np.rad2deg(size):+.3f}° ± {np.rad2deg(std):.3f}°"
        return f"{1e3 * size:+.3f} mm ± {1e3 * std:.3f} mm"
