"""Base parameters: the counts and sets of the papers, and what grouping means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.arms import INERTIAL_NAMES

DRIVES = {"rotor_inertia", "viscous", "coulomb", "offset"}


def of_links(names):
    return [n for n in names if n.rsplit(".", 1)[1] in INERTIAL_NAMES]


def test_ddarm_has_fifteen_and_eleven_hidden():
    """`aah1986` Table 4 and App. I."""
    base = aw.base_parameters(aw.load_arm("ddarm"))
    leaders = [base.names[i] for i in base.indices]
    assert len(of_links(leaders)) == 15
    hidden = {f"link_1.{p}" for p in INERTIAL_NAMES if p != "Izz"}
    hidden |= {"link_2.m", "link_2.mz"}
    assert set(of_links(base.unidentifiable)) == hidden


def test_axes_rounded_to_six_digits_make_no_parameter_of_their_own():
    arm = aw.load_arm("panda")
    tilt = np.eye(4)
    tilt[1:3, 1:3] += 2e-6 * np.array([[0.0, -1.0], [1.0, 0.0]])
    joints = [replace(joint, origin=joint.origin @ tilt) for joint in arm.joints]
    rounded = replace(arm, joints=tuple(joints))
    exact = aw.base_parameters(arm)
    assert aw.base_parameters(rounded).count == exact.count == 69


def test_ddarm_combinations_of_the_paper():
    """SP1 and SP6: link_2.Iyz + 0.45·link_3.mz and link_3.mz − link_2.my."""
    base = aw.base_parameters(aw.load_arm("ddarm"))
    assert "link_2.Iyz + 0.45·link_3.mz" in base.expressions
    assert "link_2.my - link_3.mz" in base.expressions
    alone = {2: ("mx", "Ixy", "Ixz"), 3: ("mx", "my", "Ixy", "Ixz", "Iyz")}
    for link, kinds in alone.items():
        for kind in kinds:
            assert base.kinds[f"link_{link}.{kind}"] == "identifiable"


def test_puma260_takes_the_papers_set_in_the_papers_order():
    """`izaguirre1992` §6: motor inertias first, then links 6 to 1: 52 of 78."""
    arm = aw.load_arm("puma260")
    kinds = ("rotor_inertia", "viscous", "coulomb")
    order = [f"joint_{j}.rotor_inertia" for j in range(1, 7)]
    order += [f"link_{i}.{p}" for i in range(6, 0, -1) for p in INERTIAL_NAMES]
    order += [f"joint_{j}.{k}" for k in kinds[1:] for j in range(1, 7)]
    base = aw.base_parameters(arm, order=order)
    found = {base.names[i] for i in base.indices} - {
        f"joint_{j}.offset" for j in range(1, 7)
    }
    want = {f"joint_{j}.{k}" for j in range(1, 7) for k in kinds}
    want |= {f"link_6.{p}" for p in INERTIAL_NAMES}
    for i in (5, 4):
        want |= {
            f"link_{i}.{p}" for p in ["mx", "my", "Ixx", "Ixy", "Ixz", "Iyz", "Izz"]
        }
    want |= {f"link_3.{p}" for p in ["mx", "my", "Ixx", "Ixy", "Ixz", "Iyz"]}
    want |= {f"link_2.{p}" for p in ["mx", "my", "Ixy", "Iyz"]}
    assert found == want
    assert len(found) == 52


@pytest.mark.parametrize(
    ("name", "inertial", "with_rotors"),
    [("panda", 43, 48), ("ur10", 36, 40), ("puma260", 36, 40)],
)
def test_counts(name, inertial, with_rotors):
    arm = aw.load_arm(name)
    rng = np.random.default_rng(1)
    Y = aw.Dynamics(arm).regressor(*rng.uniform(-2, 2, (3, 60, arm.dof)))
    Y = Y.reshape(-1, Y.shape[-1])
    kinds = np.array([n.rsplit(".", 1)[1] for n in arm.parameter_names])
    links = np.isin(kinds, INERTIAL_NAMES)
    assert np.linalg.matrix_rank(Y[:, links], 1e-9) == inertial
    assert np.linalg.matrix_rank(Y[:, links | (kinds == "rotor_inertia")], 1e-9) == (
        with_rotors
    )
    base = aw.base_parameters(arm)
    leaders = [base.names[i] for i in base.indices]
    assert len([n for n in leaders if n.endswith((*INERTIAL_NAMES, "inertia"))]) == (
        with_rotors
    )


@pytest.mark.parametrize("name", ["ddarm", "puma560", "panda"])
def test_grouping_reproduces_the_regressor(name):
    """Y π = Y_b (K π) for any π: nothing is lost, nothing is double."""
    arm = aw.load_arm(name)
    base = aw.base_parameters(arm)
    rng = np.random.default_rng(2)
    Y = aw.Dynamics(arm).regressor(*rng.uniform(-2, 2, (3, 40, arm.dof)))
    Y = Y.reshape(-1, Y.shape[-1])
    chosen = Y[:, list(base.indices)]
    np.testing.assert_allclose(chosen @ base.matrix, Y, atol=1e-9)
    assert np.linalg.matrix_rank(chosen / np.linalg.norm(chosen, axis=0)) == base.count
    np.testing.assert_array_equal(
        base.matrix[:, list(base.indices)], np.eye(base.count)
    )
    np.testing.assert_allclose(
        base.values(arm.parameters), base.matrix @ arm.parameters
    )


def test_an_unknown_name_in_the_order_is_refused():
    with pytest.raises(aw.errors.ArgumentError, match=r"link_9\.m"):
        aw.base_parameters(aw.load_arm("ddarm"), order=["link_9.m"])
