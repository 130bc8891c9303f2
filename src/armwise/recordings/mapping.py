"""How a foreign log is to be understood: said once, in a small TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.errors import ArgumentError, RecordingError

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm


@dataclass(frozen=True)
class SignalMapping:
    """Where one quantity of all joints is, and what turns it into SI.

    value = (column · unit · scale) through the transmission, + offset.

    Attributes:
        columns: Names, or numbers from 1, one per joint; a single name may stand for a
            matrix. Empty: the standard names.
        file: File it is in, beside the log; empty for the log itself.
        unit: Unit of the columns; empty: what the log says, else SI.
        scale: Factors, one per joint or one for all; torque constants, for instance.
        scale_from: Name of a single number in the log to multiply by as well.
        offset: Added in the end, in SI, one per joint or one for all.
        at: Whether it is seen at the joint or at the motor, before the gears.
        layout: Columns, or one number a line with all joints of a sample in turn.
    """

    columns: tuple[str, ...] = ()
    file: str = ""
    unit: str = ""
    scale: tuple[float, ...] = (1.0,)
    scale_from: str = ""
    offset: tuple[float, ...] = (0.0,)
    at: Literal["joint", "motor"] = "joint"
    layout: Literal["columns", "numbers"] = "columns"


@dataclass(frozen=True)
class TimeMapping:
    """Where the time stamps are.

    Attributes:
        column: Name or number of the column; empty: the standard names.
        file: File it is in, beside the log; empty for the log itself.
        unit: Its unit; empty: what the log says, else seconds.
        rate_hz: Sampling rate in [Hz] when there are no stamps at all.
    """

    column: str = ""
    file: str = ""
    unit: str = ""
    rate_hz: float | None = None


@dataclass(frozen=True)
class PhaseMapping:
    """Three phase currents of each motor (`aah1986` Eq. 22).

    τ = K_T (I_a sin θ + I_b sin(θ + 120°) + I_c sin(θ + 240°)), where θ is the
    electrical angle: pole pairs times motor position plus an offset.

    Attributes:
        columns: Three columns in [A] per joint.
        constants: K_T in [N m/A] per joint.
        pole_pairs: Electrical turns per motor turn, per joint.
        angle_offsets: Electrical angle at motor position zero in [rad], per joint.
        at: Whether the torque comes out at the joint or at the motor.
    """

    columns: tuple[tuple[str, str, str], ...]
    constants: tuple[float, ...]
    pole_pairs: tuple[float, ...] = (1.0,)
    angle_offsets: tuple[float, ...] = (0.0,)
    at: Literal["joint", "motor"] = "motor"


@dataclass(frozen=True)
class TopicChannel:
    """One number in every message of a topic, kept as a channel."""

    topic: str
    field: str
    channel: str
    unit: str = ""


@dataclass(frozen=True)
class BagMapping:
    """Which topics of a ROS 2 bag to read.

    Attributes:
        joint_states: Topic of JointState messages; empty: the only one there is.
        wrench: Topic of WrenchStamped messages; empty: the only one, if any.
        stamps: Time from the message's header, or when the bag received it.
        channels: Numbers of other messages to keep.
    """

    joint_states: str = ""
    wrench: str = ""
    stamps: Literal["header", "received"] = "header"
    channels: tuple[TopicChannel, ...] = ()


@dataclass(frozen=True, eq=False)
class LogMapping:
    """A foreign log, described once.

    Attributes:
        source: The mapping file, for messages.
        joints: Joint names in the order of the columns; empty: the arm's order.
        count: Number of joints, where only that is known; zero if not.
        time: Where the time is.
        signals: `q`, `qd`, `qdd`, `tau` and `wrench` → where they are.
        phases: Three-phase currents that give the torque.
        gears: G in motor = G · joint, as a matrix; None: no gears.
        bag: Topics of a ROS 2 bag.
        motors: Name → joint weights of motors that several joints turn.
        channels: Own name → column, for other columns that are to be kept.
        separator: Between the values of a text log; found when empty.
    """

    source: str = "mapping"
    joints: tuple[str, ...] = ()
    count: int = 0
    time: TimeMapping = TimeMapping()
    signals: Mapping[str, SignalMapping] = field(default_factory=dict)
    phases: PhaseMapping | None = None
    gears: Float[np.ndarray, "motors joints"] | None = None
    bag: BagMapping = BagMapping()
    motors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)
    separator: str = ""

    @property
    def joint_count(self) -> int | None:
        """Number of joints the mapping speaks of, if it says."""
        if self.joints or self.count:
            return len(self.joints) or self.count
        if self.gears is not None:
            return int(self.gears.shape[1])
        counts = [len(s.columns) for k, s in self.signals.items() if k != "wrench"]
        return max(counts, default=0) or None


def apply_mapping_to_arm(arm: Arm, mapping: LogMapping) -> Arm:
    """Give the arm the motors the mapping names, each with three more parameters.

    Motors the arm already has are left as they are.
    """
    present = {coupling.name for coupling in arm.couplings}
    for name, weights in mapping.motors.items():
        if name in present:
            continue
        try:
            arm = arm.with_coupling(name, weights)
        except ArgumentError as error:
            raise RecordingError(f"{mapping.source}, motor {name}: {error}") from None
    return arm
