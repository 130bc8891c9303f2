"""Draws of physically consistent parameters from an estimate's uncertainty.

Combinations that the data determine scatter as the jackknife says; where the data leave
a choice, bodies scatter about the estimate by a fraction of themselves, as far as a
description may be off. That Gaussian is cut to the cone of bodies that can exist: drawn
about its centre in the cone (Laplace's approximation with a logarithmic barrier), and
what still steps outside is moved back in the metric of its own covariance, so that
torques stay as well known as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters
from armwise.dynamics import BaseParameters
from armwise.errors import ArgumentError, NotConverged
from armwise.identification.validation import predicted_block
from armwise.recordings import PredictionBand, Samples
from armwise.regression import STRETCHES, Columns

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

PRIOR_STD = 0.5
"""How far a description may be off where the data leave a choice, as a fraction of the
body: what masses in CAD models miss by (cables, grease, covers)."""

MOST_DRAWS = 10_000_000
"""More at once would fill memory."""

# Half a normal distribution has mean 0.80 σ and standard deviation 0.60 σ; the barrier
# −μ log y beside y²/2 has its minimum at √μ, and there the curvature 2: 0.80 and 0.71.
_BARRIER = 0.64
"""μ: the weight of the logarithmic barrier, in units of the Gaussian's exponent."""

# Far from rounding, which changes of frame and six digits of a file bring.
_THINNEST = 1e-3
"""Least thickness of a body that is drawn, as a fraction of the one at the centre."""

# A cut ends a tenth of the way inside, where the next cut of a neighbouring body does
# not undo it at once; six rounds leave few draws for the last remedy.
_INSIDE, _ROUNDS = 0.1, 6

_MOST_STEPS = 100
"""Newton steps to the centre; some ten to thirty are usual."""

_TRIANGLE = np.triu_indices(4)
_MAPS = np.stack([InertialParameters(k).pseudo_inertia for k in np.eye(10)])
"""The pseudo-inertia of a unit of each of the ten parameters."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of all parameters: a Gaussian inside the cone of real bodies.

    Attributes:
        center: Its centre inside the cone.
        root: Any G with G Gᵀ the covariance about that centre.
        mean: The estimate.
        uncut: Any G with G Gᵀ the covariance before it was cut to the cone.
        links: Indices of the parameters of every body that scatters.
        positive: Parameters that scatter and are not negative.
    """

    center: Float[np.ndarray, " parameters"]
    root: Float[np.ndarray, "parameters directions"]
    mean: Float[np.ndarray, " parameters"]
    uncut: Float[np.ndarray, "parameters directions"]
    links: Int[np.ndarray, "bodies 10"]
    positive: Int[np.ndarray, " positive"]

    @classmethod
    def of(
        cls,
        columns: Columns,
        base: BaseParameters,
        parameters: Float[np.ndarray, " parameters"],
        covariance: Float[np.ndarray, "base base"],
        prior_std: float = PRIOR_STD,
    ) -> Posterior:
        """Combine the covariance of base parameters and the description's own spread.

        Args:
            columns: What the torque is explained by.
            base: The combinations that were estimated.
            parameters: The estimate, friction terms last.
            covariance: Of the combinations; infinite where undetermined.
            prior_std: How far the description may be off, as a fraction.
        """
        prior = _Prior.of(columns, base, parameters)
        gaussian = _covariance(prior, base, covariance, prior_std)
        layout = columns.arm.layout
        moves = np.diag(gaussian) > 0
        starts = layout.mass[moves[layout.mass]]
        bounded = columns.non_negative
        return _centred(
            prior.inside,
            parameters,
            gaussian,
            starts[:, None] + np.arange(10),
            bounded[moves[bounded]],
        )

    def draw(self, n: int, seed: int) -> Float[np.ndarray, "n parameters"]:
        """Draw parameters, every row a set of bodies that can exist."""
        if not 0 < n <= MOST_DRAWS:
            raise ArgumentError(
                f"{n} draws cannot be made; ask for 1 to {MOST_DRAWS:,}."
            )
        rng = np.random.default_rng(seed)
        draws = np.empty((n, self.center.size))
        # In blocks that stay in memory, whatever n is.
        for start in range(0, n, 4096):
            size = (min(4096, n - start), self.root.shape[1])
            step = rng.standard_normal(size) @ self.root.T
            draws[start : start + 4096] = self.center + self._brought_inside(step)
        return draws

    def scatter(self, n: int, seed: int) -> Float[np.ndarray, "n parameters"]:
        """Draw what an interval shall hold: half of it from before the cut.

        Links are slender, so that the truth is at the cone's edge, where the cone's
        volume draws away from it: of so101 draws alone hold 84 % of the inertias that
        they should hold 95 % of, the uncut Gaussian 99 % (Bayesian and frequentist
        answers part at a boundary). Not all of these rows are bodies that can exist.
        """
        half = self.draw(max(n // 2, 1), seed)
        # Another stream than the draws', or both halves would lean the same way.
        rng = np.random.default_rng((seed, 1))
        noise = rng.standard_normal((len(half), self.uncut.shape[1]))
        return np.vstack([half, self.mean + noise @ self.uncut.T])

    def _brought_inside(
        self, step: Float[np.ndarray, "n parameters"]
    ) -> Float[np.ndarray, "n parameters"]:
        frames = _frames(self.center, self.links)
        covariance = self.root @ self.root.T
        for _ in range(_ROUNDS):
            if not self._cut(step, frames, covariance):
                return step
        # The set is convex and the centre inside: on the way there every step is.
        lowest = 1.0 + self._lowest(step, frames)
        outside = lowest < _THINNEST
        step[outside] *= ((1.0 - _THINNEST) / (1.0 - lowest[outside]))[:, None]
        return step

    def _lowest(
        self, step: np.ndarray, frames: Float[np.ndarray, "bodies 4 4"]
    ) -> Float[np.ndarray, " n"]:
        """Smallest relative change of any body's thickness, or of a number's size."""
        changes = np.linalg.eigvalsh(_relative(step, self.links, frames))[..., 0]
        numbers = step[:, self.positive] / self.center[self.positive]
        joined = np.concatenate([changes, numbers], axis=1)
        return np.asarray(joined.min(axis=1, initial=0.0))

    def _cut(
        self, step: np.ndarray, frames: np.ndarray, covariance: np.ndarray
    ) -> bool:
        """Move what is outside one half-space per body and number back, in place."""
        is_changed = False
        for k in self.positive:
            size = self.center[k]
            rows = np.flatnonzero(step[:, k] < -size * (1.0 - _THINNEST))
            if rows.size:
                is_changed = True
                missing = -size * (1.0 - _INSIDE) - step[rows, k]
                step[rows] += np.outer(missing, covariance[k] / covariance[k, k])
        for index, frame in zip(self.links, frames, strict=True):
            S = _relative(step, index[None], frame[None])[:, 0]
            rows = np.flatnonzero(~_is_positive(S + (1.0 - _THINNEST) * np.eye(4)))
            if not rows.size:
                continue
            is_changed = True
            values, vectors = np.linalg.eigh(S[rows])
            # vᵀ S v as a function of the ten parameters: a = tr(v vᵀ F M_k Fᵀ).
            arms = vectors[:, :, 0] @ frame
            normal = np.einsum("ni,kij,nj->nk", arms, _MAPS, arms)
            along = normal @ covariance[index]
            reach = np.einsum("nk,nk->n", along[:, index], normal)
            missing = -(1.0 - _INSIDE) - values[:, 0]
            step[rows] += along * (missing / reach)[:, None]
        return is_changed


def _frames(
    parameters: Float[np.ndarray, " parameters"], links: Int[np.ndarray, "bodies 10"]
) -> Float[np.ndarray, "bodies 4 4"]:
    """F of every body with F P Fᵀ = 1."""
    bodies = np.einsum("lk,kij->lij", parameters[links], _MAPS)
    return np.linalg.inv(np.linalg.cholesky(bodies))


def _relative(
    step: Float[np.ndarray, "n parameters"],
    links: Int[np.ndarray, "bodies 10"],
    frames: Float[np.ndarray, "bodies 4 4"],
) -> Float[np.ndarray, "n bodies 4 4"]:
    """Changes F δP Fᵀ of bodies, relative to those that the frames make one."""
    effects = frames[:, None] @ _MAPS @ frames[:, None].swapaxes(-1, -2)
    changes = np.empty((len(step), len(links), 4, 4))
    for l, index in enumerate(links):
        changes[:, l] = (step[:, index] @ effects[l].reshape(10, 16)).reshape(-1, 4, 4)
    return changes


def _is_positive(matrices: Float[np.ndarray, "n 4 4"]) -> Bool[np.ndarray, " n"]:
    """Which are positive definite: pivots of elimination, all matrices at once."""
    A = np.moveaxis(matrices, 0, -1).copy()
    is_positive = A[0, 0] > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(3):
            A = A[1:, 1:] - A[1:, None, 0] * A[None, 0, 1:] / A[0, 0]
            is_positive &= A[0, 0] > 0
    return np.asarray(is_positive)


@dataclass(frozen=True, eq=False)
class _Prior:
    """The description's own spread, in coordinates in which it is one.

    Attributes:
        inside: The estimate, its bodies made strictly positive definite.
        scale: π = scale · ξ: bodies relative to themselves, drives in their unit.
        sizes: How far the description of each parameter may be off at most, as the
            consistent fit takes it: a link by its own size, friction by anything.
        drives: Sizes of the drives' parameters and friction terms as described.
        is_free: Which parameters were estimated.
        first_drive: Index of the first of them.
    """

    inside: Float[np.ndarray, " parameters"]
    scale: Float[np.ndarray, "parameters parameters"]
    sizes: Float[np.ndarray, " parameters"]
    drives: Float[np.ndarray, " drives"]
    is_free: Bool[np.ndarray, " parameters"]
    first_drive: int

    @classmethod
    def of(
        cls, columns: Columns, base: BaseParameters, parameters: np.ndarray
    ) -> _Prior:
        arm = columns.arm
        layout = arm.layout
        inside, scale = parameters.copy(), np.eye(parameters.size)
        sizes = np.ones(parameters.size)
        for i, link in enumerate(arm.links):
            own = layout.link(i)
            body = np.einsum("k,kij->ij", parameters[own], _MAPS)
            described = link.inertia
            # Judgement: a link described as empty may weigh 0.1 kg at 0.1 m, as the
            # consistent fit has it.
            mass = max(described.mass, 0.1)
            # A described mass of nearly nothing has its centre nowhere.
            reach = np.clip(np.linalg.norm(described.center_of_mass), 0.1, 100.0)
            unit = np.sqrt(mass) * np.array([reach, reach, reach, 1.0])
            sizes[own] = mass * reach ** np.repeat([0, 1, 2], [1, 3, 6])
            # Not thinner than the consistent fit's margin: other methods give bodies
            # that cannot exist, and the nearest that can has to have a thickness.
            body = _thickened(body, unit, 1e-5)
            inside[own] = InertialParameters.from_pseudo_inertia(body).vector
            # Half the description's body: a fit ends at bodies without thickness where
            # data say little, which is no reason to be sure of that.
            mean = 0.5 * (body + _thickened(described.pseudo_inertia, unit, 1e-4))
            frame = np.linalg.inv(np.linalg.cholesky(mean))
            effects = (frame @ _MAPS @ frame.T)[:, _TRIANGLE[0], _TRIANGLE[1]]
            # √2 off the diagonal makes the vector's norm the matrix's.
            weights = np.where(_TRIANGLE[0] == _TRIANGLE[1], 1.0, np.sqrt(2.0))
            scale[own, own] = np.linalg.inv((effects * weights).T)
        bounded = columns.non_negative
        inside[bounded] = np.maximum(inside[bounded], 0.0)
        extra = np.zeros(len(columns.friction))
        described_drives = np.concatenate([arm.parameters[layout.drives], extra])
        is_shown = np.any(base.matrix != 0.0, axis=0)
        is_free = is_shown | np.isin(base.names, base.unidentifiable)
        first = layout.drives.start
        drives = np.abs(described_drives)
        # Hardly ever described: no prior may hold friction.
        sizes[first:] = 1e4 * np.maximum(drives, 1.0)
        return cls(inside, scale, sizes, drives, is_free, first)

    def spread(self, links: float, drives: np.ndarray) -> np.ndarray:
        """Columns that scatter links by a fraction, and drives by these numbers."""
        sizes = np.concatenate([np.full(self.first_drive, links), drives])
        spread: np.ndarray = self.scale * np.where(self.is_free, sizes, 0.0)
        return spread


def _thickened(
    body: Float[np.ndarray, "4 4"], unit: Float[np.ndarray, " 4"], least: float
) -> Float[np.ndarray, "4 4"]:
    """The same body, at least so thick in any direction, in these units."""
    values, vectors = np.linalg.eigh(body / np.outer(unit, unit))
    # Beside a product of inertia far too large, rounding would leave no thickness.
    least = max(least, 1e-10 * float(np.abs(values).max()))
    if values[0] >= least:
        return body
    thick: np.ndarray = (vectors * np.maximum(values, least)) @ vectors.T
    return thick * np.outer(unit, unit)


def _covariance(
    prior: _Prior,
    base: BaseParameters,
    covariance: Float[np.ndarray, "base base"],
    prior_std: float,
) -> Float[np.ndarray, "parameters parameters"]:
    """Covariance of all parameters, before any is cut to the cone."""
    is_known = np.isfinite(np.diag(covariance))
    K = base.matrix[is_known]
    # Student's t: the jackknife's variance is itself an estimate from few stretches.
    freedom = STRETCHES - 1
    scatter = covariance[np.ix_(is_known, is_known)] * (freedom / (freedom - 2.0))
    # Steps that change combinations change thick bodies rather than thin ones.
    wide = prior.spread(1.0, prior.sizes[prior.first_drive :])
    G = K @ wide
    # In units of each combination: grams and newtons must not share a tolerance.
    unit = np.linalg.norm(G, axis=1)
    G, scatter = G / unit[:, None], scatter / np.outer(unit, unit)
    # What data tell of a combination beside what the description does.
    K = K / unit[:, None]
    described = (K * prior.sizes**2) @ K.T
    explained = scatter - scatter @ np.linalg.solve(described + scatter, scatter)
    carried = wide @ np.linalg.pinv(G)
    # Directions that no data show scatter as described, and move no combination.
    own = prior.spread(prior_std, prior_std * prior.drives)
    free = own - carried @ (K @ own)
    total = carried @ (0.5 * (explained + explained.T)) @ carried.T + free @ free.T
    # Rounding of a difference is not a spread.
    floor = 1e-24 * np.maximum(np.diag(wide @ wide.T), 1e-30)
    is_still = (np.diag(total) <= floor) | ~prior.is_free
    total[is_still] = 0.0
    total[:, is_still] = 0.0
    return np.asarray(total)


def _centred(
    inside: Float[np.ndarray, " parameters"],
    mean: Float[np.ndarray, " parameters"],
    covariance: Float[np.ndarray, "parameters parameters"],
    links: Int[np.ndarray, "bodies 10"],
    positive: Int[np.ndarray, " positive"],
) -> Posterior:
    """Find the centre of a Gaussian inside the cone, and its curvature there."""
    size = np.sqrt(np.diag(covariance))
    moves = size > 0
    unit = np.where(moves, size, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(unit, unit))
    # Relative to the largest: what rounding makes of a zero.
    usable = values > 1e-13 * max(float(values[-1]), 0.0)
    B = unit[:, None] * vectors[:, usable] * np.sqrt(values[usable])
    B[~moves] = 0.0
    back = (vectors[:, usable] / np.sqrt(values[usable])).T / unit
    x = np.where(moves, inside, mean)
    # A body some of whose numbers do not scatter may be at the edge with these.
    edge = np.linalg.eigvalsh(np.einsum("lk,kij->lij", x[links], _MAPS))[:, 0] <= 0.0
    x[links[edge]] = inside[links[edge]]
    # A number at zero starts a little inside.
    x[positive] = np.maximum(x[positive], 1e-3 * size[positive])
    y = back @ (x - mean)
    offset = x - B @ y  # what no direction reaches stays as it is inside
    value, gradient, hessian = _barrier(offset + B @ y, B, links, positive)
    # Beside numbers far too large rounding takes the start out of the cone.
    if not np.isfinite(value):
        raise NotConverged(
            "Parameters and their covariance are too far apart in size to draw from: "
            "no body inside them can be found. Check the estimate's largest numbers."
        )
    tilt = B.T @ _tilt(x, B, links, positive)
    value += float(tilt @ y) + 0.5 * float(y @ y)
    for _ in range(_MOST_STEPS):
        slope = y + tilt + gradient
        step = -np.linalg.solve(np.eye(y.size) + hessian, slope)
        decrement = -float(step @ slope)
        if decrement < 1e-6:
            break
        length = 1.0
        while length > 1e-10:
            trial = y + length * step
            attempt = _barrier(offset + B @ trial, B, links, positive)
            total = attempt[0] + float(tilt @ trial) + 0.5 * float(trial @ trial)
            # Armijo's rule; outside the cone the barrier is infinite.
            if total < value - 0.1 * length * decrement:
                break
            length *= 0.5
        else:
            break  # rounding ends it
        y, value, gradient, hessian = trial, total, attempt[1], attempt[2]
    root = B @ _inverse_root(hessian)
    return Posterior(offset + B @ y, root, mean, B, links, positive)


def _tilt(
    x: Float[np.ndarray, " parameters"],
    B: Float[np.ndarray, "parameters directions"],
    links: Int[np.ndarray, "bodies 10"],
    positive: Int[np.ndarray, " positive"],
) -> Float[np.ndarray, " parameters"]:
    """Gradient of a linear term that takes off what a barrier draws too far.

    −μ log y draws from however far away, and those of all bodies together would enlarge
    a scale that all torques share by more than its standard deviation.

    Args:
        x: The parameters about which a Gaussian scatters.
        B: Any root of its covariance.
        links: Indices of every body's parameters.
        positive: Parameters that are not negative.
    """
    tilt = np.zeros(x.size)
    spread = np.linalg.norm(B[positive], axis=1) / x[positive]
    tilt[positive] = _excess(spread) / x[positive]
    frames = _frames(x, links)
    changes = _relative(B.T, links, frames)
    # The directions in which a body scatters most by itself.
    _, vectors = np.linalg.eigh(np.einsum("nlij,nljk->lik", changes, changes))
    along = np.einsum("lia,nlij,lja->nla", vectors, changes, vectors)
    excess = _excess(np.linalg.norm(along, axis=0))
    arms = np.einsum("lia,lij->laj", vectors, frames)
    np.add.at(tilt, links, np.einsum("la,lai,kij,laj->lk", excess, arms, _MAPS, arms))
    return tilt


def _excess(spread: Float[np.ndarray, " bounds"]) -> Float[np.ndarray, " bounds"]:
    """Force by which −μ log(1 + y) draws y too far from 0, where y scatters so much.

    That is to be the mean of a normal y that is above −1. It is nothing where y
    scatters widely, for which μ was chosen, and all of it where −1 is far away.
    """
    sigma = np.maximum(spread, 1e-12)
    normal = NormalDist()
    mean = [s * normal.pdf(1.0 / s) / normal.cdf(1.0 / s) for s in sigma.ravel()]
    shift = np.reshape(mean, sigma.shape)
    return np.asarray(_BARRIER / (1.0 + shift) - shift / sigma**2)


def _inverse_root(hessian: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Any G with G Gᵀ = (1 + hessian)⁻¹, for a barrier's Hessian."""
    values, vectors = np.linalg.eigh(hessian)
    # A barrier is convex: below zero is rounding beside its largest curvature.
    return np.asarray(vectors / np.sqrt(1.0 + np.maximum(values, 0.0)))


def _barrier(
    x: Float[np.ndarray, " parameters"],
    B: Float[np.ndarray, "parameters directions"],
    links: Int[np.ndarray, "bodies 10"],
    positive: Int[np.ndarray, " positive"],
) -> tuple[float, np.ndarray, np.ndarray]:
    """−μ Σ log det P − μ Σ log x, with gradient and Hessian along the directions."""
    nothing = np.zeros(0), np.zeros((0, 0))
    bodies = np.einsum("lk,kij->lij", x[links], _MAPS)
    if not (np.all(_is_positive(bodies)) and np.all(x[positive] > 0)):
        return np.inf, *nothing
    frames = np.linalg.inv(np.linalg.cholesky(bodies))
    logs = np.log(np.diagonal(frames, axis1=1, axis2=2)).sum()
    value = 2.0 * float(logs) - float(np.log(x[positive]).sum())
    # Derivatives of log det P are traces of F δP Fᵀ and of its square.
    effects = (frames[:, None] @ _MAPS @ frames[:, None].swapaxes(-1, -2)).reshape(
        len(links), 10, 16
    )
    trace = effects @ np.eye(4).ravel()
    square = effects @ effects.swapaxes(1, 2)
    size = x.size
    slope, curve = np.zeros(size), np.zeros((size, size))
    np.add.at(slope, links, -trace)
    for index, block in zip(links, square, strict=True):
        curve[np.ix_(index, index)] += block
    slope[positive] -= 1.0 / x[positive]
    curve[positive, positive] += 1.0 / x[positive] ** 2
    return _BARRIER * value, _BARRIER * (B.T @ slope), _BARRIER * (B.T @ curve @ B)


# Torques that draws predict.

BAND_DRAWS = 100
"""Draws of a band: its width is then known to 7 %, 1/√(2·100)."""


def torque_band(
    columns: Columns,
    draws: Float[np.ndarray, "draws parameters"],
    parameters: Float[np.ndarray, " parameters"],
    samples: Samples,
    level: float,
    residual_std: Float[np.ndarray, " dof"],
) -> PredictionBand:
    """Interval about the torques that draws predict.

    Args:
        columns: What the torque is explained by.
        draws: What is known of the parameters.
        parameters: The estimate, friction terms last.
        samples: The motion.
        level: Fraction of samples to hold.
        residual_std: What is added to it, per joint, in [N m].
    """
    # Sums of many parameters: normal, so that two moments are enough, and smoother
    # than quantiles of so many draws.
    factor = NormalDist().inv_cdf(0.5 + 0.5 * level)
    weights = np.vstack([parameters, draws]) @ columns.user.T
    center = np.empty((len(samples), columns.arm.dof))
    std = np.empty_like(center)
    for block in columns.blocks([samples]):
        estimate, *torques = predicted_block(columns, block, weights)
        center[block.rows] = estimate
        # About the estimate, which at a bound is at the edge of its own draws.
        std[block.rows] = np.sqrt(np.mean((torques - estimate) ** 2, axis=0))
    half = factor * np.sqrt(std**2 + residual_std**2)
    return PredictionBand(center - half, center + half, level)
