"""Drake as an oracle of exported files: `make test-drake` installs it and runs this."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.arms import bundled_arms

plants = pytest.importorskip(
    "pydrake.multibody.plant", reason="Drake is not installed (make test-drake)"
)
from pydrake.multibody.parsing import Parser  # noqa: E402

NAMES = [name for name in bundled_arms() if not aw.load_arm(name).defects()]


def loaded(path):
    """A plant that stands on its first body."""
    plant = plants.MultibodyPlant(0.0)
    model = Parser(plant).AddModels(str(path))[0]
    base = plant.get_body(plant.GetBodyIndices(model)[0])
    # Our SDF fixes its base to the world by itself; a URDF cannot.
    if path.suffix == ".urdf":
        plant.WeldFrames(plant.world_frame(), base.body_frame())
    plant.Finalize()
    return plant


@pytest.mark.parametrize("to", ["drake", "urdf", "sdf"])
@pytest.mark.parametrize("name", NAMES)
def test_drake_has_the_same_mass_matrix(name, to, tmp_path):
    arm = aw.load_arm(name)
    path = tmp_path / f"arm.{'sdf' if to == 'sdf' else 'urdf'}"
    aw.export(arm, path, to=to)
    plant = loaded(path)
    joints = [plant.GetJointByName(joint) for joint in arm.coordinate_names]
    index = [joint.velocity_start() for joint in joints]
    # Only Drake's own tags hold a rotor: what is lost with the others is stated.
    rotors = [arm.joints[i].drive.rotor_inertia for i in arm.coordinates]
    lost = np.zeros(arm.dof) if to == "drake" else np.array(rotors)
    context = plant.CreateDefaultContext()
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, arm.dof))
    expected = np.asarray(aw.Dynamics(arm).mass_matrix(q)) - np.diag(lost)
    for row, M in zip(q, expected, strict=True):
        positions = np.zeros(arm.dof)
        positions[index] = row
        plant.SetPositions(context, positions)
        theirs = plant.CalcMassMatrix(context)[np.ix_(index, index)]
        assert np.abs(theirs - M).max() < 1e-9 * np.abs(M).max()
