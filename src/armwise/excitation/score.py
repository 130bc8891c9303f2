"""Information of motions about the base parameters, its gradients, and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics, base_parameters, grouped_to_user
from armwise.errors import ArgumentError
from armwise.excitation.bounds import Bounds, bounds_of
from armwise.motions import (
    Fourier,
    Motion,
    MotionSample,
    joint_vector,
    require_positive,
)
from armwise.programs import (
    Backend,
    Kernel,
    Number,
    Program,
    Scalar,
    gradient,
    replay,
    sqrt,
    trace,
)

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.programs import Memory

# Judgement: one independent sample every 10 ms. It only weighs a motion against a
# prior; without one the best motion does not depend on it.
RATE_HZ = 100.0
"""Samples a second that count as independent, unless said otherwise."""

# Judgement: inverting with less would leave fewer than half the digits of a double.
_SINGULAR = 1e-9
"""Eigenvalue of a correlation matrix below which it cannot be inverted."""
# Judgement: standard deviations stay, correlations lose a tenth, and the smallest
# eigenvalue becomes at least 0.1.
_SHRINKAGE = 0.1
"""Fraction by which correlations are shrunk towards zero in that case."""


@dataclass(frozen=True, eq=False)
class MotionScore:
    """Information of a motion about the base parameters.

    Attributes:
        information: YᵀΣ⁻¹Y of the base parameters, summed over the samples.
        log_det: log det of the information, what was known before added, per sample,
            each parameter in units in which random motion at the limits has 1,
            and 1e-6 added to the diagonal. Only differences between motions of the
            same arm mean something: +1 is 1 nat more.
    """

    information: Float[np.ndarray, "count count"]
    log_det: float

    @cached_property
    def condition_number(self) -> float:
        """Largest over smallest singular value of the base regressor.

        Its columns are scaled to length one.
        """
        return condition_number(self.information)


def score_motion(
    arm: Arm,
    motion: Motion,
    *,
    prior: ArrayLike | None = None,
    torque_std: ArrayLike | None = None,
    rate_hz: float = RATE_HZ,
    backend: Backend = "auto",
) -> MotionScore:
    """Score any motion as `design_excitation` scores its own.

    Args:
        arm: The arm that makes it.
        motion: The motion.
        prior: Information about the base parameters from before.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N]; 1
            if not given.
        rate_hz: Independent samples a second.
        backend: What runs the programs.

    Raises:
        ArgumentError: If the motion is not one of this arm, or `prior` does not fit.
    """
    if motion.dof != arm.dof:
        raise ArgumentError(
            f"The motion moves {motion.dof} joints; {arm.name} has {arm.dof}."
        )
    noise = noise_of(arm, torque_std)
    model = InformationModel(arm, bounds_of(arm), noise, backend)
    return score(model, motion, prior_matrix(model, prior), rate_hz)


def score(
    model: InformationModel,
    motion: Motion,
    prior: Float[np.ndarray, "count count"],
    rate_hz: float,
) -> MotionScore:
    """Score a motion with a model at hand."""
    count = sample_count(motion.duration, rate_hz)
    # Midpoints: the ends, at rest, would count half too much.
    times = (np.arange(count) + 0.5) * (motion.duration / count)
    return score_information(model, model.of_states(motion.sample(times)), prior, count)


def score_information(
    model: InformationModel,
    scaled: Float[np.ndarray, "count count"],
    prior: Float[np.ndarray, "count count"],
    count: int,
) -> MotionScore:
    """Score the mean information of so many samples."""
    before = prior * np.outer(model.scale, model.scale) / count
    information = count * scaled / np.outer(model.scale, model.scale)
    log_det = regularised_log_det(scaled + before)
    return MotionScore(information, log_det)


def sample_count(duration: float, rate_hz: float) -> int:
    """Samples in a motion: at least one."""
    return max(1, round(duration * require_positive(rate_hz, "rate_hz")))


def regularised_log_det(information: np.ndarray) -> float:
    """Log det of scaled information, a little of everything taken as known."""
    regular = information + RIDGE * np.eye(len(information))
    return float(np.linalg.slogdet(regular)[1])


def condition_number(information: np.ndarray) -> float:
    """Condition of the regressor behind an information, columns of length one."""
    sizes = np.sqrt(np.diag(information))
    if not np.all(sizes > 0.0):
        return float("inf")
    values = np.linalg.eigvalsh(information / np.outer(sizes, sizes))
    # Eigenvalues of a Gram matrix below this are rounding (as in matrix_rank).
    noise = values[-1] * len(values) * np.finfo(float).eps
    return float(np.sqrt(values[-1] / values[0])) if values[0] > noise else float("inf")


def noise_of(arm: Arm, torque_std: ArrayLike | None) -> Float[np.ndarray, " dof"]:
    """Return the noise of each joint's torque, or say what is wrong with it."""
    if torque_std is None:
        return np.ones(arm.dof)
    noise = joint_vector(torque_std, "torque_std", arm.dof)
    if not np.all(noise > 0.0):
        name = arm.coordinate_names[int(np.argmin(noise))]
        raise ArgumentError(f"torque_std must be positive, also for joint {name!r}.")
    return np.asarray(noise)


def information_from_covariance(
    covariance: ArrayLike,
) -> Float[np.ndarray, "count count"]:
    """Turn the covariance of base parameters into what a design takes as known.

    Args:
        covariance: Such as `estimate.base_covariance`; infinite on the diagonal where
            nothing is known.
    """
    matrix = np.asarray(covariance, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"A covariance is square, not of shape {matrix.shape}.")
    finite = np.flatnonzero(np.isfinite(np.diag(matrix)))
    information = np.zeros_like(matrix)
    if finite.size:
        part = matrix[np.ix_(finite, finite)]
        sizes = np.sqrt(np.diag(part))
        if not np.all(sizes > 0.0):
            raise ArgumentError("A covariance needs variances above zero.")
        unit = np.outer(sizes, sizes)
        inverse = np.linalg.inv(_invertible(part / unit))
        # Inverted as a correlation matrix: variances in mixed units span many decades.
        information[np.ix_(finite, finite)] = inverse / unit
    return 0.5 * (information + information.T)


def _invertible(
    correlation: Float[np.ndarray, "count count"],
) -> Float[np.ndarray, "count count"]:
    """Shrink correlations towards zero where a log had too few stretches.

    The scatter of forty stretches has rank forty: what it leaves out is not known
    exactly, it is not known to be correlated.
    """
    if np.linalg.eigvalsh(correlation)[0] > _SINGULAR:
        return correlation
    return (1.0 - _SHRINKAGE) * correlation + _SHRINKAGE * np.eye(len(correlation))


def prior_matrix(
    model: InformationModel, prior: ArrayLike | None
) -> Float[np.ndarray, "count count"]:
    """Return what is known before as a matrix, or say why it cannot be.

    Raises:
        ArgumentError: If it is not a positive semidefinite matrix of the right size.
    """
    count = model.base.count
    if prior is None:
        return np.zeros((count, count))
    matrix = np.asarray(prior, dtype=float)
    if matrix.shape != (count, count):
        raise ArgumentError(
            f"prior must be a {count}×{count} matrix, one row per base parameter, "
            f"not of shape {matrix.shape}. information_from_covariance makes one of "
            "an estimate's base_covariance."
        )
    if not np.all(np.isfinite(matrix)):
        raise ArgumentError("prior holds a number that is not finite.")
    scaled = matrix * np.outer(model.scale, model.scale)
    size = float(np.abs(scaled).max(initial=0.0))
    # In scaled parameters, where all entries are comparable.
    if not np.allclose(scaled, scaled.T, rtol=0.0, atol=1e-6 * size):
        raise ArgumentError("prior must be symmetric: it is an information matrix.")
    if np.linalg.eigvalsh(0.5 * (scaled + scaled.T))[0] < -1e-6 * size:
        raise ArgumentError(
            "prior must be positive semidefinite: information cannot be negative."
        )
    return 0.5 * (matrix + matrix.T)


# Many motions at once, on the CPU or on a GPU.

# 4e6 × 21 doubles (q, q̇, q̈ of seven joints) are 0.7 GB.
_TOGETHER = 4_000_000
"""Samples at a time: under a gigabyte on a GPU."""


def score_motions(
    arm: Arm,
    motions: Sequence[Motion],
    *,
    prior: ArrayLike | None = None,
    torque_std: ArrayLike | None = None,
    rate_hz: float = RATE_HZ,
    backend: Backend = "auto",
) -> tuple[MotionScore, ...]:
    """Score motions of one duration as `score_motion` scores one.

    Args:
        arm: The arm that makes them.
        motions: The motions.
        prior: Information about the base parameters from before.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N]; 1
            if not given.
        rate_hz: Independent samples a second.
        backend: What runs the programs; "cuda" sums on a GPU, a motion a block.

    Raises:
        ArgumentError: If a motion is not one of this arm, durations differ, or `prior`
            does not fit.
    """
    count = _common_count(arm, motions, rate_hz)
    on_gpu = backend == "cuda"
    model = InformationModel(
        arm, bounds_of(arm), noise_of(arm, torque_std), "auto" if on_gpu else backend
    )
    before = prior_matrix(model, prior)
    gather = _GpuInformation(model, count) if on_gpu else _Information(model, count)
    scores: list[MotionScore] = []
    chunk = max(1, _TOGETHER // count)
    for first in range(0, len(motions), chunk):
        information = gather(motions[first : first + chunk])
        scores += [score_information(model, one, before, count) for one in information]
    return tuple(scores)


def _common_count(arm: Arm, motions: Sequence[Motion], rate_hz: float) -> int:
    counts = {sample_count(motion.duration, rate_hz) for motion in motions}
    if len(counts) != 1:
        raise ArgumentError(
            f"{len(motions)} motions of {len(counts)} different lengths; score motions "
            "of one duration together."
        )
    for motion in motions:
        if motion.dof != arm.dof:
            raise ArgumentError(
                f"A motion moves {motion.dof} joints; {arm.name} has {arm.dof}."
            )
    return counts.pop()


class _Information:
    """Mean information of motions, one after another."""

    def __init__(self, model: InformationModel, count: int) -> None:
        self._model = model
        self._phase = (np.arange(count) + 0.5) / count

    def __call__(self, motions: Sequence[Motion]) -> np.ndarray:
        """Return the information of every motion, parameters scaled."""
        return np.stack([self._model.of_states(self._sample(m)) for m in motions])

    def _sample(self, motion: Motion) -> MotionSample:
        """Sample a motion in the middle of equal steps."""
        return motion.sample(self._phase * motion.duration)


class _GpuInformation(_Information):
    """The same on a GPU, a motion a block; Fourier series are summed there, too."""

    def __init__(self, model: InformationModel, count: int) -> None:
        from armwise.programs import GramSums, device

        super().__init__(model, count)
        widths = [len(row.columns) for row in model.rows]
        self._gram, self._device = GramSums(model.program, widths), device()

    def __call__(self, motions: Sequence[Motion]) -> np.ndarray:
        """Return the information of every motion, parameters scaled."""
        runs, length = len(motions), self._phase.size
        sums = self._gram.empty(runs)
        self._gram.add_runs(sums, self._states(motions), runs, length, length)
        products = [gram / length for gram in self._gram.matrices(sums, runs)]
        return self._model.collect(products)

    def _states(self, motions: Sequence[Motion]) -> Memory:
        """Bring (q, q̇, q̈) × samples × motions to the GPU, or make them there."""
        series = [motion for motion in motions if isinstance(motion, Fourier)]
        kinds = {(m.frequency, m.harmonics, m.periods) for m in series}
        if len(series) == len(motions) and len(kinds) == 1:
            return self._series(series)
        samples = [np.concatenate(self._sample(m), axis=1).T for m in motions]
        return self._device.upload(np.stack(samples, axis=2))

    def _series(self, motions: Sequence[Fourier]) -> Memory:
        """Multiply the coefficients of all motions by the samples of unit ones."""
        from armwise.programs import BandProduct

        terms, count = 1 + 2 * motions[0].harmonics, self._phase.size
        coefficients = np.stack(
            [np.column_stack([m.q0, m.sine, m.cosine]) for m in motions], axis=2
        )
        series, dof = self._device.upload(coefficients), motions[0].dof
        one = 8 * dof * count * len(motions)
        states = self._device.empty(3 * one)
        for k, basis in enumerate(self._sample(_unit_series(motions[0]))):
            product = BandProduct(np.zeros(count, dtype=int), basis, terms)
            product(series, dof, len(motions), states.part(k * one, one))
        self._device.wait()
        return states


def _unit_series(like: Fourier) -> Fourier:
    """A motion whose joints have one coefficient of 1 each: q0, sines, cosines."""
    unit = np.eye(1 + 2 * like.harmonics)
    sine, cosine = unit[:, 1 : 1 + like.harmonics], unit[:, 1 + like.harmonics :]
    return Fourier(unit[:, 0], sine, cosine, like.frequency, like.periods)


# Information of one motion, with gradients.

STATES = ("q", "qd", "qdd")

# Judgement: a thousandth of a column's typical root mean square, below which a
# parameter is not excited for practical purposes.
RIDGE = 1e-6
"""Regularisation, as a fraction of the information of random motion at the limits: it
keeps log det finite where a motion says nothing of a parameter."""


@dataclass(frozen=True)
class Row:
    """One joint's row of the regressor: where its entries are stored, their columns."""

    rows: slice
    columns: tuple[int, ...]


class InformationModel:
    """Information YᵀΣ⁻¹Y of motions about the base parameters of an arm.

    Args:
        arm: The arm.
        bounds: Its limits; they set the scale of each parameter.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N].
        backend: What runs the programs.
    """

    def __init__(
        self,
        arm: Arm,
        bounds: Bounds,
        torque_std: np.ndarray,
        backend: Backend = "auto",
    ) -> None:
        dynamics = Dynamics(arm, backend)
        self._exact = dynamics.kernel("grouped_regressor")
        soft = soften(self._exact.program)
        self._soft = Kernel(soft, backend)
        self._gradient = Kernel(gradient(soft, STATES), backend)
        # Friction reverses within 2 % of full speed: sharp, yet with a gradient.
        self._softness = np.array([0.02 * float(bounds.velocity.min())])
        self.rows = _row_layout(self._exact.program)
        self._weight = torque_std**-2.0
        self.base = base_parameters(arm)
        to_base = grouped_to_user(dynamics.mechanism)[:, self.base.indices]
        # Unit scales first: `_usual_size` measures with them what the scales must be.
        self.scale = np.ones(self.base.count)
        self._to_base = to_base
        self.scale = 1.0 / np.sqrt(_usual_size(self, bounds))
        self._to_base = to_base * self.scale

    def of_states(
        self, states: Sequence[np.ndarray]
    ) -> Float[np.ndarray, "count count"]:
        """Mean information of a sample, parameters scaled; friction as it is."""
        (columns,) = self._exact.columns(list(states))
        return self._collect(columns)

    @property
    def program(self) -> Program:
        """The traced regressor, whose rows' non-zeros are `rows`."""
        return self._exact.program

    def softened(
        self, states: Sequence[np.ndarray]
    ) -> tuple[Float[np.ndarray, "count count"], Float[np.ndarray, "entries samples"]]:
        """Mean information with rounded Coulomb friction, and the entries of Y."""
        (columns,) = self._soft.columns(list(states), [self._softness])
        return self._collect(columns), columns

    def slopes(
        self,
        states: Sequence[np.ndarray],
        columns: np.ndarray,
        weight: Float[np.ndarray, "count count"],
    ) -> list[Float[np.ndarray, "samples dof"]]:
        """Gradient of ⟨weight, softened information⟩ by q, q̇, q̈ at every sample.

        d⟨G, A⟩ = 2 Σ ⟨Y G, dY⟩ for a symmetric G.
        """
        inner = self._to_base @ weight @ self._to_base.T
        weighted = np.empty((columns.shape[1], columns.shape[0]))
        per_sample = 2.0 / columns.shape[1]
        for row, precision in zip(self.rows, self._weight, strict=True):
            part = inner[np.ix_(row.columns, row.columns)] * (per_sample * precision)
            weighted[:, row.rows] = columns[row.rows].T @ part
        return self._gradient([*states, weighted], [self._softness])

    def _collect(self, columns: np.ndarray) -> np.ndarray:
        blocks = [columns[row.rows] for row in self.rows]
        products = [block @ block.T / columns.shape[1] for block in blocks]
        return self.collect(products)

    def collect(
        self, products: Sequence[Float[np.ndarray, "... width width"]]
    ) -> Float[np.ndarray, "... count count"]:
        """Turn every joint's mean of rowᵀ row into information, parameters scaled."""
        size = self._to_base.shape[0]
        total = np.zeros((*products[0].shape[:-2], size, size))
        for row, product, precision in zip(
            self.rows, products, self._weight, strict=True
        ):
            columns = np.asarray(row.columns)
            total[..., columns[:, None], columns] += precision * product
        collected: np.ndarray = self._to_base.T @ total @ self._to_base
        return collected


def soften(program: Program) -> Program:
    """Return a regressor's structural non-zeros, sign(x) rounded to x/√(x² + w²)."""
    (output,) = program.outputs
    entries = [output.entries[k] for k in output.nonzero]

    def softened(
        softness: list[Number], **inputs: list[Number]
    ) -> dict[str, list[Number]]:
        width = softness[0] * softness[0]
        rules = {"sign": lambda x: x / sqrt(x * x + width)}
        done = replay(program, inputs, rules)
        return {
            "entries": [done[x.index] if isinstance(x, Scalar) else x for x in entries]
        }

    sizes = {item.name: item.size for item in program.inputs}
    return trace("soft_regressor", softened, sizes, {"softness": 1})


def _row_layout(program: Program) -> list[Row]:
    (output,) = program.outputs
    width = output.shape[1]
    rows: list[Row] = []
    start = 0
    for j in range(output.shape[0]):
        columns = tuple(k % width for k in output.nonzero if k // width == j)
        rows.append(Row(slice(start, start + len(columns)), columns))
        start += len(columns)
    return rows


def _usual_size(model: InformationModel, bounds: Bounds) -> np.ndarray:
    """Mean square of each base column over random states within the limits."""
    # Any fixed seed: scales must be the same for every motion of an arm.
    rng = np.random.default_rng(1986)
    # 2000 states give mean squares to a few per cent, all that a scale needs.
    u = rng.uniform(-1.0, 1.0, (3, 2000, bounds.dof))
    states = (
        bounds.middle + u[0] * bounds.half_range,
        u[1] * bounds.velocity,
        u[2] * bounds.acceleration,
    )
    return np.diag(model.of_states(states)).copy()
