"""Planned motions: position, velocity and acceleration at every instant."""

from armwise.motions.files import (
    SampledMotion,
    check_limits,
    read_motion,
    with_approach,
    write_motion,
)
from armwise.motions.motion import (
    Hold,
    Motion,
    MotionSample,
    Sequence,
    joint_vector,
    require_positive,
)
from armwise.motions.periodic import Fourier, Sinusoid, Triangle, random_motion
from armwise.motions.point_to_point import Polynomial, Quintic, Sigmoid

__all__ = [
    "Fourier",
    "Hold",
    "Motion",
    "MotionSample",
    "Polynomial",
    "Quintic",
    "SampledMotion",
    "Sequence",
    "Sigmoid",
    "Sinusoid",
    "Triangle",
    "check_limits",
    "joint_vector",
    "random_motion",
    "read_motion",
    "require_positive",
    "with_approach",
    "write_motion",
]
