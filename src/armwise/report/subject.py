"""What is reported on: an estimate, with the data behind it where they are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.identification import Estimate, Identification, Validation
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Subject:
    """An estimate and what it was made of.

    Attributes:
        estimate: The estimate.
        fitted: Samples of the fit; None: not given.
        validated: Samples left out of it; None: not given.
        validation: Errors on those; None: not evaluated.
        warnings: What looks wrong, in words.
    """

    estimate: Estimate
    fitted: Samples | None
    validated: Samples | None
    validation: Validation | None
    warnings: tuple[str, ...]

    @classmethod
    def of(
        cls,
        result: Identification | Estimate,
        fitted: Samples | None = None,
        validated: Samples | None = None,
    ) -> Subject:
        """Take an estimate with the samples it holds, or with others.

        Args:
            result: An estimate, or what the deprecated `identify_recordings` returned.
            fitted: Samples of the fit, for an estimate without them.
            validated: Samples left out of it, to validate on.
        """
        estimate = result.estimate if isinstance(result, Identification) else result
        if not isinstance(estimate, Estimate):
            raise ArgumentError(
                f"A report is about an Estimate, not {type(estimate).__name__}."
            )
        validation = estimate.validation
        if fitted is None and estimate.samples:
            fitted = Samples.concatenate(estimate.samples)
        if validated is not None:
            validation = estimate.validate(validated)
        elif estimate.validation_samples:
            validated = Samples.concatenate(estimate.validation_samples)
        texts = tuple(warning.text for warning in estimate.warnings)
        return cls(estimate, fitted, validated, validation, texts)

    @property
    def arm(self) -> Arm:
        """The arm as it was described."""
        return self.estimate.prior_arm

    @property
    def torque_units(self) -> tuple[str, ...]:
        """N m of joints that turn, N of those that slide."""
        joints = [self.arm.joints[i] for i in self.arm.coordinates]
        return tuple("N m" if joint.is_revolute else "N" for joint in joints)

    @property
    def base_parameter_count(self) -> int:
        """Base parameters; friction terms beyond the arm's own are not counted."""
        return self.estimate.base.count - len(self.estimate.columns.friction)

    @cached_property
    def fit_prediction(self) -> Float[np.ndarray, "samples dof"] | None:
        """Torques the estimate predicts for the samples of the fit."""
        return None if self.fitted is None else self.estimate.predict(self.fitted)

    @cached_property
    def validation_prediction(self) -> Float[np.ndarray, "samples dof"] | None:
        """Torques it predicts for the samples left out."""
        return None if self.validated is None else self.estimate.predict(self.validated)
