"""Exports: what simulators make of them, and what they say they lose."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.arms import Drive, Frame, bundled_arms, load_arm
from armwise.errors import ArmwiseError
from armwise.identification import read_estimate, write_estimate
from armwise.motions import random_motion
from armwise.plants import SimulatedArm
from armwise.regression import FrictionTerm
from armwise.servos import EXAMPLE
from armwise.simulators import TARGETS
from tests.identification.conftest import samples_of
from tests.simulators.conftest import with_drives

mujoco = pytest.importorskip("mujoco")


def free(arm):
    """The arm without limits, which neither simulator shall meet."""
    joints = tuple(replace(j, limits=aw.arms.Limits()) for j in arm.joints)
    return replace(arm, joints=joints)


def rollouts(arm, path, seconds, law, q, qd):
    """Positions in our simulator and in MuJoCo's of an exported file, every ms."""
    plant = SimulatedArm(arm, control_rate_hz=1000)
    plant.reset(q, qd)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    joints = [model.joint(name) for name in arm.coordinate_names]
    position = [int(j.qposadr[0]) for j in joints]
    speed = [int(j.dofadr[0]) for j in joints]
    control = [model.actuator(name).id for name in arm.coordinate_names]
    data.qpos[position], data.qvel[speed] = q, qd
    steps = round(1e-3 / model.opt.timestep)
    ours, theirs = [], []
    for k in range(int(1000 * seconds)):
        plant.step(law(k, plant.state.q[0], plant.state.qd[0])[None])
        data.ctrl[control] = law(k, data.qpos[position], data.qvel[speed])
        mujoco.mj_step(model, data, steps)
        ours.append(plant.state.q[0].copy())
        theirs.append(data.qpos[position].copy())
    assert not data.warning.number.any()
    return np.array(ours), np.array(theirs)


def reference(arm, seconds):
    times = np.arange(int(1000 * seconds)) / 1000
    q, qd, qdd = random_motion(arm, 0).sample(times)
    return q, qd, aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)


def subject(name):
    arm = free(load_arm(EXAMPLE / "so101.urdf" if name == "so101" else name))
    if name == "tx40":
        arm = arm.with_coupling("motor_6", {"joint_5": 1.0, "joint_6": 1.0})
        arm = replace(
            arm, couplings=(replace(arm.couplings[0], drive=Drive(0.01, 0.1, 0.2)),)
        )
    return arm


def check_without_friction(name, tmp_path):
    arm = with_drives(subject(name), friction=0.0)
    arm = replace(
        arm,
        couplings=tuple(replace(c, drive=Drive(0.01, 0.1)) for c in arm.couplings),
    )
    path = tmp_path / "arm.xml"
    aw.export(arm, path, to="mjcf")
    q, qd, tau = reference(arm, 2.0)
    inertia = np.diag(aw.Dynamics(arm).mass_matrix(arm.rest))
    # Left to itself so101's jaw of 2e-5 kg m² is 50 rad away within 2 s, and rounding
    # with it: it is held.
    gain = 400.0 * inertia if name == "so101" else 0.0 * inertia

    def law(k, position, speed):
        return tau[k] + gain * (q[k] - position + 0.1 * (qd[k] - speed))

    ours, theirs = rollouts(arm, path, 2.0, law, q[0], qd[0])
    assert ours[-1] == pytest.approx(theirs[-1], abs=1e-6)


def check_with_friction(name, seconds, tmp_path):
    arm = with_drives(subject(name))
    path = tmp_path / "arm.xml"
    aw.export(arm, path, to="mjcf")
    q, qd, tau = reference(arm, seconds)
    inertia = np.diag(aw.Dynamics(arm).mass_matrix(arm.rest))
    kp, kd = 400.0 * inertia, 40.0 * inertia

    def law(k, position, speed):
        return 0.9 * tau[k] + kp * (q[k] - position) + kd * (qd[k] - speed)

    ours, theirs = rollouts(arm, path, seconds, law, q[0], qd[0])
    assert np.abs(ours - theirs).max() < 1e-3


def test_mujoco_moves_an_exported_arm_as_we_do(tmp_path):
    check_without_friction("tx40", tmp_path)
    check_with_friction("tx40", 1.5, tmp_path)


def test_damping_faster_than_a_step_does_not_run_away(tmp_path):
    arm = free(load_arm("ur5"))
    # A wrist of 1e-4 kg m² that forgets its speed within a tenth of a step.
    joints = tuple(replace(j, drive=Drive(viscous=5.0)) for j in arm.joints)
    arm = replace(arm, joints=joints)
    aw.export(arm, tmp_path / "arm.xml", to="mjcf")
    q, qd, tau = reference(arm, 1.0)
    ours, theirs = rollouts(
        arm, tmp_path / "arm.xml", 1.0, lambda k, *_: tau[k], q[0], qd[0]
    )
    assert np.abs(ours - theirs).max() < 1e-3


def test_friction_holds_what_gravity_pulls(tmp_path):
    arm = load_arm("ur5")
    pull = np.abs(aw.Dynamics(arm).gravity_torque(arm.rest))
    values = np.array(arm.parameters)
    values[arm.layout.drive("coulomb")] = 1.5 * pull + 0.1
    path = tmp_path / "arm.xml"
    aw.export(arm.with_parameters(values), path, to="mjcf")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:] = arm.rest
    mujoco.mj_step(model, data, round(2.0 / model.opt.timestep))
    # With the settings MuJoCo comes with it creeps by 380 mrad.
    assert np.abs(data.qpos - arm.rest).max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["panda", "ur10", "tx40", "puma560", "iiwa", "so101"])
def test_mujoco_moves_arms_as_we_do_for_ten_seconds(name, tmp_path):
    check_without_friction(name, tmp_path)
    check_with_friction(name, 10.0, tmp_path)


def test_every_bundled_arm_loads_in_mujoco(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where MuJoCo would write its log of warnings
    for name in bundled_arms():
        arm = load_arm(name)
        notes = aw.export(arm, "arm.xml", to="mjcf").notes
        # Published numbers that no body has: what is written says how near it is.
        assert any("No body has" in x for x in notes) == bool(arm.defects())
        data = mujoco.MjData(model := mujoco.MjModel.from_xml_path("arm.xml"))
        mujoco.mj_step(model, data, 10)
        assert not data.warning.number.any()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm.xml"]


def test_urdf_and_sdf_have_the_same_mass_matrix(estimate, tmp_path):
    pin = pytest.importorskip("pinocchio")
    arm = estimate.arm
    q = np.random.default_rng(0).normal(size=arm.dof)
    expected = aw.Dynamics(arm).mass_matrix(q)
    rotors = np.diag([arm.joints[i].drive.rotor_inertia for i in arm.coordinates])
    for to, name in (("urdf", "arm.urdf"), ("drake", "drake.urdf")):
        path = tmp_path / name
        aw.export(estimate, path, to=to)
        model = pin.buildModelFromUrdf(str(path))
        assert model.nq == arm.dof
        mass = pin.crba(model, model.createData(), q)
        mass = np.triu(mass) + np.triu(mass, 1).T
        assert mass + rotors == pytest.approx(expected, abs=1e-9)
    aw.export(estimate, tmp_path / "arm.sdf", to="sdf")
    other = load_arm(tmp_path / "arm.sdf")
    assert aw.Dynamics(other).mass_matrix(q) + rotors == pytest.approx(
        expected, abs=1e-9
    )
    text = (tmp_path / "drake.urdf").read_text()
    rotor = arm.joints[1].drive.rotor_inertia
    assert f'<drake:rotor_inertia value="{rotor!r}"/>' in text


def test_names_that_sdf_refuses_are_others(tmp_path):
    """Its own word for the ground, and one name for a link and a joint."""
    arm = load_arm("ur5")
    links = (replace(arm.links[0], name=arm.joints[2].name), *arm.links[1:])
    frame = Frame(arm.joints[1].name, 3, np.eye(4))
    named = replace(arm, base="world", links=links, frames=(*arm.frames, frame))
    aw.export(named, tmp_path / "arm.sdf", to="sdf")
    text = (tmp_path / "arm.sdf").read_text()
    names = re.findall(r'<(?:link|joint|frame) name="([^"]*)"', text)
    assert len(set(names)) == len(names)
    assert "world" not in names
    assert {joint.name for joint in arm.joints} <= set(names)
    read = load_arm(tmp_path / "arm.sdf")
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (5, arm.dof))
    want, have = (aw.Dynamics(x).mass_matrix(q) for x in (arm, read))
    np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-12)


def test_texts_for_python_hold_the_numbers_of_the_estimate(estimate, tmp_path):
    arm = estimate.arm
    isaac = tmp_path / "isaac.py"
    aw.export(estimate, isaac, to="isaaclab", draws=200)
    call = next(
        node
        for node in ast.walk(ast.parse(isaac.read_text()))
        if isinstance(node, ast.Call)
    )
    values = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    drives = {j.name: j.drive for j in arm.joints}
    assert values["armature"] == {n: d.rotor_inertia for n, d in drives.items()}
    assert values["friction"] == {n: d.coulomb for n, d in drives.items()}
    assert values["viscous_friction"] == {n: d.viscous for n, d in drives.items()}
    assert load_arm(isaac.with_suffix(".urdf")).parameters == pytest.approx(
        arm.parameters
    )
    mjlab = tmp_path / "mjlab.py"
    aw.export(estimate, mjlab, to="mjlab", draws=200)
    calls = [
        {w.arg: ast.literal_eval(w.value) for w in node.keywords}
        for node in ast.walk(ast.parse(mjlab.read_text()))
        if isinstance(node, ast.Call)
    ]
    assert [c["frictionloss"] for c in calls] == [j.drive.coulomb for j in arm.joints]
    assert [c["armature"] for c in calls] == [j.drive.rotor_inertia for j in arm.joints]
    spread = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(mjlab.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id != "ACTUATORS"
    }
    drawn = estimate.sample(200)[:, arm.layout.joint(0, "coulomb")]
    name = f"{arm.joints[0].name}.coulomb"
    assert spread["RANDOMIZATION"][name]["std"] == pytest.approx(drawn.std())
    assert np.allclose(np.diag(spread["CORRELATION"])[-6:], 1.0)


def test_draws_become_files_that_load(estimate, tmp_path):
    result = aw.export(estimate, tmp_path / "arm.xml", to="mjcf", draws=3)
    assert [p.name for p in result.files] == [
        "arm.xml",
        *(f"arm_000{k}.xml" for k in (1, 2, 3)),
    ]
    masses = [load_arm(p).parameters[0] for p in result.files]
    assert len(set(masses)) == 4
    aw.export(estimate, tmp_path / "arm.json", to="json", draws=3)
    content = json.loads((tmp_path / "arm.json").read_text())
    assert np.shape(content["draws"]) == (3, estimate.parameters.size)


def test_the_stated_loss_is_the_torque_that_goes_missing(estimate, truth, tmp_path):
    data = samples_of(truth, seconds=4.0, noise=0.0, seed_motion=5)
    motion = data.q, data.qd, data.qdd
    whole = aw.Dynamics(estimate.arm).inverse_dynamics(*motion)
    planned = replace(data, tau=np.zeros_like(data.tau))
    path = tmp_path / "arm.urdf"
    result = aw.export(estimate, path, to="urdf", data=planned)
    assert {loss.effect for loss in result.losses} == {
        "rotor inertia",
        "constant torque",
    }
    # As a reader that knows no Armwise has it: links, damping and friction only.
    values = np.array(load_arm(path).parameters)
    values[truth.layout.drive("rotor_inertia", "offset")] = 0.0
    bare = aw.Dynamics(truth.with_parameters(values)).inverse_dynamics(*motion)

    def squares(torque):
        return (torque**2).sum(axis=0)

    missing = np.sqrt(squares(whole - bare) / squares(whole))
    assert result.cost == pytest.approx(missing, rel=1e-6)
    # Beside torques of a robot it is what the error grows by, in squares.
    measured = aw.export(estimate, path, to="urdf", data=data).cost
    growth = squares(data.tau - bare) - squares(data.tau - whole)
    assert measured == pytest.approx(np.sqrt(growth / squares(data.tau)), rel=1e-6)
    assert aw.export(estimate, tmp_path / "arm.xml", to="mjcf").losses == ()


def test_an_effect_that_the_robot_has_half_of_costs_nothing(estimate, truth, tmp_path):
    """A model with twice the robot's rotors is as far off without them."""
    data = samples_of(truth, seconds=4.0, noise=0.0, seed_motion=5)
    values = np.array(estimate.parameters)
    values[truth.layout.drive("offset")] = 0.0
    rotors = truth.layout.drive("rotor_inertia")
    values[rotors] = 0.3
    double = truth.with_parameters(values)
    values[rotors] = 0.15
    half = aw.Dynamics(truth.with_parameters(values)).inverse_dynamics
    robot = replace(data, tau=half(data.q, data.qd, data.qdd))
    (loss,) = aw.export(double, tmp_path / "arm.urdf", to="urdf", data=robot).losses
    assert loss.effect == "rotor inertia"
    assert np.all(loss.cost < 1e-6)


BRANCHES = """<mujoco model="table"><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0"/>
    <inertial pos="0 0 0.2" mass="2" diaginertia="0.03 0.03 0.004"/>
    <body name="fore" pos="0 0 0.4"><joint name="elbow" axis="1 0 0"/>
      <inertial pos="0 0 0.15" mass="1" diaginertia="0.01 0.01 0.002"/></body></body>
  <body name="ball"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="y" type="slide" axis="0 1 0"/>
    <inertial pos="0 0 0" mass="0.5" diaginertia="1e-3 1e-3 1e-3"/></body>
</worldbody></mujoco>"""


def test_branches_keep_the_order_of_their_joints(tmp_path):
    (tmp_path / "table.xml").write_text(BRANCHES)
    arm = load_arm(tmp_path / "table.xml")
    for to in ("mjcf", "urdf", "sdf"):
        path = tmp_path / f"written.{TARGETS[to].endings[0].strip('.')}"
        aw.export(arm, path, to=to)
        assert load_arm(path).coordinate_names == ("shoulder", "elbow", "x", "y")


def test_inertia_between_joints_of_one_body_has_no_place(tmp_path):
    template, path = tmp_path / "table.xml", tmp_path / "new.xml"
    template.write_text(BRANCHES)
    arm = load_arm(template)
    between = next(k for k, link in enumerate(arm.links) if not link.inertia.mass)
    values = 1.1 * arm.parameters
    values[arm.layout.link(between).start] = 1e-6
    speck = arm.with_parameters(values)
    notes = aw.export(speck, path, to="mjcf", template=template).notes
    assert any("has no place for 1e-06 kg" in note for note in notes)
    path.unlink()
    values[arm.layout.link(between).start] = 0.2
    heavy = arm.with_parameters(values)
    with pytest.raises(ArmwiseError, match=r"no place for the 0\.2 kg of"):
        aw.export(heavy, path, to="mjcf", template=template)
    assert not path.exists()


TEMPLATE = """<mujoco model="two">
  <!-- kept -->
  <compiler angle="radian" meshdir="meshes"/>
  <option timestep="0.002"/>
  <default>
    <joint damping="0.7" armature="0.01"/>
    <general biastype="affine" biasprm="0 -5 0"/>
    <default class="light"><joint frictionloss="0.02"/></default>
  </default>
  <asset><mesh name="tetra" file="tetra.obj"/></asset>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0"/>
      <inertial pos="0 0 0.2" mass="2" diaginertia="0.03 0.03 0.004"/>
      <geom type="mesh" mesh="tetra"/>
      <include file="fore.xml"/>
    </body>
  </worldbody>
  <actuator><position name="hold" joint="elbow" kp="7"/></actuator>
</mujoco>
"""
FORE = """<mujocoinclude>
  <body name="fore" pos="0 0 0.4">
    <!-- in a file of its own -->
    <joint name="elbow" class="light" axis="0 1 0"/>
    <inertial pos="0 0 0.15" mass="1" diaginertia="0.01 0.01 0.002"/>
  </body>
</mujocoinclude>
"""
TETRA = "v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def template(tmp_path):
    folder = tmp_path / "own"
    (folder / "meshes").mkdir(parents=True)
    (folder / "two.xml").write_text(TEMPLATE)
    (folder / "fore.xml").write_text(FORE)
    (folder / "meshes" / "tetra.obj").write_text(TETRA)
    return folder / "two.xml"


def test_a_template_keeps_all_but_its_numbers(template, tmp_path):
    arm = load_arm(template)
    assert arm.joints[1].drive == Drive(0.01, 0.7, 0.02, 0.0)
    values = 1.1 * arm.parameters
    values[arm.layout.drive("coulomb")] = 0.3, 0.4
    values[arm.layout.drive("offset")] = 0.05
    identified = arm.with_parameters(values)
    path = tmp_path / "elsewhere.xml"  # meshes are found from another folder
    result = aw.export(identified, path, to="mjcf", template=template)
    text = path.read_text()
    for word in ("<!-- kept -->", "<!-- in a file of its own -->", 'name="tetra"'):
        assert word in text
    assert '<position name="hold" joint="elbow" kp="7"/>' in text
    assert any("elbow had an actuator" in note for note in result.notes)
    # Which has no bias: the elbow's constant torque is lost, the shoulder's not.
    (loss,) = result.losses
    assert loss.effect == "constant torque"
    assert loss.cost[0] == 0.0 < loss.cost[1]
    assert load_arm(path).parameters == pytest.approx(identified.parameters)
    model = mujoco.MjModel.from_xml_path(str(path))
    # Its own come first: controls and keyframes go by their order.
    assert [model.actuator(k).name for k in range(model.nu)] == ["hold", "shoulder"]
    # Defaults of the template's actuators are not those of the added motor.
    assert model.actuator("shoulder").biasprm[:3].tolist() == [-0.05, 0.0, 0.0]
    # Twice the step of 2 ms that the user chose.
    assert model.dof_solref[0].tolist() == [0.004, 1.0]


def test_actuators_of_a_template_are_not_doubled_without_a_word(template, tmp_path):
    arm = load_arm(template)
    notes = aw.export(arm, tmp_path / "a.py", to="mjlab", template=template).notes
    assert any("a.xml keeps the template's actuators (hold)" in note for note in notes)
    notes = aw.export(arm, tmp_path / "b.py", to="mjlab").notes
    assert not any("actuators" in note for note in notes)


def test_a_link_lighter_than_what_is_fixed_to_it_leaves_that_a_body(template, tmp_path):
    """MuJoCo refuses bodies without inertia; saved elsewhere, meshes are found, too."""
    tool = '<body name="tool"><inertial pos="0 0 .1" mass=".5" diaginertia="1 1 1"/>'
    fore = template.with_name("fore.xml")
    fore.write_text(FORE.replace("</mujocoinclude>", "").rstrip()[: -len("</body>")])
    fore.write_text(fore.read_text() + tool + "</body></body></mujocoinclude>")
    arm = load_arm(template)
    light = arm.with_parameters(0.3 * arm.parameters)
    files = tmp_path / "exported.xml", tmp_path / "saved.xml"
    notes = aw.export(light, files[0], to="mjcf", template=template).notes
    assert any("tool" in note for note in notes)
    assert any("tool" in note for note in aw.save_arm(light, files[1], template))
    for file in files:
        assert load_arm(file).parameters == pytest.approx(light.parameters)
        model = mujoco.MjModel.from_xml_path(str(file))
        assert 0.0 < model.body("tool").mass[0] < 0.5
        assert model.nmesh == 1


def test_couplings_go_into_a_template(tmp_path):
    arm = subject("tx40")
    plain = replace(arm, couplings=())
    aw.save_arm(plain, tmp_path / "own.xml")
    path = tmp_path / "new.xml"
    aw.export(arm, path, to="mjcf", template=tmp_path / "own.xml")
    again = load_arm(path)
    assert again.couplings[0].drive == arm.couplings[0].drive
    assert again.couplings[0].weights.tolist() == arm.couplings[0].weights.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "gazebo"}, "There is no target 'gazebo'. Choose from: mjcf"),
        ({"to": "sdf", "template": "own.xml"}, "takes no template"),
        ({"to": "urdf", "template": "own.xml"}, "begins with <mujoco>"),
        ({"to": "mjcf", "template": "other.xml"}, "is no template for ur5"),
        ({"to": "mjcf", "draws": 2}, "no uncertainty to draw from"),
        ({"to": "mjlab", "path": "arm.xml"}, r"no name for mjlab, .* end in \.py"),
        ({"to": "mjcf", "path": "arm.py"}, r"no name for mjcf, .* end in \.xml"),
        ({"to": "mjcf", "template": "part.xml"}, "other MJCF files include"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    options, message, truth, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    aw.save_arm(truth, "own.xml")
    aw.save_arm(load_arm("two_link_uno"), "other.xml")
    (tmp_path / "part.xml").write_text("<mujocoinclude/>")
    before = sorted(tmp_path.iterdir())
    path = options.pop("path", "result.out")
    with pytest.raises(ArmwiseError, match=message):
        aw.export(truth, path, **options)
    assert sorted(tmp_path.iterdir()) == before


def test_a_template_of_another_arm_is_refused_though_joints_are_held(tmp_path):
    """The message is on the template, not on a joint that it lacks."""
    held = load_arm("ur5", lock={load_arm("ur5").coordinate_names[-1]: 0.1})
    aw.save_arm(load_arm("two_link_uno"), tmp_path / "other.xml")
    with pytest.raises(ArmwiseError, match=r"other\.xml is no template for ur5"):
        aw.export(held, tmp_path / "x.xml", to="mjcf", template=tmp_path / "other.xml")


def test_what_stands_for_friction_without_a_log_is_said(truth, tmp_path):
    """An estimate read from a file: one motion for all, whatever the draws' seed."""
    data = samples_of(truth, seconds=10.0)
    term = FrictionTerm(1, truth.coordinate_names[1], "stribeck", 0.1)
    whole = aw.identify(truth, data, friction=(term,))
    write_estimate(whole, tmp_path / "estimate.json")
    estimate = read_estimate(tmp_path / "estimate.json")
    results = [
        aw.export(estimate, tmp_path / f"{k}.xml", to="mjcf", seed=k) for k in (0, 1)
    ]
    assert any("--log" in note for note in results[0].notes)
    assert results[0].cost == pytest.approx(results[1].cost)
    texts = [(tmp_path / f"{k}.xml").read_text() for k in (0, 1)]
    assert texts[0] == texts[1]
    named = aw.export(estimate, tmp_path / "2.xml", to="mjcf", data=data)
    assert not any("--log" in note for note in named.notes)


def test_an_arm_without_friction_is_said_to_coast(tmp_path):
    result = aw.export(load_arm("ur5"), tmp_path / "arm.json", to="json")
    assert any("no friction" in note for note in result.notes)
    assert set(TARGETS) == {
        *("mjcf", "urdf", "sdf", "isaaclab", "mjlab", "drake", "json"),
    }
