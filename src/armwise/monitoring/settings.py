"""Thresholds and time constants of the watchdog, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians


@dataclass(frozen=True)
class WatchdogSettings:
    """All that a watchdog compares its data with.

    The defaults suit arms of 20 Hz to a few kHz that do ordinary work, such as pick and
    place. `benchmarks/watchdog.py` measures what they give: delay of the alarm after a
    shift of 1°, and false alarms during hours of undisturbed work.

    Three tests decide on alarms:

    * Jumps (`jumps`): size of a step against the steps of undisturbed motion, an
      empirical quantile; no distribution is assumed.
    * Drift (`change_detection`): a generalised likelihood ratio over all onsets of the
      last minute; under no change each ratio follows χ² with one degree of freedom.
    * Stuck readings (`failures`): torque beyond what a joint at rest can need, against
      the largest of undisturbed motion.
    """

    # --- Stream: gaps, stalls and clocks ---

    # Interruption: so many periods [samples] without a new sample. Shorter gaps are
    # bridged by straight lines: over 8 ms at 1 kHz 30 rad/s² bends a path by 0.2 mrad.
    gap_periods: float = 8.0

    # Time [s] whose samples are processed together if they come one by one: the cost of
    # a call into NumPy is shared, and no alarm comes noticeably later.
    chunk_time: float = 0.02

    # Time [s] that a clock may step back (synchronisation) while samples are skipped;
    # more than that is another stream.
    clock_step_back: float = 1.0

    # A stalled link repeats its last sample, and so does an arm at rest. Speed over
    # the last 4 [samples] tells them apart: enough to average out an encoder count.
    stall_window: int = 4

    # Speed [rad/s] or [m/s] over that window above which an arm moves: more than the
    # noise of an encoder makes at rest.
    stall_speed: float = 0.02

    # --- Filter of positions and torques ---

    # Bandwidth [Hz] of the low-pass before torques are compared with the model: above
    # the motion (some 2 Hz), below the elastic modes of arms (from some 10 Hz).
    bandwidth_hz: float = 8.0

    # Filtered samples kept per period of that bandwidth; the Nyquist rate is 2, and
    # with 8 a triple pole has fallen by a factor of 70 at half the rate.
    samples_per_period: float = 8.0

    # Time constants until the filter's start is forgotten: a triple pole has then come
    # within e⁻⁶ (1 + 6 + 18) = 6 % of its final value.
    filter_settling: float = 6.0

    # --- Jumps ---

    # Acceleration [rad/s²] or [m/s²] that may set in unannounced (a blow, a stop): what
    # it adds between two samples is never a jump.
    sudden_acceleration: float = 30.0

    # Until motion has been learnt, a step must exceed what the joint's speed limit
    # allows between two samples by this factor: one sample may be lost.
    speed_limit_margin: float = 2.0

    # Quantile of the largest steps of each second of learning that counts as ordinary:
    # a tenth of the seconds may hold something odd without raising the threshold.
    ordinary_quantile: float = 0.9

    # A jump must be this many times larger than an ordinary step. Empirical: steps have
    # no common distribution, and the benchmark asks for no false alarm in ten hours.
    step_margin: float = 4.0

    # Numbers of samples averaged before steps are searched for: the first finds clean
    # jumps, the others those that a filter in the sensor has smeared.
    step_averages: tuple[int, ...] = (1, 2, 4, 8)

    # Longest window [s] of one search: within 0.1 s a working arm's path is two lines.
    longest_step: float = 0.1

    # Residual of the two lines, as a fraction of the step between them. Where a search
    # over longer averages follows, only a clean step counts; the last accepts the shape
    # that a second-order filter of 30 Hz leaves.
    clean_residual: float = 0.05
    smeared_residual: float = 0.12

    # Residual that is noise whatever the step: 3 standard deviations of a reading.
    noise_residual: float = 3.0

    # A sample held for a time t is passed by the joint by speed · t; half as much again
    # since the speed itself is estimated from 4 samples.
    held_margin: float = 1.5

    # Time [s] within which two steps of one joint are the same, seen by two searches.
    same_jump: float = 0.2

    # Uncertainty of a jump's size: residual times 3 (nine samples, four unknowns, and
    # the noise is not white), and half of what the torques account for, since the model
    # of the arm's acceleration may be wrong by that much in so short a time.
    jump_residual_factor: float = 3.0
    jump_model_error: float = 0.5

    # Range of a resting sensor's readings, in standard deviations of its noise: ±4, so
    # that one reading in 16,000 lies outside.
    resting_range: float = 8.0

    # --- Stuck, saturated and missing readings ---

    # Time [s] whose readings are compared at once: long enough for a mean torque, short
    # beside the time in which a driven joint would have moved.
    window_time: float = 0.05

    # Windows in a row that a reading must stay while its joint is overloaded: 0.2 s, in
    # which a joint pushed beyond friction and load has moved many encoder counts.
    stuck_windows: int = 4

    # Overload: so many times the largest excess torque of the rests that were learnt.
    excess_margin: float = 3.0

    # Time [s] of valid readings after which a missing one is a new failure.
    missing_pause: float = 1.0

    # --- Changes that ordinary work brings ---

    # Mass the hand may take up unannounced, as a fraction of the arm's mass, unless
    # `load` is given: arms carry between a tenth and a third of their own mass.
    load_fraction: float = 0.1

    # Distance of a load's centre of mass from the last joint, as a fraction of the
    # arm's length: a gripper and half the part.
    load_reach: float = 0.15

    # Moments of inertia of a load over mass × distance²: a compact body.
    load_inertia: float = 0.2

    # Relative change of friction with temperature (one standard deviation): a gear that
    # warms up loses about a third of it.
    friction_change: float = 0.3

    # Torque of load and friction that a joint at rest may show, in standard deviations
    # of those changes: 2, beside twice its own dry friction.
    resting_margin: float = 2.0

    # Speed [rad/s] or [m/s] below which the direction of dry friction is uncertain, so
    # that the torque of a joint with dry friction is masked; also the speed that some
    # joint must reach for an epoch to be learnt from.
    slow_speed: float = 0.1

    # --- Drift: epochs ---

    # Length of an epoch [s]: longer than the filter's memory, so that the errors of
    # successive epochs are nearly independent.
    epoch_time: float = 1.0

    # Filtered samples without which an epoch is dropped: fewer than unknowns per joint.
    epoch_samples: int = 10

    # --- Drift: likelihood-ratio test ---

    # Threshold of the generalised likelihood ratio: 10 standard deviations, squared.
    # For Gaussian errors χ²₁ exceeds it once in 7·10²², so that 60 onsets × 14 unknowns
    # × 36,000 epochs of ten hours give 5·10⁻¹⁶ false alarms. So far out because errors
    # of the model are not Gaussian: the margin is for their tails.
    drift_threshold: float = 100.0

    # Epochs among which the onset is searched: drift shows within a minute or by the
    # tracked values; memory and cost stay constant.
    onset_epochs: int = 60

    # Largest shift of one epoch, in standard deviations, that counts in full. The ratio
    # of n epochs is then at most 16 n (Cauchy-Schwarz): at a threshold of 100 at least
    # seven epochs must agree, and no single collision raises an alarm.
    epoch_clip: float = 4.0

    # Shift [rad], or relative for gains, beyond which the linearisation is wrong.
    largest_shift: float = 0.5

    # An unknown may be named as the cause if its ratio is this fraction of the
    # threshold, however well another one's shift explains the same torques.
    cause_fraction: float = 0.1

    # Numbers of epochs over which errors that do not average out are estimated: from a
    # few cycles of work to most of a minute.
    floor_spans: tuple[int, ...] = (4, 12, 36)

    # --- Drift: tracked values ---

    # Time constant [s] of forgetting in the tracked gains, offsets and parameters.
    tracking_time: float = 60.0

    # Prior standard deviations of changes since the calibration: gains relative,
    # offsets [rad] (2°), parameters relative to their own size.
    gain_prior: float = 0.02
    offset_prior: float = radians(2.0)
    parameter_prior: float = 0.1

    # Filtered torques repeat themselves: samples that count as one independent reading,
    # equal to `samples_per_period`.
    repeated_samples: float = 8.0


DEFAULT_SETTINGS = WatchdogSettings()
"""Shared by all that is not given settings of its own; frozen."""
