"""Meshes: found where they may be, read with care, and else a sentence."""

from __future__ import annotations

import re
import struct
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArmError
from armwise.view import geometry, meshes
from armwise.view.forms import Ball, Cuboid, Rod, Surface
from armwise.view.geometry import geometry_of
from armwise.view.meshes import MeshFolders, read_mesh
from armwise.view.scene import make_scene

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
UNREADABLE = "cannot be read|no triangles"
FACES = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2))


def stl(faces: int | None = None, corners: np.ndarray = CORNERS) -> bytes:
    """A tetrahedron as binary STL; its header may claim more faces than there are."""
    body = b"".join(
        struct.pack("<12fH", 0, 0, 0, *corners[list(face)].ravel(), 0) for face in FACES
    )
    return bytes(80) + struct.pack("<I", len(FACES) if faces is None else faces) + body


def urdf(geometry: str, kind: str = "visual") -> str:
    return f"""<robot name="one">
      <link name="base"/>
      <link name="rod"><{kind}><origin xyz="0 0 0.5"/>
        <geometry>{geometry}</geometry></{kind}>
        <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
      <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/>
        <axis xyz="0 1 0"/></joint>
    </robot>"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """arm_description/{package.xml, urdf/arm.urdf, meshes/rod.stl}"""
    root = tmp_path / "arm_description"
    for name in ("urdf", "meshes"):
        (root / name).mkdir(parents=True)
    (root / "package.xml").write_text("<package/>")
    (root / "meshes" / "rod.stl").write_bytes(stl())
    (tmp_path / "outside.stl").write_bytes(stl())
    return root


def read(package: Path, geometry: str, **options):
    path = package / "urdf" / "arm.urdf"
    path.write_text(urdf(geometry))
    return geometry_of(aw.load_arm(path), path, **options)


@pytest.mark.parametrize(
    "name",
    [
        "package://arm_description/meshes/rod.stl",
        "model://arm_description/meshes/rod.stl",
        "../meshes/rod.stl",
    ],
)
def test_meshes_are_found_within_their_package(package: Path, name: str):
    links = read(package, f'<mesh filename="{name}" scale="0.001 0.001 0.002"/>')
    assert links.notes == ()
    ((form, T, _),) = links.forms[0]
    assert isinstance(form, Surface)
    assert len(form.faces) == 4
    np.testing.assert_allclose(form.vertices.max(axis=0), [1e-3, 1e-3, 2e-3])
    assert T[2, 3] == 0.5


@pytest.mark.parametrize(
    "name",
    [
        "../../outside.stl",
        "package://arm_description/../outside.stl",
        "/etc/passwd",
        "file:///etc/passwd",
        "../meshes/link.stl",
    ],
)
def test_meshes_outside_their_package_are_not_opened(
    package: Path, name: str, monkeypatch
):
    (package / "meshes" / "link.stl").symlink_to(package.parent / "outside.stl")
    monkeypatch.setattr(meshes, "read_mesh", lambda *_: pytest.fail("opened"))
    links = read(package, f'<mesh filename="{name}"/>')
    assert links.forms == {}
    (note,) = links.notes
    assert note.startswith("rod: ")
    assert "outside" in note
    assert "--meshes" in note


def test_many_meshes_that_miss_are_one_sentence(package: Path):
    links = read(package, '<mesh filename="a.stl"/>', meshes=[package.parent])
    both = geometry_of(*_twice(package))
    assert len(links.notes) == len(both.notes) == 1
    assert both.notes[0].startswith("rod: a.stl and 1 more: not below ")


def _twice(package: Path):
    """A link that shows one missing mesh and collides with another."""
    path = package / "urdf" / "arm.urdf"
    more = "<collision><geometry><mesh filename='b.stl'/></geometry></collision>"
    text = urdf('<mesh filename="a.stl"/>').replace("<inertial>", f"{more}<inertial>")
    path.write_text(text)
    return aw.load_arm(path), path


def test_a_folder_the_user_names_may_hold_meshes(package: Path):
    elsewhere = package.parent / "other" / "arm_meshes"
    elsewhere.mkdir(parents=True)
    (elsewhere / "far.stl").write_bytes(stl())
    mesh = '<mesh filename="package://arm_meshes/far.stl"/>'
    assert read(package, mesh).forms == {}
    for folder in (elsewhere, elsewhere.parent):
        assert 0 in read(package, mesh, meshes=[folder]).forms


@pytest.mark.parametrize(
    "name", ["http://example.org/a.stl", "missing.stl", "a" * 5000, "x://y://z.stl"]
)
def test_what_cannot_be_had_is_a_sentence_and_a_skeleton(package: Path, name: str):
    path = package / "urdf" / "arm.urdf"
    path.write_text(urdf(f'<mesh filename="{name}"/>'))
    scene = make_scene(aw.load_arm(path), description=path)
    assert {solid.layer for solid in scene.solids} >= {"skeleton"}
    assert "geometry" not in {solid.layer for solid in scene.solids}
    why, bones = scene.notes
    assert why.startswith(f"rod: {name[:100]}")
    assert "bones" in bones


def test_a_mesh_that_is_missing_leaves_what_the_link_collides_with(package: Path):
    both = urdf('<mesh filename="missing.stl"/>').replace(
        "<inertial>",
        "<collision><geometry><sphere radius='0.2'/></geometry></collision><inertial>",
    )
    path = package / "urdf" / "arm.urdf"
    path.write_text(both)
    links = geometry_of(aw.load_arm(path), path)
    assert links.forms[0][0][0] == Ball((0.2, 0.2, 0.2))
    assert "missing.stl" in links.notes[0]


@pytest.mark.parametrize(
    ("geometry", "form"),
    [
        ('<sphere radius="0.1"/>', Ball((0.1, 0.1, 0.1))),
        ('<cylinder radius="0.1" length="0.4"/>', Rod(0.1, 0.4)),
        ('<capsule radius="0.1" length="0.4"/>', Rod(0.1, 0.4, is_round=True)),
        ('<box size="1 2 3"/>', Cuboid((1.0, 2.0, 3.0))),
    ],
)
def test_plain_geometry_needs_no_file(package: Path, geometry: str, form):
    assert read(package, geometry).forms[0][0][0] == form


def test_geometry_without_extent_is_not_drawn(package: Path):
    links = read(package, '<box size="1 0 3"/>')
    assert links.forms == {}
    assert links.notes == ("rod: a box: it has no extent.",)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("noise.stl", bytes(range(256)) * 20, UNREADABLE),
        ("empty.stl", b"", UNREADABLE),
        ("cut.stl", stl()[:150], UNREADABLE),
        ("liar.stl", stl(faces=2**31 - 1), UNREADABLE),
        ("text.obj", b"mtllib ../../secret.mtl\nusemtl x\n", UNREADABLE),
        ("nan.stl", stl(corners=CORNERS * np.nan), "not finite"),
        ("model.dae", b"<COLLADA/>", "no triangles"),
        ("secret.txt", b"secret", "not one of"),
        ("bomb.ply", b"ply\nformat ascii 1.0\nelement vertex 999999999999\n"
         b"property float x\nend_header\n", UNREADABLE),
    ],
)  # fmt: skip
def test_bad_meshes_say_why(tmp_path: Path, name: str, data: bytes, why: str):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ArmError, match=why):
        read_mesh(tmp_path / name)


def test_meshes_are_bounded(tmp_path: Path, monkeypatch):
    (tmp_path / "rod.stl").write_bytes(stl())
    monkeypatch.setattr(meshes, "MOST_FACES", 3)
    with pytest.raises(ArmError, match="4 triangles"):
        read_mesh(tmp_path / "rod.stl")
    monkeypatch.setattr(meshes, "LARGEST_FILE", 100)
    with pytest.raises(ArmError, match="larger than"):
        read_mesh(tmp_path / "rod.stl")


def test_all_meshes_together_are_bounded(package: Path, monkeypatch):
    mesh = "<mesh filename='../meshes/rod.stl'/>"
    many = mesh + 5 * f"</geometry></visual><visual><geometry>{mesh}"
    assert len(read(package, many).forms[0]) == 6
    bounded = partial(geometry._Bounded, remaining=10)
    monkeypatch.setattr(geometry, "_Bounded", bounded)
    links = read(package, many)
    assert links.forms == {}
    assert "triangles in all" in links.notes[0]


def test_without_a_package_nothing_above_the_description_is_read(tmp_path: Path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "rod.stl").write_bytes(stl())
    folders = MeshFolders.around(tmp_path / "inner" / "arm.urdf")
    with pytest.raises(ArmError, match="outside"):
        folders.find("../rod.stl")


def test_mujoco_meshes_come_from_the_compiled_model(tmp_path: Path):
    pytest.importorskip("mujoco")
    (tmp_path / "rod.stl").write_bytes(stl())
    path = tmp_path / "arm.xml"
    path.write_text("""<mujoco><asset><mesh name="rod" file="rod.stl"/></asset>
      <worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/>
        <geom type="mesh" mesh="rod" contype="0" conaffinity="0"/>
        <geom type="sphere" size="0.1"/></body></worldbody></mujoco>""")
    links = geometry_of(aw.load_arm(path), path)
    ((form, T, _),) = links.forms[0]
    assert isinstance(form, Surface)
    drawn = form.vertices @ T[:3, :3].T + T[:3, 3]
    order = np.lexsort(drawn.round(6).T)
    np.testing.assert_allclose(drawn[order], CORNERS[np.lexsort(CORNERS.T)], atol=1e-6)


# COLLADA, and colours.

DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="millimeter" meter="0.001"/><up_axis>Y_UP</up_axis></asset>
  <library_effects><effect id="red-fx"><profile_COMMON><technique sid="c"><phong>
    <diffuse><color>1 0 0.5 1</color></diffuse></phong></technique></profile_COMMON>
    </effect></library_effects>
  <library_materials><material id="red"><instance_effect url="#red-fx"/></material>
    </library_materials>
  <library_geometries><geometry id="quad"><mesh>
    <source id="p"><float_array id="pa" count="12">0 0 0 1000 0 0 1000 1000 0 0 1000 0
      </float_array><technique_common><accessor source="#pa" count="4" stride="3"/>
      </technique_common></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <polylist material="m" count="1"><input semantic="VERTEX" source="#v" offset="0"/>
      <input semantic="NORMAL" source="#n" offset="1"/><vcount>4</vcount>
      <p>0 0 1 0 2 0 3 0</p></polylist></mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="s"><node><translate>0 0 500</translate>
    <rotate>0 0 1 90</rotate><instance_geometry url="#quad"><bind_material>
    <technique_common><instance_material symbol="m" target="#red"/></technique_common>
    </bind_material></instance_geometry></node></visual_scene></library_visual_scenes>
</COLLADA>"""


def test_collada_is_read_in_metres_and_in_place(package: Path) -> None:
    (package / "meshes" / "rod.dae").write_text(DAE)
    mesh = '<mesh filename="../meshes/rod.dae" scale="2 2 2"/>'
    ((form, _, color),) = read(package, mesh).forms[0]
    assert isinstance(form, Surface)
    expected = 2 * np.array([[0, 0, 0.5], [0, 1, 0.5], [-1, 1, 0.5], [-1, 0, 0.5]])
    np.testing.assert_allclose(form.vertices, expected, atol=1e-12)
    assert form.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert color == (255, 0, 128)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "<p>0 0 1 0 2 0 3 0</p>",
            "<p>0 0 1 0 2 0 9 0</p>",
            "corner that is not there",
        ),
        ("<vcount>4</vcount>", "<vcount>400</vcount>", "cut off"),
        ('url="#quad"', 'url="#nothing"', "no geometry 'nothing'"),
        ("COLLADA", "X", "no COLLADA"),
        ("1000 1000 0 0", "1000 word 0 0", "not a number"),
        ("<?xml", "<!DOCTYPE x><?xml", "DOCTYPE|not well-formed"),
    ],
)
def test_damaged_collada_is_a_note(
    package: Path, old: str, new: str, says: str
) -> None:
    (package / "meshes" / "rod.dae").write_text(DAE.replace(old, new))
    links = read(package, '<mesh filename="../meshes/rod.dae"/>')
    assert 0 not in links.forms
    assert re.search(says, " ".join(links.notes))


def test_colours_are_the_descriptions(package: Path) -> None:
    path = package / "urdf" / "arm.urdf"
    ball = '<geometry><sphere radius="1"/></geometry>'
    named = ball + '<material name="blue"/>'
    text = urdf("").replace("<geometry></geometry>", named)
    blue = '<material name="blue"><color rgba="0 0 1 1"/></material>'
    path.write_text(text.replace('<link name="base"/>', blue + '<link name="base"/>'))
    scene = make_scene(aw.load_arm(path), description=path)
    (solid,) = [s for s in scene.solids if s.layer == "geometry"]
    assert solid.color == (0, 0, 255)
    # A ball of a metre around 0.5 m reaches half a metre below the base.
    assert scene.floor == pytest.approx(-0.5)
