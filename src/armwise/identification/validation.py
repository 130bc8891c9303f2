"""How well an estimate predicts torques it was not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Validation:
    """Errors of predicted torque, per joint.

    Attributes:
        relative_error: ‖τ − τ̂‖ / ‖τ‖, as a fraction.
        rmse: Root mean square error in [N m].
        r2: Share of the torque's variance that is explained.
        whiteness: Correlation of the residual from sample to sample: 0 is noise, 1 is
            something the model does not know.
        samples: How many samples were predicted.
    """

    relative_error: Float[np.ndarray, " dof"]
    rmse: Float[np.ndarray, " dof"]
    r2: Float[np.ndarray, " dof"]
    whiteness: Float[np.ndarray, " dof"]
    samples: int

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers, for JSON."""
        return {
            "relative_error": self.relative_error.tolist(),
            "rmse": self.rmse.tolist(),
            "r2": self.r2.tolist(),
            "whiteness": self.whiteness.tolist(),
            "samples": self.samples,
        }


def compare_torques(
    measured: Sequence[np.ndarray], predicted: Sequence[np.ndarray]
) -> Validation:
    """Compare measured and predicted torques, run by run."""
    tau = np.concatenate(list(measured))
    error = tau - np.concatenate(list(predicted))
    size = np.linalg.norm(tau, axis=0)
    spread = np.sum((tau - tau.mean(axis=0)) ** 2, axis=0)
    squares = np.sum(error**2, axis=0)
    lagged = np.sum(error[1:] * error[:-1], axis=0)
    return Validation(
        relative_error=np.sqrt(squares) / np.where(size > 0, size, 1.0),
        rmse=np.sqrt(squares / len(tau)),
        r2=1.0 - squares / np.where(spread > 0, spread, 1.0),
        whiteness=lagged / np.where(squares > 0, squares, 1.0),
        samples=len(tau),
    )
