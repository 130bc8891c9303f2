"""Armwise: a robot arm's knowledge of its own body."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armwise.version import __version__

_PUBLIC: dict[str, str] = {
    "Arm": "armwise.arms",
    "Joint": "armwise.arms",
    "Link": "armwise.arms",
    "InertialParameters": "armwise.arms",
    "bundled_arms": "armwise.arms",
    "load_arm": "armwise.arms",
    "save_arm": "armwise.arms",
    "Dynamics": "armwise.dynamics",
    "BaseParameters": "armwise.dynamics",
    "base_parameters": "armwise.dynamics",
    "generate": "armwise.codegen",
    "load_generated": "armwise.codegen",
    "GeneratedCode": "armwise.codegen",
    "Recording": "armwise.recordings",
    "Samples": "armwise.recordings",
    "noise_spectra": "armwise.recordings",
    "prepare": "armwise.recordings",
    "write_recording": "armwise.recordings",
    "read_recording": "armwise.recordings",
    "Motion": "armwise.motions",
    "MotionSample": "armwise.motions",
    "Quintic": "armwise.motions",
    "Polynomial": "armwise.motions",
    "Fourier": "armwise.motions",
    "Triangle": "armwise.motions",
    "Sigmoid": "armwise.motions",
    "Sinusoid": "armwise.motions",
    "Sequence": "armwise.motions",
    "Hold": "armwise.motions",
    "check_limits": "armwise.motions",
    "write_motion": "armwise.motions",
    "Box": "armwise.excitation",
    "ExcitationPlan": "armwise.excitation",
    "KeepOut": "armwise.excitation",
    "MotionScore": "armwise.excitation",
    "design_excitation": "armwise.excitation",
    "information_from_covariance": "armwise.excitation",
    "score_motion": "armwise.excitation",
    "score_motions": "armwise.excitation",
    "SimulatedArm": "armwise.plants",
    "MujocoArm": "armwise.plants",
    "run": "armwise.plants",
    "run_batch": "armwise.plants",
    "Plant": "armwise.plants",
    "Controller": "armwise.plants",
    "Measurement": "armwise.plants",
    "Encoder": "armwise.plants",
    "EncoderVelocity": "armwise.plants",
    "Tachometer": "armwise.plants",
    "TorqueSensor": "armwise.plants",
    "CurrentSensor": "armwise.plants",
    "WristSensor": "armwise.plants",
    "AnalogSensor": "armwise.plants",
    "Actuator": "armwise.plants",
    "Friction": "armwise.plants",
    "JointElasticity": "armwise.plants",
    "Payload": "armwise.plants",
    "SemiImplicit": "armwise.plants",
    "RungeKutta4": "armwise.plants",
    "DormandPrince": "armwise.plants",
    "identify": "armwise.identification",
    "Estimate": "armwise.identification",
    "WeightedLeastSquares": "armwise.identification",
    "OrdinaryLeastSquares": "armwise.identification",
    "Ridge": "armwise.identification",
    "PhysicallyConsistent": "armwise.identification",
    "PriorWeighted": "armwise.identification",
    "TotalLeastSquares": "armwise.identification",
    "Robust": "armwise.identification",
    "Validation": "armwise.identification",
    "FrictionTerm": "armwise.identification",
    "perturbed": "armwise.plants",
    "ArticulatedBody": "armwise.worlds",
    "CashKarp": "armwise.worlds",
    "CircleCurve": "armwise.worlds",
    "DampedLeastSquares": "armwise.worlds",
    "Drag": "armwise.worlds",
    "Event": "armwise.worlds",
    "Hinge": "armwise.worlds",
    "JointLimit": "armwise.worlds",
    "JointMotor": "armwise.worlds",
    "Orientation": "armwise.worlds",
    "Point": "armwise.worlds",
    "PointForce": "armwise.worlds",
    "PointToCurve": "armwise.worlds",
    "PointToLine": "armwise.worlds",
    "PointToNail": "armwise.worlds",
    "PointToPlane": "armwise.worlds",
    "PointToPoint": "armwise.worlds",
    "PointVelocity": "armwise.worlds",
    "PolynomialCurve": "armwise.worlds",
    "RigidBody": "armwise.worlds",
    "Run": "armwise.worlds",
    "SingularValueDropping": "armwise.worlds",
    "Spring": "armwise.worlds",
    "Torque": "armwise.worlds",
    "Weld": "armwise.worlds",
    "World": "armwise.worlds",
    "Yielding": "armwise.worlds",
    "planar_chain": "armwise.worlds",
    "read_world": "armwise.worlds",
    "simulate": "armwise.worlds",
    "InstrumentalVariables": "armwise.identification",
    "MomentumBalance": "armwise.identification",
    "Recursive": "armwise.identification",
    "read_estimate": "armwise.identification",
    "write_estimate": "armwise.identification",
    "select_friction": "armwise.identification",
    "build_problem": "armwise.identification",
    "identify_recordings": "armwise.identification",
    "KnownObject": "armwise.loads",
    "LoadEstimate": "armwise.loads",
    "OnlineLoad": "armwise.loads",
    "OptimalFilter": "armwise.loads",
    "StaticPoses": "armwise.loads",
    "WristSamples": "armwise.loads",
    "design_load_excitation": "armwise.loads",
    "identify_load": "armwise.loads",
    "FleetEstimate": "armwise.fleets",
    "identify_fleet": "armwise.fleets",
    "recognise": "armwise.loads",
    "verify_grasp": "armwise.loads",
    "write_load": "armwise.loads",
    "reduce": "armwise.identification",
    "write_report": "armwise.report",
    "PD": "armwise.control",
    "Composite": "armwise.control",
    "ComputedTorque": "armwise.control",
    "CraigHsuSastry": "armwise.control",
    "DriveProjection": "armwise.control",
    "Feedforward": "armwise.control",
    "Gating": "armwise.control",
    "Indirect": "armwise.control",
    "MixtureCompensator": "armwise.control",
    "ParameterSet": "armwise.control",
    "Partition": "armwise.control",
    "PhysicalProjection": "armwise.control",
    "Playback": "armwise.control",
    "RobustTerm": "armwise.control",
    "SlotineLi": "armwise.control",
    "TrackingTable": "armwise.control",
    "UpdateLaw": "armwise.control",
    "Watch": "armwise.control",
    "benchmark_tracking": "armwise.control",
    "DecoupledModel": "armwise.learning",
    "Learned": "armwise.learning",
    "LearningAnalysis": "armwise.learning",
    "LearningOperator": "armwise.learning",
    "LinearLoop": "armwise.learning",
    "LocalCorrection": "armwise.learning",
    "Stopping": "armwise.learning",
    "ZeroPhase": "armwise.learning",
    "analyse_learning": "armwise.learning",
    "inverse_model": "armwise.learning",
    "inverse_model_along": "armwise.learning",
    "learn": "armwise.learning",
    "linearise_along": "armwise.learning",
    "norm_optimal": "armwise.learning",
    "scaled_error": "armwise.learning",
    "coverage_study": "armwise.identification.coverage",
    "OnlineIdentification": "armwise.identification.online",
    "validate_in_loop": "armwise.identification.loop_validation",
    "Calibration": "armwise.calibration",
    "Flaws": "armwise.calibration",
    "Structure": "armwise.calibration",
    "Watchdog": "armwise.monitoring",
    "calibratable": "armwise.calibration",
    "calibrate": "armwise.calibration",
    "calibrate_recording": "armwise.calibration",
    "calibrate_torques": "armwise.calibration",
    "read_calibration": "armwise.recordings",
    "write_calibration": "armwise.recordings",
}
"""Public name → the module it lives in; imported when first used."""

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'armwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from armwise.arms import Arm as Arm
    from armwise.arms import InertialParameters as InertialParameters
    from armwise.arms import Joint as Joint
    from armwise.arms import Link as Link
    from armwise.arms import bundled_arms as bundled_arms
    from armwise.arms import load_arm as load_arm
    from armwise.arms import save_arm as save_arm
    from armwise.calibration import Calibration as Calibration
    from armwise.calibration import Flaws as Flaws
    from armwise.calibration import Structure as Structure
    from armwise.calibration import calibratable as calibratable
    from armwise.calibration import calibrate as calibrate
    from armwise.calibration import calibrate_recording as calibrate_recording
    from armwise.calibration import calibrate_torques as calibrate_torques
    from armwise.codegen import GeneratedCode as GeneratedCode
    from armwise.codegen import generate as generate
    from armwise.codegen import load_generated as load_generated
    from armwise.control import PD as PD
    from armwise.control import Composite as Composite
    from armwise.control import ComputedTorque as ComputedTorque
    from armwise.control import CraigHsuSastry as CraigHsuSastry
    from armwise.control import DriveProjection as DriveProjection
    from armwise.control import Feedforward as Feedforward
    from armwise.control import Gating as Gating
    from armwise.control import Indirect as Indirect
    from armwise.control import MixtureCompensator as MixtureCompensator
    from armwise.control import ParameterSet as ParameterSet
    from armwise.control import Partition as Partition
    from armwise.control import PhysicalProjection as PhysicalProjection
    from armwise.control import Playback as Playback
    from armwise.control import RobustTerm as RobustTerm
    from armwise.control import SlotineLi as SlotineLi
    from armwise.control import TrackingTable as TrackingTable
    from armwise.control import UpdateLaw as UpdateLaw
    from armwise.control import Watch as Watch
    from armwise.control import benchmark_tracking as benchmark_tracking
    from armwise.dynamics import BaseParameters as BaseParameters
    from armwise.dynamics import Dynamics as Dynamics
    from armwise.dynamics import base_parameters as base_parameters
    from armwise.excitation import Box as Box
    from armwise.excitation import ExcitationPlan as ExcitationPlan
    from armwise.excitation import KeepOut as KeepOut
    from armwise.excitation import MotionScore as MotionScore
    from armwise.excitation import design_excitation as design_excitation
    from armwise.excitation import (
        information_from_covariance as information_from_covariance,
    )
    from armwise.excitation import score_motion as score_motion
    from armwise.excitation import score_motions as score_motions
    from armwise.fleets import FleetEstimate as FleetEstimate
    from armwise.fleets import identify_fleet as identify_fleet
    from armwise.identification import Estimate as Estimate
    from armwise.identification import FrictionTerm as FrictionTerm
    from armwise.identification import InstrumentalVariables as InstrumentalVariables
    from armwise.identification import MomentumBalance as MomentumBalance
    from armwise.identification import OrdinaryLeastSquares as OrdinaryLeastSquares
    from armwise.identification import PhysicallyConsistent as PhysicallyConsistent
    from armwise.identification import PriorWeighted as PriorWeighted
    from armwise.identification import Recursive as Recursive
    from armwise.identification import Ridge as Ridge
    from armwise.identification import Robust as Robust
    from armwise.identification import TotalLeastSquares as TotalLeastSquares
    from armwise.identification import Validation as Validation
    from armwise.identification import WeightedLeastSquares as WeightedLeastSquares
    from armwise.identification import build_problem as build_problem
    from armwise.identification import identify as identify
    from armwise.identification import identify_recordings as identify_recordings
    from armwise.identification import read_estimate as read_estimate
    from armwise.identification import reduce as reduce
    from armwise.identification import select_friction as select_friction
    from armwise.identification import write_estimate as write_estimate
    from armwise.identification.coverage import coverage_study as coverage_study
    from armwise.identification.loop_validation import (
        validate_in_loop as validate_in_loop,
    )
    from armwise.identification.online import (
        OnlineIdentification as OnlineIdentification,
    )
    from armwise.learning import DecoupledModel as DecoupledModel
    from armwise.learning import Learned as Learned
    from armwise.learning import LearningAnalysis as LearningAnalysis
    from armwise.learning import LearningOperator as LearningOperator
    from armwise.learning import LinearLoop as LinearLoop
    from armwise.learning import LocalCorrection as LocalCorrection
    from armwise.learning import Stopping as Stopping
    from armwise.learning import ZeroPhase as ZeroPhase
    from armwise.learning import analyse_learning as analyse_learning
    from armwise.learning import inverse_model as inverse_model
    from armwise.learning import inverse_model_along as inverse_model_along
    from armwise.learning import learn as learn
    from armwise.learning import linearise_along as linearise_along
    from armwise.learning import norm_optimal as norm_optimal
    from armwise.learning import scaled_error as scaled_error
    from armwise.loads import KnownObject as KnownObject
    from armwise.loads import LoadEstimate as LoadEstimate
    from armwise.loads import OnlineLoad as OnlineLoad
    from armwise.loads import OptimalFilter as OptimalFilter
    from armwise.loads import StaticPoses as StaticPoses
    from armwise.loads import WristSamples as WristSamples
    from armwise.loads import (
        design_load_excitation as design_load_excitation,
    )
    from armwise.loads import identify_load as identify_load
    from armwise.loads import recognise as recognise
    from armwise.loads import verify_grasp as verify_grasp
    from armwise.loads import write_load as write_load
    from armwise.monitoring import Watchdog as Watchdog
    from armwise.motions import Fourier as Fourier
    from armwise.motions import Hold as Hold
    from armwise.motions import Motion as Motion
    from armwise.motions import MotionSample as MotionSample
    from armwise.motions import Polynomial as Polynomial
    from armwise.motions import Quintic as Quintic
    from armwise.motions import Sequence as Sequence
    from armwise.motions import Sigmoid as Sigmoid
    from armwise.motions import Sinusoid as Sinusoid
    from armwise.motions import Triangle as Triangle
    from armwise.motions import check_limits as check_limits
    from armwise.motions import write_motion as write_motion
    from armwise.plants import Actuator as Actuator
    from armwise.plants import AnalogSensor as AnalogSensor
    from armwise.plants import Controller as Controller
    from armwise.plants import CurrentSensor as CurrentSensor
    from armwise.plants import DormandPrince as DormandPrince
    from armwise.plants import Encoder as Encoder
    from armwise.plants import EncoderVelocity as EncoderVelocity
    from armwise.plants import Friction as Friction
    from armwise.plants import JointElasticity as JointElasticity
    from armwise.plants import Measurement as Measurement
    from armwise.plants import MujocoArm as MujocoArm
    from armwise.plants import Payload as Payload
    from armwise.plants import Plant as Plant
    from armwise.plants import RungeKutta4 as RungeKutta4
    from armwise.plants import SemiImplicit as SemiImplicit
    from armwise.plants import SimulatedArm as SimulatedArm
    from armwise.plants import Tachometer as Tachometer
    from armwise.plants import TorqueSensor as TorqueSensor
    from armwise.plants import WristSensor as WristSensor
    from armwise.plants import perturbed as perturbed
    from armwise.plants import run as run
    from armwise.plants import run_batch as run_batch
    from armwise.recordings import Recording as Recording
    from armwise.recordings import Samples as Samples
    from armwise.recordings import noise_spectra as noise_spectra
    from armwise.recordings import prepare as prepare
    from armwise.recordings import read_calibration as read_calibration
    from armwise.recordings import read_recording as read_recording
    from armwise.recordings import write_calibration as write_calibration
    from armwise.recordings import write_recording as write_recording
    from armwise.report import write_report as write_report
    from armwise.worlds import ArticulatedBody as ArticulatedBody
    from armwise.worlds import CashKarp as CashKarp
    from armwise.worlds import CircleCurve as CircleCurve
    from armwise.worlds import DampedLeastSquares as DampedLeastSquares
    from armwise.worlds import Drag as Drag
    from armwise.worlds import Event as Event
    from armwise.worlds import Hinge as Hinge
    from armwise.worlds import JointLimit as JointLimit
    from armwise.worlds import JointMotor as JointMotor
    from armwise.worlds import Orientation as Orientation
    from armwise.worlds import Point as Point
    from armwise.worlds import PointForce as PointForce
    from armwise.worlds import PointToCurve as PointToCurve
    from armwise.worlds import PointToLine as PointToLine
    from armwise.worlds import PointToNail as PointToNail
    from armwise.worlds import PointToPlane as PointToPlane
    from armwise.worlds import PointToPoint as PointToPoint
    from armwise.worlds import PointVelocity as PointVelocity
    from armwise.worlds import PolynomialCurve as PolynomialCurve
    from armwise.worlds import RigidBody as RigidBody
    from armwise.worlds import Run as Run
    from armwise.worlds import SingularValueDropping as SingularValueDropping
    from armwise.worlds import Spring as Spring
    from armwise.worlds import Torque as Torque
    from armwise.worlds import Weld as Weld
    from armwise.worlds import World as World
    from armwise.worlds import Yielding as Yielding
    from armwise.worlds import planar_chain as planar_chain
    from armwise.worlds import read_world as read_world
    from armwise.worlds import simulate as simulate
