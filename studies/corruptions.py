"""Study of corrupted logs: how many are caught, repaired, or called good though wrong.

    python -m studies.corruptions --runs 120 --seed 1

Arms that differ from their descriptions by 15 %, with friction, noise and encoder
steps, move at random; their logs are then spoilt as real ones are, and identified as
usual. A run is *caught* if it is refused or a warning names the data, *repaired* if
what was wrong was mended with a note and the model is right, *harmless* if the model is
right all the same, and *wrong* otherwise: a wrong model called good. A model is right
if it predicts another motion of the true arm within 5 % of every joint's torque and its
base parameters are within four standard deviations, or 5 %, of the truth.

Left out is what no torque can show: an offset of the first joint's encoder about a
vertical axis or of the last one's, and the gain of the last joint.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import armwise as aw
from armwise.arms import Arm, Drive, load_arm
from armwise.dynamics import Dynamics
from armwise.errors import ArmwiseError
from armwise.identification import DOUBTFUL_DATA, WRONG_DATA, Estimate
from armwise.motions import random_motion
from armwise.plants import perturbed
from armwise.recordings import Recording, Samples

ARMS = ("panda", "ur5", "puma560", "ur10", "iiwa")
"""Bundled arms that are spoilt, as far as they are there."""

NAMED = frozenset(
    {"unexplained-torque", "same-log-twice", "torque-gains-differ"}
    | WRONG_DATA
    | DOUBTFUL_DATA
)
"""Warnings that name the data; condition numbers and the like do not count."""


@dataclass(frozen=True, eq=False)
class Log:
    """A log in memory, and the arm it is taken for.

    Attributes:
        arm: The description.
        time, q, tau: What was measured.
        more: Further logs of the same fit.
        validation: A log to validate on.
    """

    arm: Arm
    time: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    more: tuple[Log, ...] = ()
    validation: Log | None = None

    @property
    def recording(self) -> Recording:
        """The log as `identify` takes it."""
        tau = self.tau if self.tau.size else None
        return Recording.from_arrays(self.time, q=self.q, tau=tau)


@dataclass(frozen=True, eq=False)
class Scene:
    """A true arm, its description, and random numbers.

    Attributes:
        name: Which bundled arm.
        described: What is thought to be true.
        true: What is.
        size: Largest torque of each joint in [N m].
        rng: Random numbers of this run.
    """

    name: str
    described: Arm
    true: Arm
    size: np.ndarray
    rng: np.random.Generator

    @classmethod
    def of(cls, name: str, seed: int) -> Scene:
        """An arm with friction that differs from its description."""
        described = load_arm(name)
        arm = perturbed(described, 0.15, seed)
        motion = random_motion(described, seed, 20.0).sample(np.linspace(0, 20, 400))
        torque = Dynamics(arm).inverse_dynamics(motion.q, motion.qd, motion.qdd)
        size, speed = np.abs(torque).max(axis=0), np.abs(motion.qd).max(axis=0)
        joints = [
            replace(
                joint,
                drive=Drive(joint.drive.rotor_inertia, 0.04 * s / v, 0.04 * s, 0.0),
            )
            for joint, s, v in zip(arm.joints, size, speed, strict=True)
        ]
        rng = np.random.default_rng(seed + 7000)
        return cls(name, described, replace(arm, joints=tuple(joints)), size, rng)

    def record(self, arm: Arm | None = None, rate: float = 500.0) -> Log:
        """Measure a random motion of 20 s with noise, encoder steps and friction."""
        plant = self.true if arm is None else arm
        motion = random_motion(self.described, int(self.rng.integers(1 << 30)), 20.0)
        time = np.arange(int(20.0 * rate)) / rate
        sample = motion.sample(time)
        tau = Dynamics(plant).inverse_dynamics(sample.q, sample.qd, sample.qdd)
        tau = tau + 0.01 * self.size * self.rng.normal(size=tau.shape)
        # 17 bits a turn.
        q = np.round(sample.q * 131072 / (2 * np.pi)) * (2 * np.pi) / 131072
        return Log(self.described, time, q, tau)

    def loaded(self, mass: float) -> Arm:
        """The true arm with a point mass at the last link's origin."""
        last = self.true.layout.link(len(self.true.links) - 1)
        parameters = self.true.parameters.copy()
        # A point at 5 cm along z: m, mz and the moments of inertia it has.
        parameters[last] += mass * np.array([1, 0, 0, 0.05, 0.0025, 0, 0, 0.0025, 0, 0])
        return self.true.with_parameters(parameters)

    def joint(self, first: int = 0, last: int = 0) -> int:
        """One of the joints, some at either end left out."""
        return int(self.rng.integers(first, self.true.dof - last))

    def pair(self) -> tuple[int, int]:
        """Two different joints."""
        i, j = self.rng.choice(self.true.dof, 2, replace=False)
        return int(i), int(j)


Spoil = Callable[[Scene, Log], Log]


def _column(
    values: np.ndarray, j: int, change: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    spoilt = values.copy()
    spoilt[:, j] = change(spoilt[:, j])
    return spoilt


def _exchanged(values: np.ndarray, i: int, j: int) -> np.ndarray:
    spoilt = values.copy()
    spoilt[:, [i, j]] = spoilt[:, [j, i]]
    return spoilt


def _clock(factor: float) -> Spoil:
    return lambda scene, log: replace(log, time=factor * log.time)


def _received(scene: Scene, log: Log) -> Log:
    late = log.time + scene.rng.exponential(0.002, log.time.size)
    return replace(log, time=np.maximum.accumulate(late))


def _bunched(scene: Scene, log: Log) -> Log:
    place = np.arange(log.time.size)
    bunch = 10
    last = np.minimum(place // bunch * bunch + bunch - 1, log.time.size - 1)
    return replace(log, time=log.time[last] + 1e-5 * (place % bunch))


def _wrapped(scene: Scene, log: Log) -> Log:
    j = scene.joint()
    # The turn ends where the joint passes, as ±π does for a joint that works there.
    end = np.median(log.q[:, j])
    return replace(log, q=_column(log.q, j, lambda q: (q - end) % (2 * np.pi) + end))


def _swapped(scene: Scene, log: Log) -> Log:
    i, j = scene.pair()
    return replace(log, q=_exchanged(log.q, i, j), tau=_exchanged(log.tau, i, j))


def _alphabetical(scene: Scene, log: Log) -> Log:
    names = [f"{word}_{k}" for k, word in enumerate(scene.described.coordinate_names)]
    order = np.argsort(names[: len(names)])
    if np.array_equal(order, np.arange(len(names))):
        order = np.roll(np.arange(len(names)), 1)
        order[: len(names)] = [2, 1, 0, *range(3, len(names))]  # as UR drivers do
    return replace(log, q=log.q[:, order], tau=log.tau[:, order])


def _clipped(scene: Scene, log: Log) -> Log:
    j = int(np.argmax(scene.size))
    most = 0.5 * np.abs(log.tau[:, j]).max()
    return replace(log, tau=_column(log.tau, j, lambda t: np.clip(t, -most, most)))


def _stuck(scene: Scene, log: Log) -> Log:
    half = log.time.size // 2

    def stop(q: np.ndarray) -> np.ndarray:
        q[half:] = q[half]
        return q

    return replace(log, q=_column(log.q, scene.joint(), stop))


def _later(scene: Scene, log: Log, delay: Callable[[np.ndarray], np.ndarray]) -> Log:
    late = [np.interp(log.time - delay(log.time), log.time, t) for t in log.tau.T]
    return replace(log, tau=np.stack(late, axis=1))


def _pushed(scene: Scene, log: Log) -> Log:
    j = scene.joint(last=1)
    start = float(scene.rng.uniform(4.0, 15.0))
    push = 2.0 * scene.size[j] * ((log.time > start) & (log.time < start + 1.0))
    return replace(log, tau=_column(log.tau, j, lambda t: t + push))


def _slow(scene: Scene, log: Log) -> Log:
    return replace(log, time=log.time[::50], q=log.q[::50], tau=log.tau[::50])


def _mounted(scene: Scene, log: Log) -> Log:
    angle = np.radians(scene.rng.uniform(20.0, 45.0))
    around = scene.rng.uniform(0.0, 2 * np.pi)
    across = np.array([np.cos(around), np.sin(around), 0.0])
    down = np.array([0.0, 0.0, -1.0])
    gravity = 9.81 * (np.cos(angle) * down + np.sin(angle) * across)
    return scene.record(scene.true.with_gravity(gravity))


def _other_arm(scene: Scene, log: Log) -> Log:
    others = {"ur5": "ur10", "ur10": "ur5", "panda": "iiwa", "iiwa": "panda"}
    other = load_arm(others.get(scene.name, "ur5"))
    if other.dof != scene.true.dof:
        other = load_arm("ur10" if scene.true.dof == 6 else "panda")
    return replace(log, arm=other)


def _gain(factor: float) -> Spoil:
    def spoil(scene: Scene, log: Log) -> Log:
        j = scene.joint(last=1)
        return replace(log, tau=_column(log.tau, j, lambda t: factor * t))

    return spoil


def _offset(degrees: float) -> Spoil:
    def spoil(scene: Scene, log: Log) -> Log:
        j = scene.joint(first=1, last=1)
        return replace(log, q=_column(log.q, j, lambda q: q + np.radians(degrees)))

    return spoil


KINDS: dict[str, Spoil] = {
    "nothing": lambda scene, log: log,
    "time in ms": _clock(1e3),
    "time in µs": _clock(1e6),
    "time in ns": _clock(1e9),
    "time × 2": _clock(2.0),
    "time × 0.7": _clock(0.7),
    "stamps of reception": _received,
    "stamps in bunches": _bunched,
    "angles wrapped": _wrapped,
    "joints in the driver's order": _alphabetical,
    "two joints exchanged": _swapped,
    "two torques exchanged": lambda s, log: replace(
        log, tau=_exchanged(log.tau, *s.pair())
    ),
    "two positions exchanged": lambda s, log: replace(
        log, q=_exchanged(log.q, *s.pair())
    ),
    "absolute torques": lambda s, log: replace(log, tau=np.abs(log.tau)),
    "one torque reversed": _gain(-1.0),
    "all torques reversed": lambda s, log: replace(log, tau=-log.tau),
    "one position reversed": lambda s, log: replace(
        log, q=_column(log.q, s.joint(first=1, last=1), np.negative)
    ),
    "torque × 1.1": _gain(1.1),
    "torque × 2": _gain(2.0),
    "motor torques": lambda s, log: replace(log, tau=log.tau / 100.0),
    "mN m": lambda s, log: replace(log, tau=1e3 * log.tau),
    "no torque": lambda s, log: replace(log, tau=np.zeros((0, 0))),
    "torque of zeros": lambda s, log: replace(log, tau=0.0 * log.tau),
    "torque clipped": _clipped,
    "torque is noise": lambda s, log: replace(
        log, tau=s.size * s.rng.normal(size=log.tau.shape)
    ),
    "degrees": lambda s, log: replace(log, q=np.degrees(log.q)),
    "one joint in degrees": lambda s, log: replace(
        log, q=_column(log.q, s.joint(last=1), np.degrees)
    ),
    "encoder 5° off": _offset(5.0),
    "encoder 20° off": _offset(-20.0),
    "encoder stuck": _stuck,
    "torque 300 ms late": lambda s, log: _later(s, log, lambda t: 0.3 + 0.0 * t),
    "clocks drift by 2 %": lambda s, log: _later(s, log, lambda t: 0.02 * t),
    "10 Hz": _slow,
    "mount tilted": _mounted,
    "another arm's description": _other_arm,
    "pushed for 1 s": _pushed,
    "same log twice": lambda s, log: replace(log, more=(log,)),
    "validated on the fit": lambda s, log: replace(log, validation=log),
    "two logs, 3 kg in one": lambda s, log: replace(
        log,
        more=(
            s.record(
                s.loaded(0.1 * float(s.true.parameters[s.true.layout.mass].sum()))
            ),
        ),
    ),
    "two logs, one torque / 50 in one": lambda s, log: replace(
        log, more=(_gain(0.02)(s, s.record()),)
    ),
    "two logs, cold and warm": lambda s, log: replace(
        log, more=(s.record(_warm(s.true)),)
    ),
}
"""What may be wrong with a log → how to spoil one."""


def _warm(arm: Arm) -> Arm:
    """The arm with half its friction."""
    joints = [
        replace(
            joint,
            drive=replace(
                joint.drive,
                viscous=0.4 * joint.drive.viscous,
                coulomb=0.5 * joint.drive.coulomb,
            ),
        )
        for joint in arm.joints
    ]
    return replace(arm, joints=tuple(joints))


@dataclass(frozen=True)
class Outcome:
    """What became of one corrupted log.

    Attributes:
        kind: What was wrong.
        arm: Of which arm.
        result: caught, repaired, harmless or wrong.
        why: Code of the warning, or the refusal.
    """

    kind: str
    arm: str
    result: str
    why: str


def examine(kind: str, name: str, seed: int) -> Outcome:
    """Spoil one log and see what identification makes of it."""
    scene = Scene.of(name, seed)
    log = KINDS[kind](scene, scene.record())
    try:
        estimate = aw.identify(
            log.arm,
            [log.recording, *(one.recording for one in log.more)],
            validation=None if log.validation is None else log.validation.recording,
        )
    except ArmwiseError as error:
        return Outcome(kind, name, "caught", str(error)[:100])
    codes = [w.code for w in estimate.warnings if w.code in NAMED]
    if codes:
        return Outcome(kind, name, "caught", ", ".join(codes))
    is_mended = any(w.code == "log-note" for w in estimate.warnings)
    if is_right(scene, estimate):
        return Outcome(kind, name, "repaired" if is_mended else "harmless", "")
    return Outcome(kind, name, "wrong", "log-note" if is_mended else "nothing said")


def is_right(scene: Scene, estimate: Estimate) -> bool:
    """Tell whether a model is right: it predicts, and its intervals hold the truth."""
    motion = random_motion(scene.described, 424242, 10.0).sample(np.arange(0, 10, 0.02))
    tau = Dynamics(scene.true).inverse_dynamics(motion.q, motion.qd, motion.qdd)
    other = Samples(time=np.arange(0, 10, 0.02), q=motion.q, qd=motion.qd,
                    qdd=motion.qdd, tau=tau)  # fmt: skip
    if estimate.prior_arm.dof != scene.true.dof:
        return False
    if estimate.validate(other).relative_error.max() > 0.05:
        return False
    extra = np.zeros(len(estimate.columns.friction))
    truth = estimate.base.values(np.concatenate([scene.true.parameters, extra]))
    error = np.abs(estimate.base_values - truth)
    slack = np.maximum(4.0 * estimate.base_std, 0.05 * np.abs(truth))
    # Friction terms that are superfluous share with those that are not.
    return bool(np.mean(error <= slack) > 0.8)


def study(runs: int, seed: int, report: Callable[[Outcome], None]) -> list[Outcome]:
    """Spoil logs of all kinds and arms in turn."""
    from armwise.arms import bundled_arms

    arms = [name for name in ARMS if name in bundled_arms()]
    kinds = [kind for kind in KINDS if kind != "nothing"]
    outcomes = []
    for k in range(runs):
        outcome = examine(kinds[k % len(kinds)], arms[k % len(arms)], seed + k)
        outcomes.append(outcome)
        report(outcome)
    return outcomes


def main() -> None:
    """Print a line a run, and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sound", type=int, default=20, help="sound logs beside them")
    options = parser.parse_args()

    def show(outcome: Outcome) -> None:
        print(
            f"{outcome.result:9} {outcome.arm:9} {outcome.kind:30} {outcome.why}",
            flush=True,
        )

    outcomes = study(options.runs, options.seed, show)
    counts = Counter(outcome.result for outcome in outcomes)
    good = sum(counts[word] for word in ("caught", "repaired", "harmless"))
    print(
        dict(counts),
        f"{100 * good / max(len(outcomes), 1):.1f} % not called good wrongly",
    )
    alarms = 0
    for k in range(options.sound):
        outcome = examine("nothing", ARMS[k % 4], options.seed + 5000 + k)
        alarms += outcome.result == "caught"
        if outcome.result != "harmless":
            show(outcome)
    print(f"false alarms: {alarms} of {options.sound} sound logs")


if __name__ == "__main__":
    main()
