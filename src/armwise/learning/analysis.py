"""Convergence analysis of a learning operator, before the first trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.errors import ArgumentError, NotConverged
from armwise.learning.operators import LearningOperator, LiftedLoop

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: an error that grows by a thousandth per trial needs a thousand trials to
# grow by e.
LEFT_ALONE = 1e-3
"""What a correction filter removes is neither learned nor forgotten: its eigenvalues
are 1, give or take the filter's edges, and do not count as divergence."""

Verdict = Literal["monotone", "converges", "blows up", "diverges"]


@dataclass(frozen=True, eq=False)
class LearningAnalysis:
    """How command errors go from trial to trial: δu ← Z δu.

    Convergence is not performance: a spectral radius below one promises an end,
    the singular value and the growth bound what happens before it.

    Attributes:
        operator: Name of the learning operator.
        spectral_radius: Largest |eigenvalue| of Z; below 1 the error ends at zero.
        largest_singular_value: σ of Z; below 1 every trial improves.
        peak_gain: Largest gain of A[z] over frequency; None unless time-invariant.
        peak_frequency_hz: Where that is, in [Hz].
        growth: ‖Zᵏ‖, the worst growth of a command error after k updates, k from 1.
        impulse_growth: Growth of the largest output error after k updates when the
            first sample of the command was wrong.
        growth_bound: max(1, σ)ᵏ for the last k: no error can grow by more.
        verdict: In a word.
        allowed_growth: What a recommended operator may grow by on the way.
    """

    operator: str
    spectral_radius: float
    largest_singular_value: float
    peak_gain: float | None
    peak_frequency_hz: float | None
    growth: Float[np.ndarray, " updates"]
    impulse_growth: Float[np.ndarray, " updates"]
    growth_bound: float
    verdict: Verdict
    allowed_growth: float

    @property
    def transient_growth(self) -> float:
        """Largest growth of a command error over the updates looked at."""
        return float(max(1.0, np.max(self.growth)))

    @property
    def is_recommended(self) -> bool:
        """Whether it converges without growing beyond what is allowed."""
        return self.verdict in ("monotone", "converges")

    @property
    def reason(self) -> str:
        """The verdict in a sentence."""
        numbers = (
            f"spectral radius {self.spectral_radius:.4g}, largest singular value "
            f"{self.largest_singular_value:.4g}, growth {self.transient_growth:.3g} "
            f"within {self.growth.size} updates"
        )
        ending = {
            "monotone": "improves in every trial",
            "converges": "converges, with little growth on the way",
            "blows up": "converges in theory but blows up first; do not use it",
            "diverges": "does not converge",
        }[self.verdict]
        return f"Learning with {self.operator} {ending} ({numbers})."

    def require_recommended(self) -> None:
        """Raise NotConverged unless the operator can be recommended."""
        if not self.is_recommended:
            raise NotConverged(
                f"{self.reason} Use a better model as the learning operator, or "
                "filter the correction to where the model is right."
            )


def analyse_learning(
    loop: LiftedLoop,
    operator: LearningOperator,
    updates: int = 10,
    # Judgement: an error may double on the way; more would risk the plant.
    allowed_growth: float = 2.0,
) -> LearningAnalysis:
    """Predict from a linear loop and an operator how learning converges.

    Args:
        loop: The plant under feedback over one trial, from `LinearLoop.lifted` or
            `linearise_along`.
        operator: How errors become corrections.
        updates: Trials to look ahead.
        allowed_growth: Transient growth a recommended operator may show.

    Raises:
        ArgumentError: If the operator was made for another number of samples.
    """
    commands = loop.applied.shape[0]
    if operator.gain.shape != (commands, loop.error.shape[0]):
        raise ArgumentError(
            f"The operator is {operator.gain.shape}, but the loop needs "
            f"{(commands, loop.error.shape[0])}; build both for the same samples."
        )
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # two threads on small matrices only get in the way
        Z = operator.propagation(loop)
        radius = spectral_radius(Z, loop.channels)
        sigma = spectral_norm(Z)
        growth, impulse_growth = _growth(Z, loop, updates)
        gain, where = _peak_gain(loop, operator)
    return LearningAnalysis(
        operator=operator.name,
        spectral_radius=radius,
        largest_singular_value=sigma,
        peak_gain=gain,
        peak_frequency_hz=where,
        growth=growth,
        impulse_growth=impulse_growth,
        growth_bound=float(max(1.0, sigma) ** updates),
        verdict=_verdict(
            radius - (LEFT_ALONE if operator.correction_filter is not None else 0.0),
            sigma,
            float(np.max(growth)),
            allowed_growth,
        ),
        allowed_growth=allowed_growth,
    )


def spectral_radius(Z: Float[np.ndarray, "size size"], block: int = 1) -> float:
    """Largest |eigenvalue|, read off the diagonal blocks of a causal matrix.

    The eigenvalues of a lower block-triangular matrix are those of its diagonal
    blocks; asking an eigensolver instead gives nonsense for long trials, because
    these matrices are as far from normal as matrices get.
    """
    size = Z.shape[0] // block
    blocks = Z.reshape(size, block, size, block)
    above = np.triu(np.abs(blocks).max(axis=(1, 3)), 1)
    # Causal to rounding: block triangular.
    if np.max(above, initial=0.0) <= 1e-13 * np.abs(Z).max(initial=0.0):
        diagonal = blocks[np.arange(size), :, np.arange(size), :]
        return float(np.abs(np.linalg.eigvals(diagonal)).max())
    return float(np.abs(np.linalg.eigvals(Z)).max())


def spectral_norm(Z: Float[np.ndarray, "rows columns"], steps: int = 60) -> float:
    """Largest singular value; by `steps` of Lanczos on ZᵀZ where Z is large.

    Lanczos' value comes from below and is right to about six digits, also where, as
    in Toeplitz matrices, the largest singular values lie close together.
    """
    scale = float(np.abs(Z).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    # Small enough for the exact decomposition.
    if Z.shape[1] <= 200:
        return float(np.linalg.norm(Z, 2))
    scaled = Z / scale
    basis = np.zeros((steps, Z.shape[1]))
    small = np.zeros((steps, steps))
    # A random start is orthogonal to no singular vector, a fixed seed repeatable.
    vector = np.random.default_rng(0).standard_normal(Z.shape[1])
    for k in range(steps):
        basis[k] = vector / np.linalg.norm(vector)
        vector = scaled.T @ (scaled @ basis[k])
        small[: k + 1, k] = basis[: k + 1] @ vector
        for _ in range(2):  # twice is enough to stay orthogonal
            vector = vector - basis[: k + 1].T @ (basis[: k + 1] @ vector)
    largest = np.linalg.eigvalsh(small, UPLO="U")[-1]
    return float(scale * np.sqrt(max(largest, 0.0)))


def _growth(
    Z: np.ndarray, loop: LiftedLoop, updates: int
) -> tuple[np.ndarray, np.ndarray]:
    power = np.eye(Z.shape[0])
    impulse = np.eye(Z.shape[0])[:, : loop.channels]
    start = np.abs(loop.error @ impulse).max()
    growth, impulse_growth = np.zeros(updates), np.zeros(updates)
    for k in range(updates):
        power, impulse = Z @ power, Z @ impulse
        if np.abs(power).max() < 1e-30:  # gone; denormal numbers would only be slow
            break
        growth[k] = spectral_norm(power)
        impulse_growth[k] = np.abs(loop.error @ impulse).max() / start
    return growth, impulse_growth


def _peak_gain(
    loop: LiftedLoop, operator: LearningOperator
) -> tuple[float | None, float | None]:
    # A gain per frequency exists only for time-invariant loops and operators; smoothing
    # is a finite matrix without a frequency response.
    if loop.loop is None or operator.response is None or operator.smoothing is not None:
        return None, None
    # Resonances of slow loops are narrow near zero: logarithmic there.
    angle = np.concatenate([np.geomspace(1e-6, 1e-2, 400), np.linspace(1e-2, 1, 4000)])
    z = np.exp(1j * np.pi * angle)
    applied, error = loop.loop.response(z)
    base = applied if operator.from_applied else np.eye(applied.shape[-1])
    gain = np.linalg.norm(base - operator.response(z) @ error, 2, axis=(1, 2))
    worst = int(np.argmax(gain))
    return float(gain[worst]), float(angle[worst] * loop.rate_hz / 2)


def _verdict(radius: float, sigma: float, growth: float, allowed: float) -> Verdict:
    # Checked first: growth over a few updates may look harmless for a slow divergence.
    if radius >= 1.0:
        return "diverges"
    if growth > allowed:
        return "blows up"
    return "monotone" if sigma < 1.0 else "converges"
