"""Load estimate: ten parameters, their uncertainty, and the nearest physical body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.arms import InertialParameters, inertial_transform
from armwise.errors import ArgumentError, EstimateWarning, NotConverged

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.loads.generalized_least_squares import LoadSolution
    from armwise.loads.kinds import LoadKind
    from armwise.loads.noise_spectrum import NoiseModel, RegressionRows
    from armwise.loads.rigidity import Rigidity
    from armwise.loads.wrist_log import Accelerometer, Contact


SCALE = np.array([1.0, 0.1, 0.1, 0.1, *[0.01] * 6])
"""Typical sizes of a load's parameters, a kilogram 0.1 m away, for numerical steps and
conditioning."""

WELL_DETERMINED = np.deg2rad(15.0)
"""Standard deviation [rad] below which a principal axis is reported: two of them, 30°,
still leave it nearer to itself than to either other axis."""

_SEPARATE_MOMENTS = 4.0
"""Difference of two principal moments, in standard deviations, from which on they count
as different. Eigenvalues repel: noise pushes even equal ones apart by one or two, so
that the usual two or three would be no evidence."""

_LEAST_EIGENVALUE = 1e-6
"""Smallest eigenvalue of the scaled pseudo-inertia, as a fraction of its trace: inside
the set of bodies by more than the solver's tolerance (1e-8), and by nothing that a
scale would show."""


@dataclass(frozen=True, eq=False)
class LoadPrediction:
    """Measured wrench or torque, and what the estimate predicts, row by row.

    Attributes:
        time: In [s].
        channels: Names of the columns.
        measured: Wrench or torque, less that of known bodies.
        predicted: By the estimate, bias included.
    """

    time: Float[np.ndarray, " rows"]
    channels: tuple[str, ...]
    measured: Float[np.ndarray, "rows channels"]
    predicted: Float[np.ndarray, "rows channels"]

    @property
    def rmse(self) -> Float[np.ndarray, " channels"]:
        """Root-mean-square residual, in the channels' units."""
        residual = self.measured - self.predicted
        return np.sqrt(np.mean(residual**2, axis=0))


@dataclass(frozen=True, eq=False)
class LoadEstimate:
    """A load, in the axes of the frame it is held at, with its uncertainty.

    Attributes:
        frame: Name of that frame.
        parameters: The ten parameters about the frame's origin; NaN where the data do
            not depend on one.
        covariance: Theirs; NaN likewise.
        degrees_of_freedom: Of each standard deviation, for Student's t.
        channels: Names of the measured channels.
        bias, bias_std: Zero of every channel, segment by segment.
        noise: Spectrum of the noise; None where none was fitted.
        condition_number: Of the weighted regressor, columns scaled to one.
        rigidity: Whether the residuals look like those of a rigid load.
        prediction: Measured and predicted, for a report.
        pose_offset: Rotation vector [rad], then translation [m] by which the sensor is
            off from the named frame, where it was estimated.
        pose_offset_std: Its standard deviation.
        warnings: What looks wrong with the data or the result, each with a code.
        accelerometer: How it was mounted and how late, of a log without joints.
        contact: A force that is none of the load's, of a log without joints.
        kind: Whether it is rigid and, if not, what moves; None where that was not
            looked for.
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
    prediction: LoadPrediction | None = None
    pose_offset: Float[np.ndarray, " _"] | None = None
    pose_offset_std: Float[np.ndarray, " _"] | None = None
    warnings: tuple[EstimateWarning, ...] = ()
    accelerometer: Accelerometer | None = None
    contact: Contact | None = None
    kind: LoadKind | None = None

    def __repr__(self) -> str:
        """One line: mass and centre, with their standard deviations."""
        mass, centre = self.mass, 1e3 * self.center_of_mass
        x, y, z = centre
        return (
            f"<LoadEstimate at {self.frame}: {mass:.4g} ± {self.std.mass:.2g} kg, "
            f"centre {x:.4g} {y:.4g} {z:.4g} mm, {len(self.warnings)} warnings>"
        )

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
        """Standard deviations of everything above."""
        return standard_deviations(self.parameters, self.covariance)

    @property
    def is_complete(self) -> bool:
        """Whether all ten parameters were determined."""
        return bool(np.all(np.isfinite(self.parameters.vector)))

    @property
    def is_physical(self) -> bool:
        """Whether the parameters are complete and physically realisable."""
        return self.is_complete and self.parameters.is_physical()

    def interval(self, confidence: float = 0.95) -> Float[np.ndarray, "10 2"]:
        """Confidence interval of each parameter, lower and upper end (Student's t)."""
        from scipy.stats import t

        # Not the normal's quantile: the noise was estimated from the same rows.
        reach = t.ppf(0.5 + 0.5 * confidence, self.degrees_of_freedom)
        half = reach * self.std.parameters
        return self.parameters.vector[:, None] + half[:, None] * np.array([-1.0, 1.0])

    def in_frame(self, T: Float[np.ndarray, "4 4"], name: str) -> LoadEstimate:
        """Express the same load in another frame: T maps this frame to that one."""
        X = inertial_transform(T)
        covariance = X @ self.covariance @ X.T
        moved = self.parameters.transformed(T)
        # Parameters mix, and so do their degrees of freedom: the fewest are safe.
        freedom = np.full(10, np.nanmin(self.degrees_of_freedom))
        return replace(
            self,
            frame=name,
            parameters=moved,
            covariance=covariance,
            degrees_of_freedom=freedom,
        )

    def statement(self) -> str:
        """Say in plain words what the load is and what was not determined."""
        std, c = self.std, self.center_of_mass
        lines = [
            f"mass {self.mass:.4f} ± {std.mass:.4f} kg (standard deviation, as below)",
            "centre of mass "
            + ", ".join(
                _figure(1e3 * a, 1e3 * s)
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
                lines.append(f"These numbers are not physically realisable: {defect}.")
        lines.append(axes_statement(std.principal_moments, std.principal_axes))
        if self.kind is not None and self.kind.kind != "rigid":
            lines.append(self.kind.statement)
        elif self.rigidity is not None:
            lines.append(self.rigidity.statement)
        if self.accelerometer is not None:
            meter = self.accelerometer
            late, spread = 1e3 * meter.lag, 1e3 * meter.lag_std
            lines.append(f"accelerometer {late:.1f} ± {spread:.1f} ms late")
            if np.ptp(meter.axis_lags) > 0.0:
                x, y, z = 1e3 * meter.axis_lags
                lines[-1] += (
                    f": its axes are read in turn, x {x:.1f}, y {y:.1f}, z {z:.1f} ms "
                    "before their stamp"
                )
        return "\n".join([*lines, *(warning.text for warning in self.warnings)])


def _figure(value: float, std: float) -> str:
    """A number and its standard deviation, with as many decimals as that has two of."""
    first = int(np.floor(np.log10(std))) if 0.0 < std < np.inf else 0
    decimals = min(max(1, 1 - first), 6)
    return f"{value:.{decimals}f} ± {std:.{decimals}f}"


def estimate_of(
    rows: RegressionRows,
    time: Float[np.ndarray, " rows"],
    solution: LoadSolution,
    frame: str,
    rigidity: Rigidity | None,
    warnings: tuple[EstimateWarning, ...] = (),
) -> LoadEstimate:
    """Return a regression's solution as an estimate, with what it predicts.

    Unknowns after the ten parameters (friction) count for the prediction only.
    """
    used = np.isfinite(solution.values)
    predicted = rows.regressor[:, :, used] @ solution.values[used]
    for part, offset in zip(rows.segments, solution.bias, strict=True):
        predicted[part] += offset
    return LoadEstimate(
        frame=frame,
        parameters=InertialParameters(solution.values[:10]),
        covariance=solution.covariance[:10, :10],
        degrees_of_freedom=solution.degrees_of_freedom[:10],
        channels=rows.channels,
        bias=solution.bias,
        bias_std=solution.bias_std,
        noise=solution.noise,
        condition_number=solution.condition_number,
        rigidity=rigidity,
        prediction=LoadPrediction(time, rows.channels, rows.target, predicted),
        warnings=warnings,
    )


# Uncertainty of mass, centre, inertia and principal axes, from that of the parameters.


class Principal(NamedTuple):
    """Principal moments [kg m²], ascending, and their axes as columns."""

    moments: Float[np.ndarray, " 3"]
    axes: Float[np.ndarray, "3 3"]


@dataclass(frozen=True, eq=False)
class LoadStd:
    """Standard deviations of every quantity of a load estimate.

    Attributes:
        parameters: Of the ten parameters in [kg], [kg m], [kg m²].
        mass: In [kg].
        center_of_mass: In [m].
        central_inertia: Entry by entry in [kg m²].
        principal_moments: In [kg m²].
        principal_axes: Angle in [rad] by which each axis may be off; infinite where
            two moments cannot be separated.
    """

    parameters: Float[np.ndarray, " 10"]
    mass: float
    center_of_mass: Float[np.ndarray, " 3"]
    central_inertia: Float[np.ndarray, "3 3"]
    principal_moments: Float[np.ndarray, " 3"]
    principal_axes: Float[np.ndarray, " 3"]


def standard_deviations(
    parameters: InertialParameters, covariance: Float[np.ndarray, "10 10"]
) -> LoadStd:
    """Propagate the covariance of the ten parameters to everything derived."""
    own = np.sqrt(np.diag(covariance))
    center = _spread(parameters, covariance, lambda p: p.center_of_mass)
    inertia = _spread(parameters, covariance, lambda p: p.central_inertia.ravel())
    moments, axes = principal_std(parameters, covariance)
    return LoadStd(own, float(own[0]), center, inertia.reshape(3, 3), moments, axes)


def principal_of(parameters: InertialParameters) -> Principal:
    """Principal moments and axes; NaN when the inertia was not determined."""
    if not np.all(np.isfinite(parameters.vector)):
        return Principal(np.full(3, np.nan), np.full((3, 3), np.nan))
    return Principal(*parameters.principal)


def principal_std(
    parameters: InertialParameters, covariance: Float[np.ndarray, "10 10"]
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"]]:
    """Standard deviations of the principal moments, and of their axes' directions.

    To first order a moment changes by eᵢᵀ δI eᵢ, and axis i turns towards axis j by
    eᵢᵀ δI eⱼ / (Iᵢ − Iⱼ): equal moments leave the axes undetermined (`aah1986` §4.1).
    """
    moments, axes = principal_of(parameters)
    if not np.all(np.isfinite(moments)):
        return np.full(3, np.nan), np.full(3, np.nan)

    def turned(p: InertialParameters) -> np.ndarray:
        inner: np.ndarray = axes.T @ p.central_inertia @ axes
        return inner.ravel()

    spread = _spread(parameters, covariance, turned).reshape(3, 3)
    gaps = np.abs(moments[:, None] - moments[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        # To first order; equal moments divide by zero, and are infinite below anyway.
        turns = np.where(np.eye(3, dtype=bool), 0.0, spread / gaps)
    gap_std = np.hypot.outer(np.diag(spread), np.diag(spread))
    equal = (gaps < _SEPARATE_MOMENTS * gap_std) & ~np.eye(3, dtype=bool)
    turns = np.where(equal, np.inf, turns)
    return np.diag(spread), np.sqrt(np.sum(turns**2, axis=1))


def axes_statement(moments_std: np.ndarray, axes_std: np.ndarray) -> str:
    """Say in words how well the principal axes are known."""
    if not np.all(np.isfinite(moments_std)):
        return "The inertia was not determined, so there are no principal axes."
    is_clear = axes_std < WELL_DETERMINED
    if is_clear.all():
        return f"The principal axes are known to {np.rad2deg(axes_std.max()):.1f}°."
    if not is_clear.any():
        return (
            "The principal axes are ill-determined: the principal moments are equal "
            "within their uncertainty."
        )
    first = int(np.argmax(is_clear))
    return (
        f"Only the axis of principal moment {first + 1} is known, to "
        f"{np.rad2deg(axes_std[first]):.1f}°; the other two are ill-determined, their "
        "moments are equal within their uncertainty."
    )


def _spread(
    parameters: InertialParameters,
    covariance: np.ndarray,
    function: Callable[[InertialParameters], np.ndarray],
) -> np.ndarray:
    """Standard deviations of a function of the ten parameters, to first order.

    Parameters that were not determined make what depends on them NaN, nothing else.
    """
    finite = np.isfinite(np.diag(covariance))
    J = parameter_jacobian(function, np.where(finite, parameters.vector, 0.0))
    inner = np.where(np.outer(finite, finite), covariance, 0.0)
    variance = np.einsum("ij,jk,ik->i", J, inner, J)
    # Derivatives by central differences are zero to rounding where there is none.
    undetermined = np.any(np.abs(J[:, ~finite]) > 1e-12, axis=1)
    return np.where(undetermined, np.nan, np.sqrt(np.maximum(variance, 0.0)))


def parameter_jacobian(
    function: Callable[[InertialParameters], np.ndarray], vector: np.ndarray
) -> Float[np.ndarray, "_ 10"]:
    """Derivatives of a function of the ten parameters, by central differences.

    A step of 1e-5 of the typical size balances truncation (1e-10) and rounding (1e-11).
    """
    columns = []
    for step in np.diag(1e-5 * SCALE):
        ahead = function(InertialParameters(vector + step))
        behind = function(InertialParameters(vector - step))
        columns.append((ahead - behind) / (2.0 * step.sum()))
    return np.stack(columns, axis=1)


# The nearest physical body.


def make_physical(estimate: LoadEstimate) -> LoadEstimate:
    """Move an estimate to the best-fitting load that is physically realisable.

    Raises:
        ArgumentError: If not all ten parameters were determined.
    """
    if not estimate.is_complete:
        raise ArgumentError(
            "A physically consistent load needs all ten parameters; this method does "
            "not find the inertia."
        )
    if estimate.parameters.is_physical():
        return estimate
    defect = estimate.parameters.defect()
    information = np.linalg.inv(estimate.covariance)
    nearest = nearest_physical(estimate.parameters.vector, information)
    moved = EstimateWarning(
        "moved-to-physical",
        f"The best fit was moved to the nearest physical body: {defect}.",
    )
    warnings = (*estimate.warnings, moved)
    return replace(estimate, parameters=nearest, warnings=warnings)


def nearest_physical(
    values: Float[np.ndarray, " 10"], information: Float[np.ndarray, "10 10"]
) -> InertialParameters:
    """Return the physical body that fits the data best.

    Minimises (φ − φ̂)ᵀ Λ (φ − φ̂) with the pseudo-inertia of φ positive definite: a
    small semidefinite program (Wensing, Kim and Slotine 2018), solved by Clarabel.

    Args:
        values: The unconstrained estimate φ̂.
        information: Λ, its inverse covariance.
    """
    weights = information * np.outer(SCALE, SCALE)
    # The minimum does not depend on the scale; the solver's tolerances do.
    weights = weights / float(np.max(np.diag(weights)))
    cone, shift = _cone(values / SCALE)
    scaled = _solve(weights, -weights @ (values / SCALE), cone, shift)
    return InertialParameters(scaled * SCALE)


def _cone(start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the scaled pseudo-inertia's upper triangle, and its least eigenvalue."""
    units = [InertialParameters(unit).pseudo_inertia for unit in np.eye(10) * SCALE]
    lengths = np.array([0.1, 0.1, 0.1, 1.0])  # of SCALE: entries of size one
    pseudo = np.stack(units) / np.outer(lengths, lengths)
    rows, columns = np.triu_indices(4)
    order = np.lexsort((rows, columns))
    rows, columns = rows[order], columns[order]
    # Clarabel's triangle of a matrix: off-diagonal entries count twice in its norm.
    gain = np.where(rows == columns, 1.0, np.sqrt(2.0))
    trace = float(np.trace(np.tensordot(start, pseudo, axes=1)))
    shift = _LEAST_EIGENVALUE * max(trace, 1e-6) * np.eye(4)[rows, columns]
    return pseudo[:, rows, columns] * gain, shift


def _solve(
    weights: np.ndarray, slope: np.ndarray, cone: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    import clarabel
    from scipy.sparse import csc_matrix

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        csc_matrix(np.triu(weights)),
        slope,
        csc_matrix(-cone.T),
        -shift,
        [clarabel.PSDTriangleConeT(4)],
        settings,
    )
    answer = solver.solve()
    # "AlmostSolved" meets Clarabel's reduced tolerances, still far below any noise.
    if "Solved" not in str(answer.status):
        raise NotConverged(
            f"No physical load was found near the estimate ({answer.status}). Look at "
            "the data, or identify without consistent=True (--consistent)."
        )
    return np.array(answer.x)
