"""Names that left the top level of the package, and where they are now.

They keep working for one version, with a warning that says what to write instead.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

_FOLDERS = {
    "arms": "bundled_arms InertialParameters Joint Link",
    "calibration": "calibratable Calibration Flaws Structure",
    "codegen": "GeneratedCode load_generated",
    "control": """
        benchmark_tracking Composite ComputedTorque CraigHsuSastry DriveProjection
        Feedforward Gating Indirect MixtureCompensator ParameterSet Partition PD
        PhysicalProjection Playback RobustTerm SlotineLi TrackingTable UpdateLaw
    """,
    "dynamics": "BaseParameters",
    "excitation": """
        Box ExcitationPlan information_from_covariance KeepOut MotionScore
        score_motion score_motions
    """,
    "fleets": "FleetEstimate",
    "identification": """
        coverage_study FrictionTerm identify_recordings InstrumentalVariables
        MomentumBalance OnlineIdentification OrdinaryLeastSquares PriorWeighted
        Recursive Ridge Robust select_friction TotalLeastSquares validate_in_loop
        Validation
    """,
    "learning": """
        analyse_learning DecoupledModel inverse_model inverse_model_along Learned
        LearningAnalysis LearningOperator linearise_along LinearLoop LocalCorrection
        norm_optimal scaled_error Stopping ZeroPhase
    """,
    "loads": """
        design_load_excitation KnownObject LoadEstimate OptimalFilter
        recognise StaticPoses verify_grasp WristSamples write_load
    """,
    "monitoring": "Watchdog",
    "motions": """
        check_limits Fourier Hold Motion MotionSample Polynomial Quintic Sequence
        Sigmoid Sinusoid Triangle write_motion
    """,
    "plants": """
        Actuator AnalogSensor Controller CurrentSensor DormandPrince Encoder
        EncoderVelocity Friction JointElasticity Measurement Payload perturbed Plant
        run_batch RungeKutta4 SemiImplicit Tachometer TorqueSensor WristSensor
    """,
    "recordings": "noise_spectra read_calibration write_calibration",
    "worlds": """
        ArticulatedBody CashKarp CircleCurve DampedLeastSquares Drag Event Hinge
        JointLimit JointMotor Orientation planar_chain Point PointForce PointToCurve
        PointToLine PointToNail PointToPlane PointToPoint PointVelocity
        PolynomialCurve read_world RigidBody Run SingularValueDropping Spring Torque
        Weld World Yielding
    """,
}
_RENAMED = {
    "Watch": "armwise.control.AdaptationMonitor",
    "reproduce": "papers.reproduce",
}
MOVED = {
    name: f"armwise.{folder}.{name}"
    for folder, names in _FOLDERS.items()
    for name in names.split()
} | _RENAMED
"""Old name at the top level → full name today."""


def import_moved(name: str) -> Any:
    """Return what `armwise.NAME` used to be, with a warning that says where it is.

    Raises:
        AttributeError: If there never was such a name, or if it is no longer installed.
    """
    if name not in MOVED:
        raise AttributeError(f"module 'armwise' has no attribute {name!r}")
    module, _, attribute = MOVED[name].rpartition(".")
    if module == "papers":
        where = "papers.reproduce of a checkout of Armwise, or: armwise papers"
    else:
        where = f"{MOVED[name]}; the old name works for one more version"
    try:
        value = getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        if missing.name != "papers":
            raise
        raise AttributeError(f"armwise.{name} is now {where}.") from None
    # Up two: past this function and the package's __getattr__, to the line of the user.
    warnings.warn(f"armwise.{name} is now {where}.", DeprecationWarning, stacklevel=3)
    return value
