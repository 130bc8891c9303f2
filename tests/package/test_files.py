"""Writing that survives kills, reading that survives hostile files, short messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from armwise import tables
from armwise.codegen.folder import read_manifest, write_folder
from armwise.errors import ArgumentError, ArmError, ArmwiseError, PlantDiverged
from armwise.files import json_text, scratch_folder, write_atomically
from armwise.tables import read_arrays, read_bounded, read_json, read_toml

_FILE_EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod")


def _killed_at(event: int, work: Callable[[], object]) -> bool:
    """Do work in a child that kills itself at a file event; whether it did."""
    child = os.fork()
    if child == 0:
        seen = 0

        def count(name: str, _: object) -> None:
            nonlocal seen
            if name in _FILE_EVENTS:
                seen += 1
                if seen > event:
                    os.kill(os.getpid(), signal.SIGKILL)

        # Whatever happens, no second test runner may leave this branch; and a lock
        # that another thread held at the fork must not be waited for.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        code = 1
        try:
            sys.addaudithook(count)
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"the child ended with status {status}"
    return os.WIFSIGNALED(status)


def _every_kill(work: Callable[[], object], check: Callable[[], None]) -> int:
    """Kill work at each of its file events in turn, and check after each."""
    event = 0
    while _killed_at(event, work):
        check()
        event += 1
    return event


def _generation(text: str) -> dict[str, str]:
    return dict.fromkeys(("a.h", "a.c", "a_test.c"), f"/* {text} */\n")


@pytest.mark.parametrize("over_an_old_one", [False, True])
def test_generated_code_is_the_old_or_the_new_after_any_kill(
    tmp_path: Path, over_an_old_one: bool
) -> None:
    folder = tmp_path / "code"
    old, new = _generation("old"), _generation("new") | {"new.c": "/* new */\n"}

    def check() -> None:
        if folder.exists() and any(folder.iterdir()):
            read_manifest(folder)  # refuses anything mixed
        write_folder(folder, new, {"name": "a"})  # and it can be repeated
        assert read_manifest(folder)["name"] == "a"
        assert sorted(x.name for x in tmp_path.iterdir()) == ["code"]
        if over_an_old_one:
            write_folder(folder, old, {"name": "a"})
        else:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    if over_an_old_one:
        write_folder(folder, old, {"name": "a"})
    assert _every_kill(lambda: write_folder(folder, new, {"name": "a"}), check) > 8


def test_a_file_is_the_old_or_the_new_after_any_kill(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def check() -> None:
        assert path.read_text() in ("old", "new")
        write_atomically(path, "old")
        # What the killed process left was removed by the next one.
        assert [x.name for x in tmp_path.iterdir()] == ["file"]

    write_atomically(path, "old")
    assert _every_kill(lambda: write_atomically(path, "new"), check) > 3


def test_ctrl_c_at_any_line_of_tidying_up_is_ctrl_c(tmp_path: Path) -> None:
    target = tmp_path / "one.txt"
    line = 0
    is_pressed = True
    while is_pressed:
        target.write_text("old")
        line += 1
        seen = 0

        def press(frame: FrameType, event: str, _: Any, at: int = line) -> Any:
            nonlocal seen
            if not frame.f_code.co_filename.endswith("shutil.py"):
                return None
            seen += event == "line"
            if event == "line" and seen == at:
                raise KeyboardInterrupt
            return press

        before = sys.gettrace()
        sys.settrace(press)
        try:
            write_atomically(target, "new")
        except KeyboardInterrupt:
            pass
        else:
            is_pressed = False
        finally:
            sys.settrace(before)
        assert is_pressed == (seen >= line)
        assert [path.name for path in tmp_path.iterdir()] == ["one.txt"]
        assert target.read_text() == "new"
    assert line > 10  # rmtree closes a descriptor and notes that, among others


def test_a_living_process_keeps_its_scratch_folder(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as one:
        write_atomically(tmp_path / "file", "text")
        assert one.is_dir()
    assert [x.name for x in tmp_path.iterdir()] == ["file"]
    (tmp_path / ".armwise-link").symlink_to(tmp_path)
    write_atomically(tmp_path / "file", "text")
    assert (tmp_path / ".armwise-link").is_symlink()


def test_workers_end_when_the_process_they_work_for_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(
        "import os, sys, time\n"
        "from armwise.jobs import open_runner\n"
        "def work(item):\n"
        f"    open(r'{tmp_path}/' + str(os.getpid()) + '.pid', 'w').close()\n"
        "    time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    with open_runner(2) as runner:\n"
        "        list(runner.run(work, [1, 2]))\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], env=dict(os.environ))
    try:
        _wait_for(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    finally:
        process.kill()
        process.wait()
    workers = [int(file.stem) for file in tmp_path.glob("*.pid")]
    _wait_for(lambda: not any(_runs(worker) for worker in workers))


def _wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


# Reading.

_REFUSED = r"regular file|cannot be read"


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "missing", "zero byte"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "zero byte":
        path = tmp_path / "a\0b"
    for read in (read_bounded, read_toml):
        with pytest.raises(ArmError, match=_REFUSED):
            read(path)
    with pytest.raises(ArgumentError, match=_REFUSED):
        read_json(path, "an estimate", ArgumentError)
    with pytest.raises(ArgumentError, match=_REFUSED):
        read_arrays(path, "a state", ArgumentError)


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 50_000) + " = 1",
        "[" + ".".join(["a"] * 50_000) + "]",
        "x = {" + ".".join(["'a'"] * 50_000) + " = 1}",
        "x = " + "[" * 50_000,
        "#" * 2_000_000,
        "x = 0x" + "f" * 100_000,
    ],
)
def test_toml_bombs_cost_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bomb.toml"
    path.write_text(text)
    start = time.process_time()
    with pytest.raises(ArmwiseError) as caught:
        read_toml(path).number("x")
    assert len(str(caught.value)) <= 300
    assert time.process_time() - start < 2.0


def test_rows_of_dots_are_no_keys(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    numbers = ", ".join(["0.25"] * 500)
    path.write_text(f"# {'.' * 200}\nx = [{numbers}]\nnote = '{'...' * 40}'\n")
    assert len(read_toml(path).numbers("x")) == 500


def test_arrays_that_unpack_to_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LARGEST_ARRAYS", 2**20)
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, a=np.zeros(200_000))
    with pytest.raises(ArgumentError, match="unpacks to more than 1 MB"):
        read_arrays(path, "a state", ArgumentError)


# Messages.


def test_messages_stay_short_and_keep_both_ends() -> None:
    error = ArmError(f"begin {'x' * 70_000} middle {'word ' * 200}. Do this.")
    assert len(str(error)) <= 300
    assert str(error).startswith("begin xxx")
    assert str(error).endswith("Do this.")
    assert str(ArmError("short")) == "short"
    assert PlantDiverged("m", "kept").recording == "kept"


def test_the_package_is_a_command() -> None:
    command = [sys.executable, "-m", "armwise", "--version"]
    assert subprocess.check_output(command, text=True).startswith("armwise ")


def test_json_is_read_back_bit_by_bit_with_a_key_a_line() -> None:
    numbers = np.random.default_rng(3).normal(size=(4, 3)).tolist()
    data = {"größe": numbers, "links": [{"m": 0.1 + 0.2, "no": None}, {}], "e": []}
    text = json_text(data)
    assert json.loads(text) == data
    assert text.splitlines()[1] == f' "größe": {json.dumps(numbers)},'
    assert sum('"m"' in line for line in text.splitlines()) == 1
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"x": [float("nan")]})
