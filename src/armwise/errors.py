"""Every error Armwise raises, as one tree, split by what the reader does next.

ArmwiseError
├── ArmError          fix the description of the arm
├── FileError         choose another path, or make room on the disk
├── RecordingError    fix the log, its mapping, or record again
├── ArgumentError     fix the call: a shape, a name, a range
├── NotIdentifiable   excite more, or ask for less
├── NotPhysical       not physically realisable: constrain the fit, or check the data
├── NotConverged      give it longer, a better start, or a smaller step
├── PlantDiverged     the simulated arm ran away; the recording up to there is kept
├── WorkerError       start the workers, give them memory, or use fewer
├── WorldError        a simulated world cannot go on; `run` holds it up to there
└── MissingExtra      install the optional package that is named

`EstimateWarning` is not raised: estimates carry what looks wrong, each with a code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_MESSAGE = 300
"""Characters: what a terminal shows in three or four lines."""

_LONGEST_WORD = 120
"""Characters of a name or path that a message repeats whole."""


def shortened(text: str) -> str:
    """Leave out the middle of endless words, and of a text longer than a message.

    What is wrong stands at the beginning of a message, the remedy at its end.
    """
    text = " ".join(text.split("\n"))  # names may hold line breaks; messages do not
    text = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", _shortened_word, text)
    if len(text) <= LONGEST_MESSAGE:
        return text
    first, last = 2 * LONGEST_MESSAGE // 3, LONGEST_MESSAGE // 3 - 3
    return f"{text[:first].rstrip()} … {text[-last:].lstrip()}"


def _shortened_word(match: re.Match[str]) -> str:
    word = match.group()
    half = _LONGEST_WORD // 2 - 1
    return f"{word[:half]}…{word[-half:]}"


class ArmwiseError(Exception):
    """Base of everything Armwise raises on purpose; its message is never long."""

    def __init__(self, *details: object) -> None:
        super().__init__(*(shortened(x) if isinstance(x, str) else x for x in details))


class ArmError(ArmwiseError):
    """The description of an arm cannot be used as it is."""


class FileError(ArmwiseError, OSError):
    """A file cannot be written."""


class RecordingError(ArmwiseError):
    """A recording cannot be used as it is."""


class ArgumentError(ArmwiseError, ValueError):
    """An argument has the wrong shape, name or range."""


class NotIdentifiable(ArmwiseError):  # noqa: N818
    """The data cannot determine what was asked for."""


class NotPhysical(ArmwiseError):  # noqa: N818
    """The numbers describe a body that cannot exist."""


class NotConverged(ArmwiseError):  # noqa: N818
    """An iteration ended before it reached its tolerance."""


class PlantDiverged(ArmwiseError):  # noqa: N818
    """A plant's state left every reasonable bound.

    Attributes:
        recording: What was measured up to there (a Recording), if anything was.
    """

    def __init__(self, message: str, recording: object = None) -> None:
        super().__init__(message)
        self.recording = recording


class WorkerError(ArmwiseError):
    """The processes or machines that share the work cannot do it."""


class WorldError(ArmwiseError):
    """A simulated world cannot go on; `run` is what happened up to there."""

    def __init__(self, message: str, run: object = None) -> None:
        super().__init__(message)
        self.run = run


class MissingExtra(ArmwiseError, ImportError):  # noqa: N818
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed. "
            f"Install it with: pip install 'armwise[{extra}]'"
        )


@dataclass(frozen=True)
class EstimateWarning:
    """Something that looks wrong with an estimate or the data behind it.

    Attributes:
        code: What kind it is, in words that do not change: `joint-did-not-move`.
        text: What is wrong, where, and what to check.
    """

    code: str
    text: str

    def __str__(self) -> str:
        return self.text
