"""Controllers: feedback, feedforward, computed torque, adaptive, mixtures."""

from armwise.control.adaptation import (
    Adaptation,
    DriveProjection,
    ParameterSet,
    PhysicalProjection,
    UpdateLaw,
)
from armwise.control.adaptation_monitor import AdaptationHistory, AdaptationMonitor
from armwise.control.adaptive import (
    Composite,
    CraigHsuSastry,
    Indirect,
    ModelReference,
    SlotineLi,
)
from armwise.control.benchmark import (
    ControllerFactory,
    TrackingTable,
    benchmark_tracking,
)
from armwise.control.comparison import (
    Partition,
    compact_load,
    effective_inertia,
    middle_posture,
    standard_controllers,
    standard_feedback,
    standard_plants,
    tracking_tasks,
    with_friction,
)
from armwise.control.feedback import (
    PD,
    ResumableController,
    RobustTerm,
    feedback_gain,
    load_state,
    save_state,
)
from armwise.control.feedforward import (
    ComputedTorque,
    Feedforward,
    FrictionFeedforward,
    Playback,
    WrenchFeedforward,
)
from armwise.control.mixture import Gating, MixtureCompensator
from armwise.control.simulated_log import largest_torque, simulate_log

__all__ = [
    "PD",
    "Adaptation",
    "AdaptationHistory",
    "AdaptationMonitor",
    "Composite",
    "ComputedTorque",
    "ControllerFactory",
    "CraigHsuSastry",
    "DriveProjection",
    "Feedforward",
    "FrictionFeedforward",
    "Gating",
    "Indirect",
    "MixtureCompensator",
    "ModelReference",
    "ParameterSet",
    "Partition",
    "PhysicalProjection",
    "Playback",
    "ResumableController",
    "RobustTerm",
    "SlotineLi",
    "TrackingTable",
    "UpdateLaw",
    "WrenchFeedforward",
    "benchmark_tracking",
    "compact_load",
    "effective_inertia",
    "feedback_gain",
    "largest_torque",
    "load_state",
    "middle_posture",
    "save_state",
    "simulate_log",
    "standard_controllers",
    "standard_feedback",
    "standard_plants",
    "tracking_tasks",
    "with_friction",
]
