"""Worlds: rigid, articulated and your own bodies under point constraints."""

from armwise.plants import CashKarp, RungeKutta4, SemiImplicit
from armwise.worlds.articulated import ArticulatedBody
from armwise.worlds.bodies import Point, Segment, box, planar_chain, rod, sphere
from armwise.worlds.body_protocol import Body, Moving, PointMotion
from armwise.worlds.constraints import (
    CircleCurve,
    Constraint,
    Hinge,
    Orientation,
    PointToCurve,
    PointToLine,
    PointToNail,
    PointToPlane,
    PointToPoint,
    PointVelocity,
    PolynomialCurve,
    Relation,
    Weld,
)
from armwise.worlds.drawing import Frames, frames_of, nails_of
from armwise.worlds.forces import (
    Drag,
    JointLimit,
    JointMotor,
    PointForce,
    Spring,
    Torque,
)
from armwise.worlds.methods import (
    DampedLeastSquares,
    Pseudoinverse,
    SingularValueDropping,
    Yielding,
)
from armwise.worlds.rigid import RigidBody
from armwise.worlds.run import Event, Happening, Ledger, Moment, Run, summary, write_run
from armwise.worlds.scenario import Scenario, read_world
from armwise.worlds.simulation import simulate
from armwise.worlds.world import World

__all__ = [
    "ArticulatedBody",
    "Body",
    "CashKarp",
    "CircleCurve",
    "Constraint",
    "DampedLeastSquares",
    "Drag",
    "Event",
    "Frames",
    "Happening",
    "Hinge",
    "JointLimit",
    "JointMotor",
    "Ledger",
    "Moment",
    "Moving",
    "Orientation",
    "Point",
    "PointForce",
    "PointMotion",
    "PointToCurve",
    "PointToLine",
    "PointToNail",
    "PointToPlane",
    "PointToPoint",
    "PointVelocity",
    "PolynomialCurve",
    "Pseudoinverse",
    "Relation",
    "RigidBody",
    "Run",
    "RungeKutta4",
    "Scenario",
    "Segment",
    "SemiImplicit",
    "SingularValueDropping",
    "Spring",
    "Torque",
    "Weld",
    "World",
    "Yielding",
    "box",
    "frames_of",
    "nails_of",
    "planar_chain",
    "read_world",
    "rod",
    "simulate",
    "sphere",
    "summary",
    "write_run",
]
