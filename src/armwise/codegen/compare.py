"""Operation counts beside those of other generators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armwise.arms import load_arm
from armwise.codegen.functions import RIGID, customise
from armwise.codegen.model import CodeModel

Counts = tuple[int, int]
"""Multiplications and additions."""

# As constants: the other generator need not be installed to compare with it.
SYMPYBOTICS: dict[str, tuple[Counts | None, Counts]] = {
    "puma560": ((503, 401), (431, 325)),
    "tx40": ((355, 294), (309, 238)),
    "ur5": ((517, 414), (444, 338)),
    "iiwa": ((415, 346), (361, 280)),
    "panda": (None, (314, 309)),
}
"""Inverse dynamics without drives: with all parameters, with base parameters.

For `panda` the second is the bar this project set itself.
"""


@dataclass(frozen=True)
class Comparison:
    """Inverse dynamics of one arm, multiplications and additions.

    Attributes:
        arm: Name of the bundled arm.
        theirs_all, theirs_base: SymPyBotics, all parameters and base parameters.
        ours_all, ours_base: Ours, with parameters open until run time.
        ours_customised: Ours with the bundled arm's own numbers in the code.
    """

    arm: str
    theirs_all: Counts | None
    theirs_base: Counts
    ours_all: Counts
    ours_base: Counts
    ours_customised: Counts

    @property
    def is_better(self) -> bool:
        """Whether ours needs fewer multiplications and fewer additions throughout."""
        pairs = [(self.ours_base, self.theirs_base)]
        if self.theirs_all is not None:
            pairs.append((self.ours_all, self.theirs_all))
        return all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairs)


def compare(
    names: Sequence[str] = tuple(SYMPYBOTICS), tries: int = 4
) -> list[Comparison]:
    """Count the operations of inverse dynamics for arms others have published."""
    return [_compared(name, tries) for name in names]


def _compared(name: str, tries: int) -> Comparison:
    arm = load_arm(name)
    frame = arm.links[-1].name
    theirs_all, theirs_base = SYMPYBOTICS[name]
    models = (
        # Open parameters, as there: numbers that happen to be zero must not help us.
        CodeModel(arm, frame, "struct", is_grouped=False),
        CodeModel(arm, frame, "struct"),
        CodeModel(arm, frame),
    )
    counted: list[Counts] = []
    for model in models:
        counts = customise(model, RIGID, tries).counts
        counted.append((counts["multiplications"], counts["additions"]))
    return Comparison(name, theirs_all, theirs_base, *counted)
