"""The top level: few names, typed, quick to import; old names say where they went."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import armwise as aw
from armwise.moved import MOVED

STUB = Path(aw.__file__).with_name("__init__.pyi")
# Names of the first version's top level, as its table of public names had them.
OLD_NAMES = (Path(__file__).parent / "old_names.txt").read_text().split()


def run_python(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True)


def test_the_top_level_is_short_and_is_what_the_stub_lists():
    imports = ast.parse(STUB.read_text()).body[1:]
    listed = {alias.asname for node in imports for alias in node.names}
    assert set(aw.__all__) == set(dir(aw)) == listed
    assert len(listed) <= 56


@pytest.mark.parametrize("name", aw.__all__)
def test_a_name_of_the_top_level_is_the_one_of_its_folder(name):
    value = getattr(aw, name)
    if inspect.ismodule(value):
        assert value.__name__ == f"armwise.{name}"
        assert value.__doc__
    elif name != "__version__":
        folder = sys.modules[".".join(value.__module__.split(".")[:2])]
        assert getattr(folder, name) is value


def test_every_old_name_has_a_home():
    assert len(OLD_NAMES) == 172
    assert set(OLD_NAMES) == {*aw.__all__, *MOVED} & set(OLD_NAMES)
    assert set(MOVED) <= set(OLD_NAMES)
    assert set(MOVED) & set(aw.__all__) == set()


@pytest.mark.parametrize("name", sorted(MOVED))
def test_an_old_name_works_and_says_where_it_went(name):
    folder, _, today = MOVED[name].rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"armwise.{name} is now {MOVED[name]}"):
        value = getattr(aw, name)
    assert value is getattr(sys.modules[folder], today)


def test_the_warning_points_at_the_line_that_uses_the_old_name():
    with pytest.warns(DeprecationWarning, match="control") as caught:
        _ = aw.SlotineLi
    assert caught[0].filename == __file__


def test_reproductions_are_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "papers", None)  # as in an installed package
    with pytest.raises(AttributeError, match="checkout of Armwise, or: armwise papers"):
        _ = aw.reproduce


def test_a_name_that_never_was():
    with pytest.raises(AttributeError, match="no attribute 'identfy'"):
        _ = aw.identfy


def test_the_import_loads_nothing_heavy():
    code = (
        "import armwise, sys; "
        "print(*{'numpy', 'scipy', 'polars', 'plotly', 'typer', 'mujoco'}"
        " & set(sys.modules), len([m for m in sys.modules if m[:8] == 'armwise.']))"
    )
    assert run_python("-c", code).stdout.split() == ["0"]


@pytest.mark.slow
def test_type_checkers_see_through_the_top_level(tmp_path):
    code = tmp_path / "user_code.py"
    code.write_text(
        "import armwise as aw\n"
        "def fit(data: aw.Samples) -> aw.Estimate:\n"
        "    return aw.identify(aw.load_arm('panda'), data)\n"
        "law: aw.control.UpdateLaw = aw.load_arm('panda')  # wrong\n"
        "reveal_type(aw.base_parameters)\n"
        "aw.SlotineLi  # gone from here\n"
    )
    # Errors inside the package are the business of `make types`, not of this test.
    words = ("-m", "mypy", "--strict", "--follow-imports=silent", str(code))
    said = run_python(*words).stdout
    assert "def (arm: armwise.arms." in said
    assert re.findall(r"user_code.py:(\d+): error", said) == ["4", "6"], said
