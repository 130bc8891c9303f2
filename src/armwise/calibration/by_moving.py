"""Calibration by moving: sensors of any serial arm, without a guess, on any plant.

Joints are pushed to see which way their readings count; then each moves alone, the last
first, where gravity turns its torque into a cosine of the reading: its rate is the
gain. All move together, and gains, offsets and the arm's parameters are estimated from
everything recorded. Moves that promise most are added until the answer is as sure as
asked; what does not get there is unknown.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.from_recording import first_std, sensed_samples
from armwise.calibration.moves import Mover, Moves, usual_effort
from armwise.calibration.observability import Observability, calibratable
from armwise.calibration.refine import (
    GaussianPrior,
    covariance_of,
    descend,
    independent_repeats,
    refine,
)
from armwise.calibration.result import Calibration, evidence_of, wrapped
from armwise.calibration.search import (
    SearchRegion,
    described_points,
    lowest,
    near_images,
    search,
)
from armwise.calibration.sensor_control import Bench
from armwise.calibration.structure import Flaws, Structure
from armwise.calibration.variable_projection import (
    ProjectedProblem,
    Projector,
    SensorPoint,
)
from armwise.errors import (
    ArgumentError,
    ArmwiseError,
    NotConverged,
    NotIdentifiable,
    RecordingError,
)
from armwise.motions import Triangle, random_motion
from armwise.plants import Plant
from armwise.progress import Progress
from armwise.recordings import Preparation, Recording, Samples
from armwise.regression import STRETCHES, few_threads

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike


BENT = Flaws(bend=0.005)
"""Of an arm of which nothing is said: potentiometers bend by half a percent."""

_TORQUE_ERROR, _FRICTION_ERROR = 0.005, 0.0005
"""Errors of the torques that predictions before the first move assume, as fractions of
each joint's torque and of its effort limit: motors are good to half a percent; friction
is some percent of what a joint can bear, and models of it are good to a tenth."""

_STRIBECK = 0.05
"""What dry friction rises by from a wave's speed to half of it, standard deviation as a
fraction: friction of greased gears doubles within some degrees a second of rest."""

_WAVE_SPEED = 0.6
"""Speed of the waves in [rad/s], about, that predictions assume."""


def prospects(
    structure: Structure | Arm,
    *,
    effort: ArrayLike | None = None,
    gain_std: float = 0.0025,
    offset_std: float = np.deg2rad(0.125),
    moves: Moves | None = None,
) -> Observability:
    """Say before any motion which gains and offsets `calibrate` will look for.

    Args:
        structure: The arm, or the arm and what is known of it.
        effort: Largest torque of each joint in [N m]; the arm's limits when not given,
            and where it has none, what motors for its weight usually bear.
        gain_std, offset_std: Standard deviations asked for, relative and in [rad].
        moves: How it will be moved.
    """
    structure, moves = _structure(structure), moves or Moves()
    arm = structure.arm
    motion = random_motion(
        arm, 0, 0.5 * moves.longest, harmonics=round(0.5 * moves.longest * 0.15),
        roughness=0.5, reach=0.25, widest=2.0, fastest=_WAVE_SPEED,
    )  # fmt: skip
    limits = usual_effort(arm) if effort is None else _numbers(effort, arm, "effort")
    return calibratable(
        structure,
        noise=_TORQUE_ERROR,
        least_torque_std=_FRICTION_ERROR * limits,
        tolerance=(gain_std, offset_std),
        motion=motion,
    )


def calibrate(
    plant: Plant,
    structure: Structure | Arm,
    *,
    full_scale: ArrayLike = 6.0,
    center: ArrayLike = 0.0,
    posture: ArrayLike | None = None,
    torque_step: ArrayLike = 0.0,
    effort: ArrayLike | None = None,
    gain_std: float = 0.0025,
    offset_std: float = np.deg2rad(0.125),
    moves: Moves | None = None,
    outlook: Observability | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Estimate θ = α s + β of every joint of a plant by moving it, without a guess.

    Any serial arm of revolute joints, whatever their axes. It ends when all that was
    sought is as sure as asked, or its time is up.

    Args:
        plant: One arm that takes torques and measures `volts` (or `q`).
        structure: The arm, or the arm and what is known of it.
        full_scale: How far readings may go from `center`, one number or one per joint.
        center: Reading in the middle of the range each joint may move in.
        posture: Where a simulated plant is at power-up, in its own coordinates, zero
            when not given; not used by the procedure.
        torque_step: Step of the torques' converter in [N m]; commands are rounded to
            it, so that recorded and applied torques are the same.
        effort: Largest torque of each joint in [N m]; the arm's limits when not given.
        gain_std, offset_std: Standard deviations asked for, relative and in [rad].
        moves: How to move.
        outlook: What to look for, from `prospects`; computed when None.
        progress: Called with the step and the fraction that is done.

    Returns:
        Gains and offsets; NaN with an infinite standard deviation where unknown, the
        reason in `.observability`.

    Raises:
        NotIdentifiable: If gravity can calibrate nothing, or a joint does not respond.
        RecordingError: If a joint or its reading does not follow.
    """
    if plant.batch != 1:
        raise ArgumentError(
            f"calibrate moves one arm; this plant has a batch of {plant.batch}. "
            "calibrate_batch moves them side by side."
        )
    (answer,) = calibrate_batch(
        plant, structure, full_scale=full_scale, center=center, posture=posture,
        torque_step=torque_step, effort=effort, gain_std=gain_std,
        offset_std=offset_std, moves=moves, outlook=outlook, progress=progress,
    )  # fmt: skip
    if isinstance(answer, ArmwiseError):
        raise answer
    return answer


def calibrate_batch(
    plant: Plant,
    structure: Structure | Arm,
    *,
    full_scale: ArrayLike = 6.0,
    center: ArrayLike = 0.0,
    posture: ArrayLike | None = None,
    torque_step: ArrayLike = 0.0,
    effort: ArrayLike | None = None,
    gain_std: float = 0.0025,
    offset_std: float = np.deg2rad(0.125),
    moves: Moves | None = None,
    outlook: Observability | None = None,
    progress: Progress | None = None,
) -> list[Calibration | ArmwiseError]:
    """`calibrate` for arms side by side: what it returns, or raises, for each.

    All make the same moves until they differ in what they still need; an arm whose
    turn it is not moves along. What stops all of them is raised.
    """
    structure, moves = _structure(structure), moves or Moves()
    arm = structure.arm
    _check(plant, arm)
    limits = arm.limits("effort") if effort is None else _numbers(effort, arm, "effort")
    if not np.all(np.isfinite(limits) & (limits > 0.0)):
        raise ArgumentError(
            f"{arm.name} has no effort limits; they say how hard joints may be pushed. "
            "Pass effort=."
        )
    scale = _numbers(full_scale, arm, "full_scale")
    if np.any(scale <= 0.0):
        raise ArgumentError("full_scale must be positive for every joint.")
    goal_std = (gain_std, offset_std)
    if min(goal_std) <= 0.0:
        raise ArgumentError("gain_std and offset_std must be positive.")
    if outlook is None:
        outlook = prospects(
            structure,
            effort=limits,
            gain_std=gain_std,
            offset_std=offset_std,
            moves=moves,
        )
    if not outlook.is_sought.any():
        reasons = "; ".join(f"{p.name}: {p.reason}" for p in outlook.prospects)
        raise NotIdentifiable(f"Gravity can calibrate nothing of {arm.name}: {reasons}")
    with few_threads():
        start = np.zeros(arm.dof) if posture is None else posture
        bench = Bench(
            plant,
            scale,
            start,
            # A quarter of the rate of torques, 60 Hz at most.
            cutoff_hz=min(60.0, 0.25 / plant.control_period),
            torque_step=_numbers(torque_step, arm, "torque_step"),
            center=_numbers(center, arm, "center"),
            effort=limits,
            goes_on=plant.batch > 1,
        )
        mover = Mover(structure, bench, moves, limits)
        procedures = [
            _Procedure(structure, mover, b, outlook, goal_std, progress)
            for b in range(plant.batch)
        ]
        return _carried_out(mover, procedures)


def _carried_out(
    mover: Mover, procedures: Sequence[_Procedure]
) -> list[Calibration | ArmwiseError]:
    """Let arms side by side move as each procedure asks; the others move along."""
    runs = [procedure.run() for procedure in procedures]
    pending: dict[int, Triangle] = {}
    answers: dict[int, Calibration | ArmwiseError] = {}

    def go_on(b: int, recording: Recording | None) -> None:
        try:
            # A generator is begun by sending it nothing.
            pending[b] = runs[b].send(recording)  # type: ignore[arg-type]
        except StopIteration as end:
            answers[b] = end.value
        except ArmwiseError as error:
            answers[b] = error

    for b in range(len(runs)):
        go_on(b, None)
    while pending:
        # Arms that are behind go first: most moves are then made by all at once.
        motion = pending[min(pending, key=lambda b: procedures[b].stage)]
        same = [b for b, other in pending.items() if _is_same(other, motion)]
        trace = mover.follow(motion)
        for b in mover.lost.keys() & pending.keys():
            del pending[b]
            answers[b] = mover.lost[b]
        for b in pending.keys() & set(same):
            del pending[b]
            try:
                recording = mover.recording(trace, b, motion.amplitude)
            except RecordingError as error:
                answers[b] = error
            else:
                go_on(b, recording)
    return [answers[b] for b in range(len(runs))]


def _is_same(a: Triangle, b: Triangle) -> bool:
    return a.duration == b.duration and all(
        np.array_equal(x, y)
        for x, y in (
            (a.center, b.center),
            (a.amplitude, b.amplitude),
            (a.period, b.period),
        )
    )


def _structure(structure: Structure | Arm) -> Structure:
    if not isinstance(structure, Structure):
        structure = Structure(structure, flaws=BENT)
    flaws = structure.flaws
    if flaws.slow_friction:
        return structure
    return replace(structure, flaws=replace(flaws, slow_friction=_STRIBECK))


def _check(plant: Plant, arm: Arm) -> None:
    if plant.dof != arm.dof:
        raise ArgumentError(
            f"The plant has {plant.dof} joints, {arm.name} has {arm.dof}."
        )
    if not all(joint.is_revolute for joint in arm.joints):
        sliding = next(j.name for j in arm.joints if not j.is_revolute)
        raise NotIdentifiable(
            f"{arm.name}: {sliding} slides; gravity calibrates revolute joints only. "
            "Lock it (load_arm(..., lock=...)), or record a motion and use "
            "calibrate_recording."
        )


def _numbers(values: ArrayLike, arm: Arm, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim > 1 or array.size not in (1, arm.dof) or np.isnan(array).any():
        raise ArgumentError(f"{name} needs one number, or one for each joint.")
    return np.broadcast_to(array, (arm.dof,)).copy()


# One joint alone: the rate of gravity's cosine.

_RATES = 400
"""Gains that are tried: steps of 1.1 % over the range."""

_RATE_RANGE = 8.0
"""Factor between the gain that inertia suggests and the gravity's own: masses in
descriptions, and postures, make inertias that much uncertain."""

_REAL = 40.0
"""Variances that gravity's cosine must explain to be more than noise."""

_ROUGH = 0.05
"""Relative standard deviation of a joint's gain, alone, that is good enough to begin
with: it turns the ends of the range by 3°."""


_FAINT, _INERTIA_ERROR = 0.15, 0.5
"""Relative standard deviation from which on a gain from gravity is no better than one
from inertia, and that one's own: inertias vary several times with the posture."""


def gain_alone(sensed: Samples, j: int, guess: float) -> tuple[float, float]:
    """|α| of a joint that moved alone, and its relative standard deviation.

    Whatever the axes, gravity's torque on it is a + b cos α s + c sin α s. Infinite
    where the torque does not bend.

    Args:
        sensed: Samples in the sensors' units.
        j: The joint.
        guess: |α| in [rad] per unit of the sensor, within a factor of eight.
    """
    s, speed = sensed.q[:, j], sensed.qd[:, j]
    # Friction reverses at the corners of the wave, and nothing is known of it there.
    slides = np.abs(speed) > 0.3 * np.percentile(np.abs(speed), 90)
    s, speed, tau = s[slides], speed[slides], sensed.tau[slides, j]
    fixed = np.column_stack(
        [np.ones_like(s), np.sign(speed), speed, sensed.qdd[slides, j]]
    )
    basis = np.linalg.qr(fixed)[0]

    flat = tau - basis @ (basis.T @ tau)
    rates = guess * np.geomspace(1.0 / _RATE_RANGE, _RATE_RANGE, _RATES)
    angles = np.multiply.outer(rates, s)
    # Cosine and sine of every rate at once, the fixed columns taken out: what they
    # explain is a system of two unknowns each.
    c, d = (x - (x @ basis) @ basis.T for x in (np.cos(angles), np.sin(angles)))
    cc, cd, dd = (np.einsum("ij,ij->i", *x) for x in ((c, c), (c, d), (d, d)))
    ct, dt = c @ flat, d @ flat
    determinant = np.maximum(cc * dd - cd**2, 1e-12 * cc * dd)
    explained = (dd * ct**2 - 2.0 * cd * ct * dt + cc * dt**2) / determinant
    costs = flat @ flat - explained
    k = int(costs.argmin())
    if k in (0, _RATES - 1):
        return float(rates[k]), np.inf
    # A parabola through the lowest three, over log α; its width is the uncertainty.
    lower, middle, right = costs[k - 1 : k + 2]
    step = float(np.log(rates[1] / rates[0]))
    bend = (lower - 2.0 * middle + right) / step**2
    repeats = independent_repeats(sensed)
    variance = middle / max(len(tau) - 7.0 * repeats, 1.0)
    # The best of four hundred cosines fits noise too, by some ten variances.
    if bend <= 0.0 or flat @ flat - middle < _REAL * variance * repeats:
        return float(rates[k]), np.inf
    best = float(rates[k] * np.exp(-0.5 * (right - lower) / (step * bend)))
    return best, float(np.sqrt(2.0 * variance * repeats / bend))


# The procedure.

_HOLDS = (0.0, 0.5)
"""Scaled readings at which the joints before a moving one are held, the second where
gravity does not show in its torque at the first."""

_GOOD_COST = (0.05 / 0.02) ** 2
"""Cost per torque when residuals are 5 % of them: what bent sensors and friction leave
in a right solution; a wrong one leaves tens of per cent."""

_SEARCH_SAMPLES = 400
"""Samples of a search: ten times as many rows as unknowns."""

_SLIDING = 0.6
"""Fraction of a wave's speed below which its torques are not used: its rounded ends,
where friction is neither sliding nor sticking, always at the same readings."""

_FEWEST = 8
"""Fewest stretches a variance is computed from: it is known to a half then."""

_PARTS = 3
"""Parts of a wave that a variance is computed from. One part a wave covers as well, but
the variance is then so uncertain that single errors are five of their deviations."""

_TOGETHER = 3
"""Moves of all joints before the first estimate: with fewer, its own uncertainty is
guesswork."""

_SAMPLES_A_PERIOD = 2.5
"""Samples kept per period of the cut-off: two hold all that the low-pass leaves."""

_RATE_OF_SAMPLES = 12.5
"""Samples a period of the cut-off before that: friction's steps are seen in them."""

_CANDIDATES = 24
"""Moves compared before each further one."""


_Run = Generator[Triangle, Recording, Calibration]
"""Yields moves, is sent what was recorded, returns the answer."""


class _Procedure:
    """Asks for moves and estimates in turn; `stage` counts the joints done alone.

    Args:
        structure: What is known of the arm.
        mover: Moves it, maybe beside others.
        b: Its index among them.
        outlook: What is sought.
        asked: Standard deviations of gains, relative, and offsets in [rad].
        progress: Called with the step and the fraction that is done.
    """

    def __init__(
        self,
        structure: Structure,
        mover: Mover,
        b: int,
        outlook: Observability,
        asked: tuple[float, float],
        progress: Progress | None,
    ) -> None:
        self.structure, self.mover, self.outlook = structure, mover, outlook
        self._report = progress or (lambda step, fraction: None)
        self._random = np.random.default_rng(0)
        n = structure.arm.dof
        self._asked = np.array(
            [asked[0] if p.quantity == "gain" else asked[1] for p in outlook.prospects]
        )
        # Of what is not sought: gains by inertia, offsets anywhere.
        self._widths = np.array(
            [0.3 if p.quantity == "gain" else 1.0 for p in outlook.prospects]
        )
        self._dof, self._b, self.stage = n, b, 0
        self._samples: list[Samples] = []
        self._recordings: list[Recording] = []
        # Torques are those that were asked for: nothing has filtered them before.
        cutoff, rate = mover.moves.cutoff_hz, 1.0 / mover.bench.period
        thin = max(1, int(rate / (_RATE_OF_SAMPLES * cutoff)))
        self._preparation = Preparation(cutoff_hz=cutoff, decimation=thin).settings

    def run(self) -> _Run:
        """Yield moves and take what was recorded, until it is sure enough."""
        n, mover = self._dof, self.mover
        gains, widths = mover.gains[self._b] / mover.bench.scale, np.full(n, np.inf)
        for k, j in enumerate(reversed(range(n))):
            self.stage = k
            self._report(f"moving {mover.names[j]} alone", 0.3 * k / n)
            gains[j], widths[j] = yield from self._alone(j, gains[j])
        self.stage = n
        self._report("moving all joints", 0.35)
        amplitude = np.full(n, mover.moves.amplitude)
        middle = np.zeros(n)
        for k in range(_TOGETHER):
            self._take((yield mover.wave(middle, amplitude, mover.moves.together, k)))
        self._report("searching", 0.45)
        guess = SensorPoint(gains * mover.bench.sense[self._b], np.zeros(n))
        point = self._search(guess, widths)
        prior = self._prior(point)
        is_free = np.concatenate(
            [self.outlook.is_visible, np.ones(prior.point.flaws.size, bool)]
        )
        point = replace(point, flaws=np.zeros_like(prior.point.flaws))
        while True:
            solution, projector = refine(self._projector(), point, is_free, prior)
            covariance = self._covariance(projector, solution, is_free, prior)
            std = np.sqrt(np.diag(covariance))[: self._asked.size]
            unsure = self._unsure(std)
            if not unsure.any() or mover.time >= mover.moves.longest:
                break
            done = mover.time / mover.moves.longest
            self._report("moving on", 0.5 + 0.5 * done)
            self._take((yield self._best_move(projector, solution, is_free, prior)))
            point = solution.point
        self._report("done", 1.0)
        return self._answer(projector, solution, covariance, std)

    def _alone(
        self, j: int, guess: float
    ) -> Generator[Triangle, Recording, tuple[float, float]]:
        """|α| of a joint and its relative deviation, the others held till it shows."""
        mover, n = self.mover, self._dof
        amplitude = np.zeros(n)
        amplitude[j] = mover.moves.amplitude
        best, least = guess, np.inf
        for hold in _HOLDS if j else _HOLDS[:1]:
            center = np.zeros(n)
            center[:j] = hold
            motion = mover.wave(center, amplitude, 1.25 * mover.moves.period)
            sensed = self._take((yield motion))
            gain, std = gain_alone(sensed, j, guess)
            if std < least:
                best, least = gain, std
            if least < _ROUGH:
                break
        return (best, least) if least < _FAINT else (guess, _INERTIA_ERROR)

    def _take(self, recording: Recording) -> Samples:
        sensed = sensed_samples(recording, like=self._preparation)
        self._recordings.append(recording)
        self._samples.append(sensed)
        return sensed

    def _projector(self) -> Projector:
        sensed = Samples.concatenate(self._samples)
        projector = Projector(self.structure, sensed, first_std(sensed), ends=_SLIDING)
        rate = _SAMPLES_A_PERIOD * self.mover.moves.cutoff_hz
        return projector.thinned(max(1, int(sensed.rate_hz / rate)))

    def _search(self, guess: SensorPoint, widths: np.ndarray) -> SensorPoint:
        """Offsets, all round, and gains near those of the joints alone."""
        projector = self._projector()
        few = projector.thinned(max(1, len(projector.sensed) // _SEARCH_SAMPLES))
        # What the motion says less of than the prior is not worth a search.
        sought = np.array([p.std for p in self.outlook.prospects]) < self._widths
        region = SearchRegion.from_guess(
            self.structure, projector.sensed, guess.alpha, guess.beta, 1.3
        )
        size = np.abs(guess.alpha)
        # A cosine of half the rate may fit one joint's wave nearly as well: where no
        # gains nearby explain all waves together, those of its inertia are tried.
        for width in (widths, np.maximum(widths, _INERTIA_ERROR)):
            # Three standard deviations each way.
            factor = np.maximum(np.exp(3.0 * width), 1.1)
            wide = replace(region, low=size / factor, high=size * factor)
            best = self._lowest(few, wide, guess, sought)
            if best is not None and best.mean_cost <= _GOOD_COST:
                return descend(projector, best.point, sought, None, 1e-6).point
        raise NotConverged(
            f"No gains and offsets of {self.structure.arm.name} explain what was "
            "recorded while it moved. Is this its description, and are the torques "
            "those that were asked for?"
        )

    def _lowest(
        self,
        few: Projector,
        region: SearchRegion,
        guess: SensorPoint,
        sought: Bool[np.ndarray, " unknowns"],
    ) -> ProjectedProblem | None:
        """The lowest minimum in a region, by the description's masses if they do."""
        starts = described_points(few, region, sought, 0)
        minima = search(few, region, starts, sought, _GOOD_COST) if starts else []
        best = lowest(minima)
        if best is None or best.problem.mean_cost > _GOOD_COST:
            points = [p.held(guess, sought) for p in region.points(512, 0)]
            minima += search(few, region, points, sought, _GOOD_COST, self._report)
            best = lowest(minima)
        if best is None:
            return None
        # An arm that hangs where it should stand fits well, but not as well. Pushes
        # have told which way readings count.
        for image in near_images(few, region, best.problem, reverses=False):
            minima += search(few, region, [image], sought, _GOOD_COST)
        best = lowest(minima)
        return None if best is None else best.problem

    def _prior(self, point: SensorPoint) -> GaussianPrior:
        """None for what is sought; what the moves suggest for the others."""
        flaws = self.structure.flaws.std(self._dof)
        # A thousand radians: no prior at all, but finite.
        std = np.where(self.outlook.is_sought, 1e3, self._widths)
        flawless = replace(point, flaws=np.zeros(flaws.size))
        return GaussianPrior(flawless, np.concatenate([std, flaws]))

    def _covariance(
        self,
        projector: Projector,
        solution: ProjectedProblem,
        is_free: np.ndarray,
        prior: GaussianPrior,
    ) -> np.ndarray:
        """By deleting parts of waves in turn; wider for there being few of them."""
        from scipy.stats import norm, t

        sensed, period = projector.sensed, self.mover.moves.period
        moved = len(sensed) / sensed.rate_hz
        parts = int(np.clip(_PARTS * moved / period, _FEWEST, STRETCHES))
        covariance = covariance_of(projector, solution, is_free, prior, parts)
        factor = float(t.ppf(0.975, parts - 1) / norm.ppf(0.975))
        return np.asarray(factor**2 * covariance)

    def _unsure(self, std: np.ndarray) -> Bool[np.ndarray, " unknowns"]:
        return np.asarray(self.outlook.is_sought & ~(std <= self._asked))

    def _best_move(
        self,
        projector: Projector,
        solution: ProjectedProblem,
        is_free: np.ndarray,
        prior: GaussianPrior,
    ) -> Triangle:
        """The one of some random moves that promises the surest answer."""
        motions = [self._random_move(k) for k in range(_CANDIDATES)]
        information = _information(solution, is_free, prior)
        losses = []
        for motion in motions:
            more = _promised(projector, solution, motion, self.mover.bench, is_free)
            spread = _diagonal_of_inverse(information + more)
            free = np.flatnonzero(is_free)
            std = np.full(is_free.size, np.inf)
            std[free] = np.sqrt(spread[solution.linear :])
            ratio = (std[: self._asked.size] / self._asked)[self.outlook.is_sought]
            losses.append(float(np.max(ratio)))
        return motions[int(np.argmin(losses))]

    def _random_move(self, k: int) -> Triangle:
        """All joints about other middles; every third, some of them held."""
        n, moves = self._dof, self.mover.moves
        center = self._random.uniform(-0.5, 0.5, n) * moves.amplitude
        amplitude = moves.amplitude - np.abs(center)
        if k % 3 == 0:
            amplitude = amplitude * (self._random.uniform(size=n) < 0.5)
            if not amplitude.any():
                amplitude[k % n] = 0.5 * moves.amplitude
        return self.mover.wave(center, amplitude, moves.together, k)

    def _answer(
        self,
        projector: Projector,
        solution: ProjectedProblem,
        covariance: np.ndarray,
        std: np.ndarray,
    ) -> Calibration:
        outlook, n = self.outlook, self._dof
        unsure = self._unsure(std)
        reasons = {
            p.name: f"known only to ± {p.with_unit(float(s))} after "
            f"{self.mover.time:.0f} s of motion"
            for p, s, bad in zip(outlook.prospects, std, unsure, strict=True)
            if bad
        }
        outlook = outlook.without(reasons)
        point = solution.point
        deviation = np.where(outlook.is_sought, std, np.inf)
        gains = deviation[:-n] if deviation.size > n else np.zeros(n)
        alpha = np.where(np.isfinite(gains), point.alpha, np.nan)
        offsets = deviation[-n:]
        beta = np.where(np.isfinite(offsets), wrapped(point.beta), np.nan)
        return Calibration(
            joint_names=self.structure.arm.coordinate_names,
            alpha=alpha,
            beta=beta,
            alpha_std=np.where(np.isfinite(gains), gains * np.abs(point.alpha), np.inf),
            beta_std=offsets,
            covariance=covariance,
            unknowns=(*self.structure.unknowns, *self.structure.flaw_names),
            flaws=point.flaws,
            parameters=self.structure.parameters(solution.values[:-1]),
            torque_std=projector.residual_std(solution),
            observability=outlook,
            evidence=evidence_of(projector, solution),
            notes=(f"{self.mover.time:.0f} s in motion.",),
            method="by moving",
            recordings=tuple(self._recordings),
        )


# What a further move promises.


def _information(
    solution: ProjectedProblem, is_free: np.ndarray, prior: GaussianPrior
) -> Float[np.ndarray, "unknowns unknowns"]:
    """Inverse covariance so far, as if residuals were independent of each other."""
    is_kept = np.concatenate([np.ones(solution.linear, dtype=bool), is_free])
    R = solution.factor[:, :-1][:, is_kept]
    precision = [np.zeros(solution.linear), prior.std[is_free] ** -2.0]
    return np.asarray(R.T @ R + np.diag(np.concatenate(precision)))


def _promised(
    projector: Projector,
    solution: ProjectedProblem,
    motion: Triangle,
    bench: Bench,
    is_free: np.ndarray,
) -> Float[np.ndarray, "unknowns unknowns"]:
    """Information a move would add, torques as noisy as those so far."""
    # Ten samples a second of a slow wave; each stands for those in between.
    time = np.arange(0.0, motion.duration, 0.1)
    x, xd, xdd = motion.sample(time)
    s, sd, sdd = x * bench.scale + bench.center, xd * bench.scale, xdd * bench.scale
    sensed = Samples(time, s, sd, sdd, np.zeros_like(s))
    weight = np.sqrt(projector.sensed.rate_hz * 0.1)
    other = projector.over(sensed, projector.torque_std / weight)
    moves = (motion.amplitude > 0.0).astype(float)[:, None]
    parameters = projector.model(solution)
    is_kept = np.concatenate([np.ones(solution.linear, dtype=bool), is_free])
    total = np.zeros((int(is_kept.sum()), int(is_kept.sum())))
    for Y, _, rows in other.blocks(solution.point):
        J = other.slopes(parameters, solution.point, rows)
        # Joints at rest stick: their torques say nothing.
        A = (np.concatenate([Y, J], axis=2) * moves)[:, :, is_kept]
        A = A.reshape(-1, total.shape[0])
        total += A.T @ A
    return total


def _diagonal_of_inverse(H: np.ndarray) -> Float[np.ndarray, " unknowns"]:
    size = np.sqrt(np.maximum(np.diag(H), 1e-300))
    # A relative ridge of rounding: directions that nothing determines stay finite.
    scaled = H / np.outer(size, size) + 1e-12 * np.eye(len(H))
    return np.asarray(np.diag(np.linalg.inv(scaled)) / size**2)
