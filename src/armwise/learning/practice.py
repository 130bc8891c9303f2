"""Practice through files: from recordings of attempts, the command of the next one.

An arm takes a command, torques or a position reference, and what it did is recorded.
The inverse of its response, along the motion, says which command would have made what
was measured and which one makes the plan; their difference corrects the command
(`atkeson1986` Eq. 6.11). For torques the inverse is the arm's model. An arm that takes
positions hides its feedback: its response is identified from the attempts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotConverged, NotIdentifiable, RecordingError
from armwise.files import json_text, replacing, write_atomically
from armwise.jobs import digest
from armwise.learning.analysis import LEFT_ALONE, LearningAnalysis, analyse_learning
from armwise.learning.operators import inverse_model_along, linearise_along
from armwise.learning.trial import ZeroPhase
from armwise.motions import Motion, MotionSample, SampledMotion
from armwise.plants import perturbed
from armwise.tables import read_bounded

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.recordings import Recording

Kind = Literal["position", "torque"]
Rule = Literal["inverse", "error"]

# Judgement: from above what planned motions hold, and below where rigid models fail,
# down to slow motions, half an octave apart.
CUTOFFS_HZ = (8.0, 5.7, 4.0, 2.8, 2.0, 1.4, 1.0)
"""Cut-offs that are tried in turn where none is chosen."""


# Judgement: above the cut-off hardly anything is corrected, and what there is of an
# error grows by a fifth in ten attempts.
_BEYOND_BAND = 0.02
"""What errors may grow by in an attempt at frequencies that are not learned."""

_MORE_THAN_NOISE = 2.0
"""Power below the cut-off, of what is applied beside the feedback's law, over that of
white noise, from which on it is more than noise. An attempt has some hundred
independent values, so that chance makes a quarter."""


@dataclass(frozen=True)
class PracticeSettings:
    """How attempts become the next command.

    Attributes:
        takes: What the arm is commanded by.
        rule: "inverse": corrected through the inverse of the response; "error": the
            position error itself is added (position only).
        gain: Fraction of the correction that is made.
        cutoff_hz: Zero-phase low-pass of the correction in [Hz]; None: the highest of
            CUTOFFS_HZ up to which the response is known well enough to converge; for
            torques an octave more after each attempt that was the best so far.
        model_error: Relative error of the model that convergence must survive.
    """

    takes: Kind = "position"
    rule: Rule = "inverse"
    gain: float = 1.0
    cutoff_hz: float | None = None
    # Judgement: an identified model is within a tenth; a bare URDF often is not.
    model_error: float = 0.1

    def __post_init__(self) -> None:
        if self.takes not in ("position", "torque"):
            raise ArgumentError(f"takes is position or torque, not {self.takes!r}.")
        if self.rule not in ("inverse", "error"):
            raise ArgumentError(f"rule is inverse or error, not {self.rule!r}.")
        if self.takes == "torque" and self.rule == "error":
            raise ArgumentError("A position error is no torque: use the rule inverse.")
        if not 0.0 < self.gain <= 2.0:
            raise ArgumentError(f"gain is above 0 and up to 2, not {self.gain}.")
        if self.cutoff_hz is not None and not self.cutoff_hz > 0.0:
            raise ArgumentError(f"cutoff_hz is above 0, not {self.cutoff_hz}.")


@dataclass(frozen=True, eq=False)
class Attempt:
    """One attempt on the plan's time grid.

    Attributes:
        command: What was commanded: positions in [rad] or [m], or torques in [N m].
        q: What was measured in [rad] or [m].
        tau: Torque that was applied in [N m] or [N], feedback included, if measured.
    """

    command: Float[np.ndarray, "samples dof"]
    q: Float[np.ndarray, "samples dof"]
    tau: Float[np.ndarray, "samples dof"] | None = None


@dataclass(frozen=True, eq=False)
class Response:
    """A position loop, joint by joint, inverted: r(t) = q(t + d) + a₁ q̇ + a₂ q̈ + a₃ n.

    n is the torque that the model says the motion takes: a loop of gain 1/a₃ leaves a
    position error a₃ n; one with integrators or feedforward has a₃ near 0 and a delay.

    Attributes:
        delay: d per joint in [s].
        weights: a₁ [s], a₂ [s²] and a₃ [rad/(N m)] per joint.
        covariance: Of the three, per joint, by leaving out parts of the attempts.
        unexplained: Root mean square of what friction and couplings add, per joint.
    """

    delay: Float[np.ndarray, " dof"]
    weights: Float[np.ndarray, "dof 3"]
    covariance: Float[np.ndarray, "dof 3 3"]
    unexplained: Float[np.ndarray, " dof"]


@dataclass(frozen=True, eq=False)
class NextAttempt:
    """The command of the next attempt, and what is known by now.

    Attributes:
        command: On the plan's time grid: positions or torques.
        errors: Root-mean-square position error of every attempt and joint.
        worst_factor: Largest factor by which a part of the command error is multiplied
            from attempt to attempt, over what the response may be; below 1 it shrinks.
            None before the first attempt of an arm that takes positions.
        reason: The same in a sentence.
        response: Of a position loop, as identified; None otherwise.
    """

    command: Float[np.ndarray, "samples dof"]
    errors: Float[np.ndarray, "attempts dof"]
    worst_factor: float | None
    reason: str
    response: Response | None = None

    @property
    def overall(self) -> Float[np.ndarray, " attempts"]:
        """Root-mean-square position error over all joints, attempt by attempt."""
        return np.asarray(np.sqrt(np.mean(self.errors**2, axis=1)))


@dataclass(frozen=True, eq=False)
class Practice:
    """One motion of one arm, practised.

    Attributes:
        arm: The model that corrects; its Coulomb friction is left to the attempts.
        plan: The motion to learn.
        settings: How.
        rate_hz: Of the time grid.
        gains: K_p and K_d of the feedback of an arm that takes torques, per joint;
            identified from the attempts where None.
    """

    arm: Arm
    plan: Motion
    settings: PracticeSettings = PracticeSettings()
    rate_hz: float = 200.0
    gains: tuple[np.ndarray, np.ndarray] | None = None
    times: Float[np.ndarray, " samples"] = field(init=False)

    def __post_init__(self) -> None:
        if self.plan.dof != self.arm.dof:
            raise ArgumentError(
                f"The plan moves {self.plan.dof} joints; {self.arm.name} has "
                f"{self.arm.dof}."
            )
        # Four points in a period of the cut-off, or the filter means nothing.
        if self.rate_hz < 4.0 * self.cutoff_hz:
            raise ArgumentError(
                f"A cut-off of {self.cutoff_hz:g} Hz needs a grid of at least "
                f"{4 * self.cutoff_hz:g} Hz, not {self.rate_hz:g}."
            )
        count = round(self.plan.duration * self.rate_hz) + 1
        times = np.arange(count) / self.rate_hz
        object.__setattr__(self, "times", times)

    @property
    def cutoff_hz(self) -> float:
        """Of the low-pass in [Hz]: the one chosen, or the highest that is tried."""
        return self.settings.cutoff_hz or CUTOFFS_HZ[0]

    # Reading.

    def first_command(self) -> Float[np.ndarray, "samples dof"]:
        """The command before any attempt: the plan itself, or its torques."""
        target = self.plan.sample(self.times)
        if self.settings.takes == "position":
            return np.asarray(target.q)
        return Dynamics(self.arm).inverse_dynamics(*target)

    def read_attempt(
        self, recording: Recording, command: np.ndarray, start: float = 0.0
    ) -> Attempt:
        """Take an attempt from a recording; refuse one of another motion.

        Args:
            recording: With q, and with tau where torques are commanded.
            command: What was commanded, on the plan's time grid.
            start: Time in the recording at which the motion began, in [s].

        Raises:
            RecordingError: If it is too short or follows something else.
        """
        q = self._channel(recording, "q", start)
        tau = self._channel(recording, "tau", start) if "tau_1" in recording else None
        if self.settings.takes == "torque" and tau is None and self.gains is None:
            raise RecordingError(
                f"{recording.source} holds no torque that was applied (tau_1 …). "
                "Record it, or give the gains of the feedback."
            )
        away, travel = self._deviation(q)
        worst = int(np.argmax(away - travel))
        if away[worst] > travel[worst]:
            raise RecordingError(
                f"{recording.source} does not follow the plan: "
                f"{self.arm.coordinate_names[worst]} is {away[worst]:.3g} off, and "
                f"travels {2.0 * travel[worst]:.3g}. {self._other_start(recording)}"
            )
        return Attempt(command, q, tau)

    def _deviation(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far joints are off the plan at most, and how far they may be."""
        target = self.plan.sample(self.times).q
        # Judgement: a loop that is worth practising stays within half its travel; below
        # a hundredth of a radian nothing can be said.
        allowed = np.maximum(0.5 * np.ptp(target, axis=0), 0.01)
        return np.abs(q - target).max(axis=0), allowed

    def _other_start(self, recording: Recording) -> str:
        """When the motion began, if the recording follows the plan from then on."""
        time = recording["q_1"].time
        # Judgement: within a hundredth of a second of its start a motion is followed.
        starts = np.arange(time[0], time[-1] - self.times[-1] + 1e-9, 0.01)
        tried = [self._deviation(self._channel(recording, "q", x)) for x in starts]
        worst = [float((away / allowed).max()) for away, allowed in tried]
        if worst and min(worst) < 1.0:
            best = starts[int(np.argmin(worst))]
            return f"It does from {best:.2f} s on: give --start {best:.2f}."
        return "Is it another motion's log?"

    def _channel(self, recording: Recording, kind: str, start: float) -> np.ndarray:
        columns = []
        for j in range(self.arm.dof):
            channel = recording[f"{kind}_{j + 1}"]
            first, last = channel.time[0] - start, channel.time[-1] - start
            # One sample of the grid: logs end with the last sample, not after it.
            slack = 2.0 / self.rate_hz
            if first > slack or last < self.times[-1] - slack:
                raise RecordingError(
                    f"{recording.source} lasts from {first:.3f} to {last:.3f} s after "
                    f"the motion began; the plan takes 0 to {self.times[-1]:.3f} s."
                )
            columns.append(np.interp(self.times, channel.time - start, channel.values))
        return np.stack(columns, axis=1)

    # Correcting.

    def next(self, attempts: Sequence[Attempt]) -> NextAttempt:
        """Return the command after these attempts.

        Raises:
            NotConverged: If practice would diverge; nothing is to be executed.
        """
        target = self.plan.sample(self.times).q
        errors = np.array([_rms(one.q - target) for one in attempts])
        errors = errors.reshape(-1, self.arm.dof)
        is_torque = self.settings.takes == "torque"
        if not attempts and is_torque:
            return self._next_torque(attempts, errors)
        if not attempts:
            reason = (
                "How the arm follows a reference is not known yet: the first attempt, "
                "with the plan itself, will show it."
            )
            return NextAttempt(self.first_command(), errors, None, reason)
        response = None if is_torque else self.identify_response(attempts)
        cutoff = self.settings.cutoff_hz
        cutoffs: Sequence[float] = CUTOFFS_HZ if cutoff is None else (cutoff,)
        if cutoff is None and is_torque:
            widest = self._earned_cutoff_hz(_overall(errors))
            cutoffs = (widest, *(c for c in CUTOFFS_HZ if c < widest))
        for cutoff_hz in cutoffs:
            try:
                slower = self._below(cutoff_hz)
                if response is None:
                    return slower._next_torque(attempts, errors)
                return slower._next_position(attempts, errors, response)
            except NotConverged:
                # The lowest says why, if it diverges as well.
                if cutoff_hz == cutoffs[-1]:
                    raise
        raise AssertionError

    def _earned_cutoff_hz(self, errors: Float[np.ndarray, " attempts"]) -> float:
        """Cut-off that attempts of such errors allow in [Hz].

        How far up a rigid model is right no analysis of it can say; attempts do. Each
        that was better than all before allows twice the cut-off, each that was not
        takes it back.
        """
        steps = sum(
            1 if error < errors[:k].min() else -1 for k, error in enumerate(errors) if k
        )
        # Eight points in a period of the highest.
        highest = self.rate_hz / 8.0
        return float(np.clip(CUTOFFS_HZ[0] * 2.0**steps, CUTOFFS_HZ[-1], highest))

    def _next_position(
        self, attempts: Sequence[Attempt], errors: np.ndarray, response: Response
    ) -> NextAttempt:
        factor, where = self._worst_factor(response)
        reason = self._verdict(factor, where)
        last = attempts[int(np.argmin(_overall(errors)))]
        target = self.plan.sample(self.times).q
        correction = self._position_correction(response, last.q, target)
        command = last.command - self.settings.gain * correction
        self._require_within("positions", command)
        return NextAttempt(command, errors, factor, reason, response)

    def _below(self, cutoff_hz: float) -> Practice:
        return replace(self, settings=replace(self.settings, cutoff_hz=cutoff_hz))

    def _require_within(self, what: str, command: np.ndarray) -> None:
        limits = (
            (self.arm.limits("lower"), self.arm.limits("upper"))
            if what == "positions"
            else (-self.arm.limits("effort"), self.arm.limits("effort"))
        )
        beyond = np.maximum(command - limits[1], limits[0] - command).max(axis=0)
        worst = int(np.argmax(beyond))
        if beyond[worst] > 0:
            raise NotConverged(
                f"The next {what} leave the limits of "
                f"{self.arm.coordinate_names[worst]} by {beyond[worst]:.3g}; nothing "
                "was written. Plan a motion with more room."
            )

    def _verdict(self, factor: float, where: str) -> str:
        name = {"inverse": "the inverse response", "error": "the error itself"}
        words = (
            f"Practice with {name[self.settings.rule]}, a cut-off of "
            f"{self.cutoff_hz:g} Hz and a gain of {self.settings.gain:g}"
        )
        bound = f"errors are multiplied by at most {factor:.3g} an attempt ({where})"
        if factor > 1.0 + LEFT_ALONE:
            raise NotConverged(
                f"{words} would diverge: {bound}. Lower the cut-off or the gain, "
                + ("" if self.settings.rule == "inverse" else "use --rule inverse, ")
                + "or give a better model."
            )
        return f"{words} converges: {bound}."

    # Torques.

    @property
    def _smooth_arm(self) -> Arm:
        """The model without what has a sign: noisy velocities would chatter."""
        parameters = self.arm.parameters.copy()
        parameters[self.arm.layout.drive("coulomb")] = 0.0
        return self.arm.with_parameters(parameters)

    def _next_torque(
        self, attempts: Sequence[Attempt], errors: np.ndarray
    ) -> NextAttempt:
        gains = self.gains
        if gains is None and not attempts:
            reason = (
                "The gains of the feedback are not known yet: the first attempt, with "
                "the model's torques, will show them."
            )
            return NextAttempt(self.first_command(), errors, None, reason)
        if gains is None:
            gains = self._feedback_gains(attempts)
        analysis = self._analyse(gains)
        reason = analysis.reason
        if not attempts:
            factor = analysis.largest_singular_value
            return NextAttempt(self.first_command(), errors, factor, reason)
        last = attempts[int(np.argmin(_overall(errors)))]
        target = self.plan.sample(self.times).q
        taken = self._torque(last.q) - self._torque(target)
        back = self._fed_back(last, gains)
        command = last.command + self.settings.gain * (back - taken)
        self._require_within("torques", command)
        factor = analysis.largest_singular_value
        return NextAttempt(command, errors, factor, reason)

    def _fed_back(
        self, attempt: Attempt, gains: tuple[np.ndarray, np.ndarray]
    ) -> Float[np.ndarray, "samples dof"]:
        """Torque of the feedback in an attempt in [N m] or [N], low-passed.

        By its law, joint by joint, where what was applied shows nothing beside it but
        noise: noise that is put into a command comes back as an error. As measured,
        where the feedback does more than the law says.
        """
        error = self._smooth(self.plan.sample(self.times).q - attempt.q)
        law: np.ndarray = gains[0] * error + gains[1] * self._rates(error)[0]
        if attempt.tau is None:
            return law
        beside = attempt.tau - attempt.command - law
        slow = self._smooth(beside)
        # White noise has the same density below the cut-off as above it.
        band = min(2.0 * self.cutoff_hz / self.rate_hz, 0.5)
        expected = np.var(beside - slow, axis=0) * band / (1.0 - band)
        is_noise = np.mean(slow**2, axis=0) < _MORE_THAN_NOISE * expected
        return np.where(is_noise, law, law + slow)

    def _feedback_gains(
        self, attempts: Sequence[Attempt]
    ) -> tuple[np.ndarray, np.ndarray]:
        """K_p and K_d from what was applied beside the command."""
        target = self.plan.sample(self.times).q
        error = [self._smooth(target - one.q) for one in attempts]
        e = np.concatenate(error)
        ed = np.concatenate([self._rates(x)[0] for x in error])
        back = [self._smooth(x.tau - x.command) for x in attempts if x.tau is not None]
        right = np.concatenate(back)
        pairs = [
            np.linalg.lstsq(np.stack(columns, axis=1), b, rcond=None)[0]
            for *columns, b in zip(e.T, ed.T, right.T, strict=True)
        ]
        kp, kd = np.array(pairs).T
        # Noise may make a small gain negative; the analysis needs a stable loop.
        return np.maximum(kp, 1e-9), np.maximum(kd, 1e-9)

    def _analyse(self, gains: tuple[np.ndarray, np.ndarray]) -> LearningAnalysis:
        """Convergence on arms that differ from the model: the worst of them."""
        model = self._smooth_arm
        # Judgement: sixty intervals show growth; the matrices stay small.
        samples = 60
        lowpass = ZeroPhase(self.cutoff_hz)
        operator = inverse_model_along(Dynamics(model), self.plan, samples, lowpass)
        worst: LearningAnalysis | None = None
        # Judgement: four wrong arms, each link wrong in its own way.
        for seed in range(4):
            arm = perturbed(model, self.settings.model_error, seed)
            loop = linearise_along(Dynamics(arm), self.plan, *gains, samples)
            one = analyse_learning(loop, operator, updates=5)
            if worst is None or one.transient_growth > worst.transient_growth:
                worst = one
            one.require_recommended()
        assert worst is not None
        return worst

    # Positions.

    def identify_response(self, attempts: Sequence[Attempt]) -> Response:
        """Find how a position loop answers, joint by joint, from all attempts.

        Coulomb friction and a constant ride along as columns, so that they bend no
        weight; they are left to the correction, which sees them in the error.
        """
        dof = self.arm.dof
        delay, unexplained = np.zeros(dof), np.zeros(dof)
        weights, covariance = np.zeros((dof, 3)), np.zeros((dof, 3, 3))
        states = [self._state(one.q) for one in attempts]
        torque = np.concatenate([self._torque(one.q) for one in attempts])
        command = np.concatenate([self._smooth(one.command) for one in attempts])
        qd, qdd = (np.concatenate([x[k] for x in states]) for k in (1, 2))
        for j in range(dof):
            if not np.ptp(qd[:, j]):
                raise NotIdentifiable(
                    f"{self.arm.coordinate_names[j]} does not move in the attempt: "
                    "its response cannot be identified. Plan a motion of it."
                )
            direction = np.tanh(qd[:, j] / self._slow(qd[:, j]))
            columns = (qd[:, j], qdd[:, j], torque[:, j], direction, np.ones(len(qd)))
            A = np.stack(columns, axis=1)

            def behind(d: float, j: int = j) -> np.ndarray:
                late = [
                    np.interp(self.times + d, self.times, x.q[:, j]) for x in states
                ]
                return np.asarray(command[:, j] - np.concatenate(late))

            # Judgement: no loop that can be practised is later than 150 ms.
            for steps in (np.arange(0.0, 0.15, 0.01), np.arange(-0.009, 0.01, 0.001)):
                tried = np.unique(np.maximum(steps + delay[j], 0.0))
                costs = np.array([_fit(A, behind(float(d)))[1] for d in tried])
                # A slow motion hardly tells a delay from a lag: the shortest delay
                # that explains it as well, within a twentieth, asks for the least.
                delay[j] = tried[int(np.argmax(costs <= 1.05 * costs.min() + 1e-18))]
            b = behind(float(delay[j]))
            solution, cost = _fit(A, b)
            weights[j], covariance[j] = solution[:3], _jackknife(A, b)[:3, :3]
            unexplained[j] = np.sqrt(cost / len(b))
        return Response(delay, weights, covariance, unexplained)

    def _position_correction(
        self, response: Response, q: np.ndarray, target: np.ndarray
    ) -> Float[np.ndarray, "samples dof"]:
        """What must be taken from the reference, low-passed without delay."""
        if self.settings.rule == "error":
            return self._smooth(q - target)
        return self._inverse(response, q) - self._inverse(response, target)

    def _inverse(self, response: Response, q: np.ndarray) -> np.ndarray:
        state, torque = self._state(q), self._torque(q)
        late = np.stack(
            [
                np.interp(self.times + d, self.times, state.q[:, j])
                for j, d in enumerate(response.delay)
            ],
            axis=1,
        )
        parts = np.stack([state.qd, state.qdd, torque], axis=-1)
        return np.asarray(late + np.einsum("sjk,jk->sj", parts, response.weights))

    def _worst_factor(self, response: Response) -> tuple[float, str]:
        """|1 − gain F L G| at its largest, over frequencies and what G may be.

        L is the inverse that corrects, F the low-pass, G the loop: as identified, and
        with weights drawn from their covariance, half a sample more or less of delay,
        and inertias off by the model's error. Joint by joint; couplings are left out.

        Returns:
            The factor; of what converges that up to half the cut-off, as beyond it
            nothing is learned and the factor is 1. And where it is.
        """
        s = 2j * np.pi * np.geomspace(0.05, self.rate_hz / 2, 400)
        lowpass = 1.0 / (1.0 + (np.abs(s) / (2 * np.pi * self.cutoff_hz)) ** 4)
        M = Dynamics(self.arm).mass_matrix(self.plan.sample(self.times[::10]).q)
        rng = np.random.default_rng(0)
        hz = np.abs(s) / (2 * np.pi)
        is_learned = hz <= 0.5 * self.cutoff_hz
        worst, within = (0.0, ""), (0.0, "")
        for j in range(self.arm.dof):
            inertia = M[:, j, j]
            root = _root(response.covariance[j])

            def inverse(d: float, a: np.ndarray, m: float) -> np.ndarray:
                return np.asarray(np.exp(s * d) + a[0] * s + (a[1] + a[2] * m) * s**2)

            mean = float(np.mean(inertia))
            corrects = inverse(response.delay[j], response.weights[j], mean)
            if self.settings.rule == "error":
                corrects = np.ones_like(s)
            # Judgement: twenty draws of each extreme inertia.
            for m in (inertia.min(), mean, inertia.max()):
                for k in range(20):
                    off = 1.0 + self.settings.model_error * rng.uniform(-1.0, 1.0)
                    a = response.weights[j] + root @ rng.standard_normal(3)
                    d = response.delay[j] + rng.uniform(-0.5, 0.5) / self.rate_hz
                    a = response.weights[j] if k == 0 else a
                    G = 1.0 / inverse(d, a, m * off)
                    factor = np.abs(1.0 - self.settings.gain * lowpass * corrects * G)
                    name = self.arm.coordinate_names[j]
                    at, low = int(np.argmax(factor)), int(np.argmax(factor[is_learned]))
                    worst = max(worst, (factor[at], f"{name} at {hz[at]:.2g} Hz"))
                    within = max(within, (factor[low], f"{name} at {hz[low]:.2g} Hz"))
        return worst if worst[0] > 1.0 + _BEYOND_BAND else within

    # Signals on the grid.

    def _smooth(self, signal: np.ndarray) -> np.ndarray:
        return ZeroPhase(self.cutoff_hz).apply(signal, self.rate_hz)

    def _rates(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        qd = np.gradient(q, 1.0 / self.rate_hz, axis=0)
        return qd, np.gradient(qd, 1.0 / self.rate_hz, axis=0)

    def _state(self, q: np.ndarray) -> MotionSample:
        smooth = self._smooth(q)
        return MotionSample(smooth, *self._rates(smooth))

    def _torque(self, q: np.ndarray) -> np.ndarray:
        return Dynamics(self._smooth_arm).inverse_dynamics(*self._state(q))

    def _slow(self, qd: np.ndarray) -> float:
        # Judgement: a hundredth of the top speed; slower, a direction is noise.
        return max(0.01 * float(np.abs(qd).max()), 1e-6)

    def as_motion(self, command: np.ndarray) -> SampledMotion:
        """Return a motion whose positions, or efforts, are a command."""
        target = self.plan.sample(self.times)
        if self.settings.takes == "torque":
            return SampledMotion(self.times, *target, effort=command)
        return SampledMotion(self.times, command, *self._rates(command))

    def to_dict(self) -> dict[str, Any]:
        """What a folder of attempts must agree on."""
        return {
            "arm": self.arm.name,
            "joints": list(self.arm.coordinate_names),
            "takes": self.settings.takes,
            "rate_hz": self.rate_hz,
            # Another plan has other positions somewhere along it.
            "plan": digest(self.plan.sample(self.times).q.round(9).tolist()),
        }


def _fit(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """Least squares with weights that are not negative, but for the constant, last.

    A loop with a negative lag, inertia or compliance does not exist; without these
    bounds a short motion, which shows little, would have one.
    """
    from scipy.optimize import nnls

    scale = np.maximum(np.abs(A).max(axis=0), 1e-300)
    solution, _ = nnls(np.column_stack([A / scale, -A[:, -1] / scale[-1]]), b)
    weights = np.append(solution[:-2], solution[-2] - solution[-1]) / scale
    return weights, float(np.sum((A @ weights - b) ** 2))


def _jackknife(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Covariance by leaving out one of ten stretches: residuals are not independent."""
    parts = np.array_split(np.arange(len(b)), 10)
    whole = np.arange(len(b))
    fits = [_fit(A[np.setdiff1d(whole, p)], b[np.setdiff1d(whole, p)])[0]
            for p in parts]  # fmt: skip
    spread = np.array(fits) - np.mean(fits, axis=0)
    return np.asarray(0.9 * spread.T @ spread)


def _root(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _overall(errors: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.mean(errors**2, axis=1)))


def _rms(error: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.mean(error**2, axis=0)))


# The folder that remembers attempts.

_SETTINGS, _NEXT = "practice.json", "next.npz"


def practise(
    practice: Practice,
    folder: str | Path,
    recording: Recording | None = None,
    start: float = 0.0,
) -> NextAttempt:
    """Add an attempt to a folder and return the command of the next one.

    Args:
        practice: The arm, the plan and the settings.
        folder: Of the attempts so far; made if need be.
        recording: Of the attempt with the command that was returned last, or with
            the first command if none was; None to get the command again.
        start: Time in the recording at which the motion began, in [s].

    Raises:
        NotConverged: If practice would diverge. The attempt is remembered.
        RecordingError: If it is of another motion, or was added before.
        ArgumentError: If the folder holds practice of another motion or arm.
    """
    path = Path(folder)
    attempts = _remembered(practice, path)
    if recording is not None:
        command = practice.first_command()
        if (path / _NEXT).exists():
            command = _arrays(path / _NEXT)["command"]
        attempt = practice.read_attempt(recording, command, start)
        if any(np.array_equal(attempt.q, one.q) for one in attempts):
            raise RecordingError(
                f"{recording.source} was added before. Execute the next command and "
                "record it; to have that written again, leave this attempt out."
            )
        attempts.append(attempt)
        path.mkdir(parents=True, exist_ok=True)
        text = json_text(practice.to_dict())
        write_atomically(path / _SETTINGS, text)
        fields = {k: x for k, x in vars(attempt).items() if x is not None}
        _write(path / f"attempt_{len(attempts):03}.npz", fields)
    following = practice.next(attempts)
    if recording is not None:
        _write(path / _NEXT, {"command": following.command})
    return following


def _remembered(practice: Practice, folder: Path) -> list[Attempt]:
    if not (folder / _SETTINGS).exists():
        return []
    try:
        stored = json.loads(read_bounded(folder / _SETTINGS, ArgumentError))
    except (ValueError, RecursionError) as problem:
        raise ArgumentError(f"{folder / _SETTINGS} is damaged: {problem}.") from problem
    if stored != practice.to_dict():
        raise ArgumentError(
            f"{folder} remembers practice of another motion, arm or kind of command. "
            "Name another folder."
        )
    files = sorted(folder.glob("attempt_*.npz"))
    return [_attempt(file, practice) for file in files]


def _attempt(file: Path, practice: Practice) -> Attempt:
    arrays = _arrays(file)
    shape = (practice.times.size, practice.arm.dof)
    if not {"command", "q"} <= set(arrays) or any(
        x.shape != shape or not np.all(np.isfinite(x)) for x in arrays.values()
    ):
        raise ArgumentError(f"{file} is not an attempt of this motion. Remove it.")
    return Attempt(arrays["command"], arrays["q"], arrays.get("tau"))


def _arrays(file: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(file, allow_pickle=False) as stored:
            return {name: np.array(stored[name], float) for name in stored.files}
    except Exception as problem:
        raise ArgumentError(f"{file} is damaged ({problem}). Remove it.") from problem


def _write(file: Path, arrays: dict[str, np.ndarray]) -> None:
    with replacing(file) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
