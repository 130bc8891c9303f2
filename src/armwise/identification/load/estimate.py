"""What was found of a load, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters
from armwise.arms.inertia import inertial_transform
from armwise.identification.load.rigidity import Rigidity
from armwise.identification.load.spectrum import NoiseModel
from armwise.identification.load.uncertainty import (
    LoadStd,
    Principal,
    axes_statement,
    principal_of,
    standard_deviations,
)

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Explanation:
    """What was measured and what the load explains of it, row by row.

    Attributes:
        time: In [s].
        channels: Names of the columns.
        measured: Wrench or torque, known bodies taken off.
        predicted: What the estimate says, bias included.
    """

    time: Float[np.ndarray, " rows"]
    channels: tuple[str, ...]
    measured: Float[np.ndarray, "rows channels"]
    predicted: Float[np.ndarray, "rows channels"]

    @property
    def rmse(self) -> Float[np.ndarray, " channels"]:
        """Root-mean-square of what is left, in the channels' units."""
        left = self.measured - self.predicted
        return np.sqrt(np.mean(left**2, axis=0))


@dataclass(frozen=True, eq=False)
class LoadEstimate:
    """A load, in the axes of the frame it is held at, with its uncertainty.

    Attributes:
        frame: Name of that frame.
        parameters: The ten numbers about the frame's origin; NaN where the data say
            nothing.
        covariance: Theirs; NaN likewise.
        degrees_of_freedom: Behind each standard deviation, for Student's t.
        channels: What was measured.
        bias, bias_std: Zero of every channel, segment by segment.
        noise: Spectrum of the noise; None where none was fitted.
        condition_number: Of the weighted regressor, columns scaled to one.
        rigidity: Whether the residuals look like those of a rigid load.
        explanation: Measured and predicted, for a report.
        pose_offset: Rotation vector [rad], then translation [m] by which the sensor is
            off from the named frame, when that was asked for.
        pose_offset_std: Its standard deviation.
        notes: What the user should know.
    """

    frame: str
    parameters: InertialParameters
    covariance: Float[np.ndarray, "10 10"]
    degrees_of_freedom: Float[np.ndarray, " 10"]
    channels: tuple[str, ...] = ()
    bias: Float[np.ndarray, "segments channels"] | None = None
    bias_std: Float[np.ndarray, "segments channels"] | None = None
    noise: NoiseModel | None = None
    condition_number: float = np.nan
    rigidity: Rigidity | None = None
    explanation: Explanation | None = None
    pose_offset: Float[np.ndarray, " _"] | None = None
    pose_offset_std: Float[np.ndarray, " _"] | None = None
    notes: tuple[str, ...] = ()

    @property
    def mass(self) -> float:
        """Mass in [kg]."""
        return self.parameters.mass

    @property
    def center_of_mass(self) -> Float[np.ndarray, " 3"]:
        """Centre of mass in the frame in [m]."""
        return self.parameters.center_of_mass

    @property
    def central_inertia(self) -> Float[np.ndarray, "3 3"]:
        """Inertia about the centre of mass, in the frame's axes, in [kg m²]."""
        return self.parameters.central_inertia

    @cached_property
    def principal(self) -> Principal:
        """Principal moments and axes."""
        return principal_of(self.parameters)

    @cached_property
    def std(self) -> LoadStd:
        """Standard deviations of all of it."""
        return standard_deviations(self.parameters, self.covariance)

    @property
    def is_complete(self) -> bool:
        """Whether all ten parameters were determined."""
        return bool(np.all(np.isfinite(self.parameters.vector)))

    @property
    def is_physical(self) -> bool:
        """Whether some body can have these numbers."""
        return self.is_complete and self.parameters.is_physical()

    def interval(self, confidence: float = 0.95) -> Float[np.ndarray, "10 2"]:
        """Lower and upper ends of what each parameter may be, at some confidence."""
        from scipy.stats import t

        reach = t.ppf(0.5 + 0.5 * confidence, self.degrees_of_freedom)
        half = reach * self.std.parameters
        return self.parameters.vector[:, None] + half[:, None] * np.array([-1.0, 1.0])

    def in_frame(self, T: Float[np.ndarray, "4 4"], name: str) -> LoadEstimate:
        """Express the same load in another frame: T maps this frame to that one."""
        X = inertial_transform(T)
        covariance = X @ self.covariance @ X.T
        moved = self.parameters.transformed(T)
        freedom = np.full(10, np.nanmin(self.degrees_of_freedom))
        return replace(
            self,
            frame=name,
            parameters=moved,
            covariance=covariance,
            degrees_of_freedom=freedom,
        )

    def statement(self) -> str:
        """Say in plain words what is held and what is not known."""
        std, c = self.std, self.center_of_mass
        lines = [
            f"mass {self.mass:.4f} ± {std.mass:.4f} kg",
            "centre of mass "
            + ", ".join(
                f"{a * 1e3:.1f} ± {s * 1e3:.1f}"
                for a, s in zip(c, std.center_of_mass, strict=True)
            )
            + f" mm in {self.frame}",
        ]
        if self.is_complete:
            moments = ", ".join(
                f"{a:.3g} ± {s:.2g}"
                for a, s in zip(
                    self.principal.moments, std.principal_moments, strict=True
                )
            )
            lines.append(f"principal moments {moments} kg m²")
            if defect := self.parameters.defect():
                lines.append(f"No body has exactly these numbers: {defect}.")
        lines.append(axes_statement(std.principal_moments, std.principal_axes))
        if self.rigidity is not None:
            lines.append(self.rigidity.statement)
        return "\n".join([*lines, *self.notes])
