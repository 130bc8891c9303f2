"""What practice has left behind, on disk and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.errors import ArgumentError
from armwise.files import replacing

if TYPE_CHECKING:
    from jaxtyping import Float

Ending = Literal["trials done", "noise floor", "no improvement", "plant diverged"]


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned of one motion.

    Attributes:
        command: The best command so far, one row per control period, in [N m] or [N].
        next_command: The one the next trial would play.
        period: Control period in [s].
        velocity_error, position_error: Root-mean-square errors, one row per trial.
        floor: Root-mean-square velocity that differs between two attempts with the
            same command, per joint; what no learning can remove. NaN if unknown.
        ending: Why it stopped.
    """

    command: Float[np.ndarray, "samples dof"]
    next_command: Float[np.ndarray, "samples dof"]
    period: float
    velocity_error: Float[np.ndarray, "trials dof"]
    position_error: Float[np.ndarray, "trials dof"]
    floor: Float[np.ndarray, " dof"]
    ending: Ending = "trials done"

    @property
    def trials(self) -> int:
        """Attempts made so far, repetitions for the noise floor not counted."""
        return len(self.velocity_error)

    @property
    def best(self) -> int:
        """Index of the best trial."""
        return int(np.argmin(self.overall_error)) if self.trials else 0

    @property
    def overall_error(self) -> Float[np.ndarray, " trials"]:
        """Root-mean-square velocity error over all joints, trial by trial."""
        mean: np.ndarray = np.sqrt(np.mean(self.velocity_error**2, axis=1))
        return mean

    @property
    def overall_floor(self) -> float:
        """Root-mean-square repeatability over all joints."""
        return float(np.sqrt(np.mean(self.floor**2)))

    @property
    def improvement(self) -> float:
        """First error over best error."""
        errors = self.overall_error
        return float(errors[0] / max(errors.min(), np.finfo(float).tiny))

    def with_trial(
        self, velocity_error: np.ndarray, position_error: np.ndarray
    ) -> Learned:
        """Add a trial to the record."""
        return replace(
            self,
            velocity_error=np.vstack([self.velocity_error, velocity_error]),
            position_error=np.vstack([self.position_error, position_error]),
        )


def save_learned(learned: Learned, path: str | Path) -> None:
    """Write to an .npz file, all at once or not at all."""
    target = Path(path)
    fields = {
        "command": learned.command,
        "next_command": learned.next_command,
        "period": np.array(learned.period),
        "velocity_error": learned.velocity_error,
        "position_error": learned.position_error,
        "floor": learned.floor,
        "ending": np.array(learned.ending),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **fields)  # type: ignore[arg-type]


def load_learned(path: str | Path) -> Learned:
    """Read what `save_learned` wrote.

    Raises:
        ArgumentError: If the file is something else or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
        return Learned(
            command=found["command"],
            next_command=found["next_command"],
            period=float(found["period"]),
            velocity_error=found["velocity_error"],
            position_error=found["position_error"],
            floor=found["floor"],
            ending=str(found["ending"]),  # type: ignore[arg-type]
        )
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ArgumentError(
            f"{path} does not hold a learned command ({error}). Delete it, or name "
            "another file."
        ) from error
