"""`armwise control compare` and `armwise learn`, as their users meet them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from armwise.cli import main as cli


@pytest.fixture
def armwise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["armwise", *words])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsys.readouterr()
        code = caught.value.code
        return (code if isinstance(code, int) else 0), out, err

    return run


def test_compare_prints_one_json_object(armwise: Any, tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    words = ("two_link_slotine", "--duration", "1", "--json", "-o", str(table))
    code, out, _ = armwise("control", "compare", *words)
    report = json.loads(out)
    assert code == 0
    assert report["unstable"] == 0
    size: dict[str, float] = {}
    for row in report["rows"]:
        size[row["controller"]] = size.get(row["controller"], 0.0) + row["rms_error"]
    every = ("composite", "indirect", "Craig-Hsu-Sastry", "mixture of local models")
    assert set(size) >= {"PD", "PD + gravity where it is", *every}
    assert "feedforward + wrench" not in size
    # Local models, learned on slower motions.
    assert size["feedforward + practice"] < 0.5 * size["feedforward"]
    assert table.exists()


def test_compare_prints_a_table_for_people(armwise: Any) -> None:
    words = ("two_link_slotine", "--duration", "1", "--load", "2")
    code, out, _ = armwise("control", "compare", *words)
    assert code == 0
    assert "computed torque" in out
    assert out.count("feedforward + wrench") == 2  # once a task


def test_learn_says_beforehand_and_afterwards(armwise: Any, tmp_path: Path) -> None:
    memory = tmp_path / "m.npz"
    words = ("two_link_slotine", "--duration", "1", "--rate-hz", "250")
    code, out, _ = armwise("learn", *words, "--json", "--memory", str(memory))
    report = json.loads(out)
    assert code == 0
    assert report["improvement"] > 2
    assert report["analysis"]["verdict"] != "diverges"
    assert memory.exists()
    code, out, _ = armwise("learn", *words, "--trials", "2")
    assert "noise floor" in out


def test_practice_that_would_blow_up_is_refused(armwise: Any) -> None:
    words = ("two_link_slotine", "--duration", "1", "--rate-hz", "250", "--trials", "2")
    bad = (*words, "--cutoff-hz", "100", "--model-error", "0.9")
    code, out, err = armwise("learn", *bad)
    assert code == 1
    assert "not converge" in err or "do not use it" in err
    assert "Best" not in out
    code, out, _ = armwise("learn", *bad, "--anyway")
    assert code == 0
    assert "do not use it" in out or "not converge" in out


@pytest.mark.parametrize(
    ("words", "expected", "message"),
    [
        (("control", "compare", "no_such_arm"), 1, "no_such_arm"),
        (("control", "compare", "ddarm", "--duration", "-1"), 2, "--duration"),
        (("control", "compare", "ddarm", "--natural-hz", "-3"), 2, "--natural-hz"),
        (("control", "compare", "ddarm", "--frame", "link_3"), 2, "--load"),
        (("control", "compare", "ddarm", "--load", "-1"), 2, "--load"),
        (
            ("control", "compare", "ddarm", "--load", "1", "--frame", "palm"),
            1,
            "no link or frame 'palm'",
        ),
        (("learn", "ddarm", "--trials", "0"), 2, "not between 1 and"),
        (("learn", "ddarm", "--cutoff-hz", "0"), 1, "cut-off"),
        (("learn", "ddarm", "--noise", "-1"), 2, "not between 0 and"),
    ],
)
def test_mistakes_are_one_line(
    armwise: Any, words: Any, expected: int, message: str
) -> None:
    code, _, err = armwise(*words)
    assert code == expected
    assert message in err
    assert "Traceback" not in err
    assert "bug" not in err
    assert len(err.strip().splitlines()) == 1
