"""Two-rate runtime: timed on this machine, and its torque error in simulation.

The background task takes a state, works a whole period on it and hands over M and h;
they serve the synchronous task for the next period. When they are used, they are one to
two periods old. Worked out for where the arm will be one and a half periods later, most
of that age is made good.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm
from armwise.codegen.accuracy import friction_torque
from armwise.codegen.files import RUNTIME_FUNCTIONS
from armwise.codegen.generate import GeneratedCode, generate
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, ArmwiseError
from armwise.motions import Motion, MotionSample
from armwise.programs import find_compiler

if TYPE_CHECKING:
    from jaxtyping import Float


_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread")

# Judgement: 33 minutes at 1 kHz; three arrays of them are 24 MB.
MOST_SAMPLES = 2_000_000
"""Samples that the generated program keeps times of."""


@dataclass(frozen=True)
class Times:
    """Durations of many rounds in [s]."""

    median: float
    p99: float
    p999: float
    worst: float


@dataclass(frozen=True)
class RealtimeReport:
    """How both tasks kept time.

    Attributes:
        samples: Synchronous samples.
        rate_hz: How many a second there were.
        deadline_misses: Samples that were not done before the next was due.
        real_time_priority: Whether the system granted it to the synchronous task.
        background_hz: Rounds of the background task per second.
        synchronous: Time the synchronous task took.
        late: How late it woke up: the jitter.
        background: Time a round of the background task took.
        torque_error: Largest difference from the whole inverse dynamics, per joint.
        torque_peak: Largest torque, per joint.
    """

    samples: int
    rate_hz: float
    deadline_misses: int
    real_time_priority: bool
    background_hz: float
    synchronous: Times
    late: Times
    background: Times | None
    torque_error: tuple[float, ...]
    torque_peak: tuple[float, ...]


def run_realtime(
    arm_or_estimate: Any,
    rate_hz: float = 1000.0,
    seconds: float = 5.0,
    background_hz: float = 0.0,
    lead: float = 0.0,
    folder: str | Path | None = None,
) -> RealtimeReport:
    """Generate, compile and run both tasks on a motion within the arm's limits.

    Args:
        arm_or_estimate: As for `generate`.
        rate_hz: Rate of the synchronous task.
        seconds: For how long.
        background_hz: Rate of the background task; 0 is as fast as it can.
        lead: For how much later the background works, in [s].
        folder: Where the code is kept; nowhere if not given.
    """
    _check(rate_hz, seconds, background_hz, lead)
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(folder) if folder is not None else Path(scratch, "code")
        code = generate(arm_or_estimate, target, RUNTIME_FUNCTIONS, runtime=True)
        program = build_runtime(code, Path(scratch))
        arguments = [repr(float(x)) for x in (rate_hz, seconds, background_hz, lead)]
        # A minute more than it runs: a loaded machine starts and sorts slowly.
        return _report(_run([str(program), *arguments], seconds + 60.0))


def run_stress(code: GeneratedCode, exchanges: int, flags: Sequence[str] = ()) -> Any:
    """Exchange values between two threads; return counts of torn and stale reads."""
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch, "stress")
        source = code.folder / f"{code.name}_exchange_stress.c"
        _compile([str(source)], program, flags)
        # Judgement: ten minutes, as sanitizers slow such loops down many times.
        return _run([str(program), str(exchanges)], 600.0)


def build_runtime(
    code: GeneratedCode, scratch: Path, flags: Sequence[str] = ()
) -> Path:
    """Compile the program that runs both tasks; return it."""
    return _build(code, "realtime", scratch, flags)


def build_controller(
    code: GeneratedCode, folder: Path, flags: Sequence[str] = ()
) -> Path:
    """Compile the controller that reads samples and writes torques; return it."""
    return _build(code, "controller", folder, flags)


def _build(
    code: GeneratedCode, program: str, folder: Path, flags: Sequence[str]
) -> Path:
    product = folder / program
    names = (f"{code.name}_{program}.c", f"{code.name}_runtime.c", f"{code.name}.c")
    _compile([str(code.folder / name) for name in names], product, flags)
    return product


def _check(rate: float, seconds: float, background: float, lead: float) -> None:
    # Judgement: beyond 100 kHz a system timer measures itself.
    if not (0 < rate <= 1e5 and 0 < seconds <= 3600):
        raise ArgumentError(
            f"A rate up to 100 kHz and a time up to an hour, not {rate} Hz for "
            f"{seconds} s."
        )
    if rate * seconds > MOST_SAMPLES:
        raise ArgumentError(
            f"{rate * seconds:.0f} samples are more than the {MOST_SAMPLES} that are "
            "kept. Lower the rate or the time."
        )
    if not (0 <= background <= 1e5 and 0 <= lead < 1):
        raise ArgumentError(
            f"The background rate must be 0 or up to 100 kHz and the lead below 1 s, "
            f"not {background} Hz and {lead} s."
        )


def _compile(sources: Sequence[str], product: Path, flags: Sequence[str]) -> None:
    compiler = find_compiler()
    if compiler is None:
        raise ArgumentError("No C compiler was found. Install gcc or clang, or set CC.")
    command = [*compiler.command, *_FLAGS, *flags, "-o", str(product), *sources, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        first = (done.stderr.strip() or "no message").splitlines()[0]
        raise ArmwiseError(
            f"{compiler.command[0]} could not compile the runtime: {first}. "
            "It needs C11 atomics and POSIX threads."
        )


def _run(command: Sequence[str], limit: float) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    if done.returncode not in (0, 1) or not done.stdout:
        raise ArmwiseError(
            f"The generated program stopped with status {done.returncode}: "
            f"{done.stderr.strip()[:200] or 'no message'}."
        )
    return json.loads(done.stdout)


def _report(times: dict[str, Any]) -> RealtimeReport:
    background = times["background_s"]
    return RealtimeReport(
        samples=times["samples"],
        rate_hz=times["rate_hz"],
        deadline_misses=times["deadline_misses"],
        real_time_priority=times["real_time_priority"],
        background_hz=times["background_hz"],
        synchronous=Times(**times["synchronous_s"]),
        late=Times(**times["wake_up_late_s"]),
        background=Times(**background) if background else None,
        torque_error=tuple(times["torque_error"]),
        torque_peak=tuple(times["torque_peak"]),
    )


# Torque error of a slow background task, in simulation.

MEAN_AGE = 1.5
"""Age of M and h when they are used, on average, in background periods."""


@dataclass(frozen=True, eq=False)
class TwoRateError:
    """Torque of the two-rate structure against the whole inverse dynamics.

    Attributes:
        ratio: Synchronous samples per background period.
        lead: For how much later the background works, in background periods.
        error: Largest torque error of each joint in [N m].
        peak: Largest torque of each joint in [N m].
    """

    ratio: int
    lead: float
    error: Float[np.ndarray, " dof"]
    peak: Float[np.ndarray, " dof"]

    @property
    def fraction(self) -> float:
        """Largest error as a fraction of the largest torque of the motion."""
        return float(self.error.max() / self.peak.max())


def two_rate_error(
    arm: Arm,
    motion: Motion,
    *,
    synchronous_hz: float = 1000.0,
    ratio: int = 10,
    lead: float = MEAN_AGE,
) -> TwoRateError:
    """Follow a motion with M and h from a background task that is slower.

    Args:
        arm: The arm.
        motion: The motion.
        synchronous_hz: Rate of the synchronous task.
        ratio: How many times slower the background task is.
        lead: For how much later than it took the state the background works, in its
            periods; 0 is the paper's way.
    """
    if ratio < 1 or not synchronous_hz > 0:
        raise ArgumentError(
            f"The background is at least as slow as the synchronous task: ratio "
            f"{ratio}, {synchronous_hz} Hz."
        )
    times = np.arange(0.0, motion.duration, 1.0 / synchronous_hz)
    now = motion.sample(times)
    # What is in use was begun one whole background period before the present one.
    taken = np.maximum(np.arange(times.size) // ratio - 1, 0) * ratio
    then = MotionSample(now.q[taken], now.qd[taken], now.qdd[taken])
    seconds = lead * ratio / synchronous_hz
    # The background extrapolates the state it took, at constant acceleration.
    q = then.q + seconds * (then.qd + 0.5 * seconds * then.qdd)
    qd = then.qd + seconds * then.qdd
    dynamics = Dynamics(arm)
    h = dynamics.velocity_torque(q, qd) + dynamics.gravity_torque(q)
    M = dynamics.mass_matrix(q)
    tau = (M @ now.qdd[..., None])[..., 0] + h + friction_torque(arm, now.qd)
    exact = dynamics.inverse_dynamics(now.q, now.qd, now.qdd)
    return TwoRateError(
        ratio, lead, np.abs(tau - exact).max(axis=0), np.abs(exact).max(axis=0)
    )
