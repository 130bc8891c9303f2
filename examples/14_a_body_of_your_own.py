"""14: a body of your own in a world: a lattice of masses and springs on a lever."""

from itertools import combinations, product

import numpy as np

from armwise import worlds

MASS, STIFFNESS = 0.1, 50.0  # of a node [kg], of a spring [N/m]
NODES = np.array(list(product((0.3, 0.5), (0.0, 0.2), (0.0, 0.2))))  # corners [m]
ENDS = np.array([np.eye(8)[i] - np.eye(8)[j] for i, j in combinations(range(8), 2)])
REST = np.linalg.norm(ENDS @ NODES, axis=1)


class Lattice(worlds.Body):
    """Eight masses, a spring between any two; a point's link is the node's number."""

    name = "lattice"

    def start(self):
        return NODES.ravel(), np.zeros(24)

    def move(self, position, velocity, gravity):
        return MovingLattice(position.reshape(8, 3), velocity, gravity)


class MovingLattice(worlds.Moving):
    def __init__(self, x, velocity, gravity):
        self.x, self.position_rate, self.gravity = x, velocity, gravity
        self.stretch = np.linalg.norm(ENDS @ x, axis=1) - REST
        self.kinetic_energy = MASS / 2 * velocity @ velocity
        self.gravitational_energy = -MASS * (x @ gravity).sum()
        self.stored_energy = STIFFNESS / 2 * self.stretch @ self.stretch

    def point(self, point):
        i, velocity = int(point.link), self.position_rate.reshape(8, 3)
        return worlds.PointMotion(self.x[i], velocity[i], np.zeros(3))

    def apply_point_force(self, point, force):
        return np.outer(np.eye(8)[int(point.link)], force).ravel()

    def respond(self, force):
        return force / MASS

    def accelerate(self, load):
        tension = STIFFNESS * self.stretch / (self.stretch + REST)
        force = MASS * self.gravity - ENDS.T @ (tension[:, None] * (ENDS @ self.x))
        return self.respond(force.ravel() + (0.0 if load is None else load))


beam = worlds.RigidBody.from_segments("beam", [worlds.box(0.5, (1.0, 0.1, 0.1))])
pivot = worlds.PointToNail("pivot", worlds.Point("beam"), (0.0, 0.0, 0.0))
ends = worlds.Point("beam", (0.5, 0.0, 0.0)), worlds.Point("lattice", link="4")
pin = worlds.PointToPoint("pin", *ends)
run = worlds.simulate(worlds.World((beam, Lattice()), (pivot, pin)), 0.2, step=2e-3)
print(f"{run.log[0].name}: {run.log[0].cause}")
print(f"The pin is off by {run.largest_deviation:.1e} m")
print(f"The springs store up to {run.ledger.stored['lattice'].max():.2f} J")
print(f"Energy and work balance to {run.ledger.relative_balance:.1e}")
