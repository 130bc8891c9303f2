"""Playback of a motion: joint positions, and torques measured and predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.identification import Estimate, Tally, predict_torque
from armwise.recordings import Samples
from armwise.regression import Columns, FrictionTerm
from armwise.report import continued_time, envelope_rows
from armwise.view.forms import MODELS, Color

if TYPE_CHECKING:
    from jaxtyping import Float


DESCRIBED = "described"
"""Name of the parameters that came with the description."""


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """One set of parameters to compare with another.

    Attributes:
        name: Its name in legends.
        color: Its colour in plots and ellipsoids.
        arm: The arm with these parameters.
        friction: Further friction terms, if it has any.
        parameters: The arm's parameters, friction terms last.
    """

    name: str
    color: Color
    arm: Arm
    friction: tuple[FrictionTerm, ...]
    parameters: np.ndarray

    def predict(self, samples: Samples) -> np.ndarray:
        """Return the torque of a motion in [N m], friction as the filter shows it."""
        if not samples.has_torque:  # the prediction has no use for it
            samples = replace(samples, tau=np.zeros(samples.q.shape))
        columns = Columns(self.arm, self.friction)
        return predict_torque(columns, self.parameters, samples)


def models_of(arm: Arm, estimates: Mapping[str, Estimate]) -> tuple[ComparedModel, ...]:
    """Select the one or two sets of parameters to show.

    Two estimates are compared with each other, one with the description, unless that
    has no mass at all.

    Args:
        arm: The description.
        estimates: Estimates by name, two at the most.
    """
    if len(estimates) > len(MODELS):
        raise ArgumentError(
            f"{len(estimates)} estimates are too many for one view: compare "
            f"{len(MODELS)} at a time."
        )
    sets: list[tuple[str, Arm, tuple[FrictionTerm, ...], np.ndarray]] = [
        (name, estimate.arm, estimate.columns.friction, estimate.all_parameters)
        for name, estimate in estimates.items()
    ]
    if len(sets) < len(MODELS) and any(link.inertia.has_mass for link in arm.links):
        sets.insert(0, (DESCRIBED, arm, (), arm.parameters))
    return tuple(
        ComparedModel(name, color, own, friction, parameters)
        for color, (name, own, friction, parameters) in zip(MODELS, sets, strict=False)
    )


def distinct_names(paths: Sequence[Path]) -> dict[str, Path]:
    """Name files by their stems, or by as much of their paths as makes them differ."""
    names: dict[str, Path] = {}
    for depth in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        names = {str(Path(*x.parts[-depth:]).with_suffix("")): x for x in paths}
        if len(names) == len(paths):
            break
    return names


@dataclass(frozen=True, eq=False)
class TorqueCurves:
    """Torques of one joint around a moment, thinned out to their envelope.

    Attributes:
        time: In [s], from the beginning of the motion.
        torque: In [N m] or [N]: the measured one first, if any, then each model's.
        past: The first of them up to the moment, and NaN after it.
    """

    time: Float[np.ndarray, " points"]
    torque: Float[np.ndarray, "curves points"]
    past: Float[np.ndarray, " points"]


@dataclass(frozen=True, eq=False)
class MotionPlayback:
    """A motion, and its torque as measured and as models predict it.

    Attributes:
        time: In [s], from zero; runs follow one another.
        q: Joint positions in [rad] or [m].
        measured: Torque in [N m] or [N], if it was measured.
        predicted: Torque by each model.
        relative_error: ‖τ − τ̂‖ / ‖τ‖ per model and joint, if torque was measured.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    measured: Float[np.ndarray, "samples dof"] | None = None
    predicted: Float[np.ndarray, "models samples dof"] | None = None
    relative_error: Float[np.ndarray, "models dof"] | None = None

    @classmethod
    def from_samples(
        cls, samples: Samples, models: Sequence[ComparedModel]
    ) -> MotionPlayback:
        """Predict the torque of samples with every model, and its relative error."""
        time = continued_time(samples)
        measured = samples.tau if samples.has_torque else None
        predicted = np.array([model.predict(samples) for model in models])
        errors = None
        if measured is not None and len(models):
            errors = np.array([_relative_error(measured, one) for one in predicted])
        shown = predicted if len(models) else None
        return cls(time - time[0], samples.q, measured, shown, errors)

    @property
    def duration(self) -> float:
        """In [s]."""
        return float(self.time[-1])

    @property
    def has_torque(self) -> bool:
        """Whether there is any torque to plot."""
        return self.measured is not None or self.predicted is not None

    def row_at(self, t: float) -> int:
        """Return the sample nearest before a time in [s]."""
        row = int(np.searchsorted(self.time, t, side="right")) - 1
        return min(max(row, 0), len(self.time) - 1)

    def curves(
        self, joint: int, t: float, span: float, points: int = 400
    ) -> TorqueCurves:
        """Return the torques of a joint within `span` [s] around a time [s]."""
        # Centred, but at either end of the motion the window stays inside it.
        start = min(max(t - span / 2, 0.0), max(self.duration - span, 0.0))
        first, last = self.row_at(start), self.row_at(start + span) + 1
        shown = slice(first, max(last, first + 2))  # a line needs two points
        torque = self._torque(joint)[:, shown]
        # Rows of the first curve's envelope serve all: plots share their time axis.
        rows = envelope_rows(torque[0], points)
        time = self.time[shown][rows]
        past = np.where(time <= max(t, time[0]), torque[0, rows], np.nan)
        return TorqueCurves(time, torque[:, rows], past)

    def _torque(self, joint: int) -> Float[np.ndarray, "curves samples"]:
        """All torques of a joint, the measured one first."""
        measured = [] if self.measured is None else [self.measured[None, :, joint]]
        predicted = [] if self.predicted is None else [self.predicted[..., joint]]
        return np.concatenate([*measured, *predicted])


def _relative_error(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    tally = Tally(measured.shape[1])
    tally.add(measured, measured - predicted)
    return tally.result().relative_error
