"""armwise doctor: it says what is there, and knows what is needed from what is nice."""

from __future__ import annotations

import json
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from armwise.cli import doctor
from armwise.programs.compiler import find_compiler


@pytest.fixture
def examined(armwise):
    """Run the doctor; return the exit code and its findings by name."""

    def run():
        said = armwise("doctor", "--json")
        found = {x["name"]: x for x in json.loads(said.out)["findings"]}
        return said.code, found

    return run


@pytest.fixture
def fresh_compiler():
    find_compiler.cache_clear()
    yield
    find_compiler.cache_clear()


def installed(monkeypatch, name, version):
    """Let a package seem to have a version, or to be absent."""
    really = metadata.version

    def told(package):
        if package != name:
            return really(package)
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", told)


def test_this_installation_is_sound(examined):
    code, found = examined()
    assert code == 0
    assert found["numpy"]["state"] == "ok"
    assert found["numpy"]["detail"] == metadata.version("numpy")
    assert {x["state"] for x in found.values()} <= {"ok", "missing"}


def test_people_read_a_table(armwise):
    said = armwise("doctor")
    assert said.code == 0
    assert "C compiler" in said.out
    assert "Everything that is needed works" in said.out
    assert "\x1b" not in said.out


def test_a_missing_extra_is_named_with_its_remedy(examined, monkeypatch):
    installed(monkeypatch, "rosbags", None)
    code, found = examined()
    assert code == 0
    assert found["rosbags [ros]"]["state"] == "missing"
    assert found["rosbags [ros]"]["remedy"] == "pip install 'armwise[ros]'"


@pytest.mark.parametrize("version", [None, "0.1.9"])
def test_what_is_needed_and_absent_or_old_is_broken(version, examined, monkeypatch):
    installed(monkeypatch, "scipy", version)
    code, found = examined()
    assert code == 1
    assert found["scipy"]["state"] == "broken"
    assert "pip install 'scipy'" in found["scipy"]["remedy"]


def test_no_compiler_is_slow_but_not_broken(examined, monkeypatch, fresh_compiler):
    monkeypatch.setenv("ARMWISE_NO_COMPILER", "1")
    code, found = examined()
    assert code == 0
    assert found["C compiler"]["state"] == "missing"
    assert "gcc" in found["C compiler"]["remedy"]


def test_a_compiler_that_fails_is_broken(
    examined, monkeypatch, tmp_path, fresh_compiler
):
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo fake 1.0 || exit 3\n')
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    code, found = examined()
    assert code == 1
    assert "could not compile" in found["C compiler"]["detail"]


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_a_compiler_that_errs_is_broken(examined, monkeypatch):
    assert doctor.compiled_error() < 1e-14
    monkeypatch.setattr(doctor, "compiled_error", lambda: 0.5)
    code, found = examined()
    assert code == 1
    assert "wrong by 5.0e-01" in found["C compiler"]["detail"]


def test_a_cache_that_cannot_be_made_is_broken(examined, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARMWISE_CACHE", str(tmp_path / "file" / "cache"))
    code, found = examined()
    assert code == 1
    assert "ARMWISE_CACHE" in found["compile cache"]["remedy"]


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("numpy>=2.0", None),
        ("rosbags>=0.10.4; extra == 'ros'", "ros"),
        ('viser >= 1.0 ; extra == "view"', "view"),
        ("viser; python_version >= '3' and extra == 'view'", "view"),
        ("armwise[ros,sim]; extra == 'dev'", ""),
        ("rich", None),
        ("rich; python_version >= '3'", None),
    ],
)
def test_requirements_are_understood(line, extra):
    assert doctor.extra_of(Requirement(line)) == extra


@pytest.mark.parametrize(
    ("version", "state"), [("1.13", "ok"), ("1.13.0rc1", "broken"), ("1.9", "broken")]
)
def test_versions_are_compared_as_versions(version, state, examined, monkeypatch):
    installed(monkeypatch, "scipy", version)
    _, checks = examined()
    assert checks["scipy"]["state"] == state
