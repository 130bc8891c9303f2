"""Controllers: from feedback alone to ones that learn the arm while they move it."""

from armwise.control.adaptation import Adaptation
from armwise.control.benchmark import benchmark_tracking
from armwise.control.composite import Composite
from armwise.control.computed_torque import ComputedTorque
from armwise.control.controller import ResumableController
from armwise.control.craig_hsu_sastry import CraigHsuSastry
from armwise.control.feedforward import Feedforward
from armwise.control.gating import Gating
from armwise.control.indirect import Indirect
from armwise.control.mixture import MixtureCompensator
from armwise.control.model_reference import ModelReference
from armwise.control.parameter_set import (
    DriveProjection,
    ParameterSet,
    PhysicalProjection,
)
from armwise.control.partition import Partition
from armwise.control.pd import PD
from armwise.control.playback import Playback
from armwise.control.robust import RobustTerm
from armwise.control.slotine_li import SlotineLi
from armwise.control.state_file import load_state, save_state
from armwise.control.tracking_table import TrackingTable
from armwise.control.update_law import UpdateLaw
from armwise.control.watch import Watch, Watched

__all__ = [
    "PD",
    "Adaptation",
    "Composite",
    "ComputedTorque",
    "CraigHsuSastry",
    "DriveProjection",
    "Feedforward",
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
    "Watch",
    "Watched",
    "benchmark_tracking",
    "load_state",
    "save_state",
]
