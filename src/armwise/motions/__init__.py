"""Planned motion: where every joint should be at every instant."""

from armwise.motions.files import write_motion
from armwise.motions.fourier import Fourier
from armwise.motions.hold import Hold
from armwise.motions.limits import check_limits
from armwise.motions.motion import Motion, MotionSample
from armwise.motions.polynomial import Polynomial
from armwise.motions.quintic import Quintic
from armwise.motions.sequence import Sequence
from armwise.motions.sigmoid import Sigmoid
from armwise.motions.sinusoid import Sinusoid
from armwise.motions.triangle import Triangle

__all__ = [
    "Fourier",
    "Hold",
    "Motion",
    "MotionSample",
    "Polynomial",
    "Quintic",
    "Sequence",
    "Sigmoid",
    "Sinusoid",
    "Triangle",
    "check_limits",
    "write_motion",
]
