"""armwise realtime: the two-rate runtime, timed on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from armwise.cli.arguments import ArmName, load_model
from armwise.cli.output import AsJson, console, print_json, table

if TYPE_CHECKING:
    from armwise.codegen import RealtimeReport, Times


def realtime(
    arm: ArmName,
    rate_hz: Annotated[float, typer.Option(help="Synchronous rate [Hz].")] = 1000.0,
    duration: Annotated[float, typer.Option(help="For how long [s].")] = 5.0,
    background_hz: Annotated[
        float, typer.Option(help="Background rate [Hz]; 0: as fast as it can.")
    ] = 0.0,
    lead: Annotated[
        float, typer.Option(help="How far ahead the background task computes [s].")
    ] = 0.0,
    json: AsJson = False,
) -> None:
    """Generate, compile and run both tasks; report jitter and deadline misses.

    Example: armwise realtime puma260 --rate-hz 1000 --duration 1
    """
    from armwise.codegen import run_realtime

    report = run_realtime(load_model(arm), rate_hz, duration, background_hz, lead)
    if json:
        print_json(report)
    else:
        _show(report)


def _show(report: RealtimeReport) -> None:
    times = table("Times [µs]", ("", "median", "99 %", "99.9 %", "worst"))
    times.add_row("synchronous task", *_micro(report.synchronous))
    times.add_row("wake-up too late", *_micro(report.late))
    if report.background is not None:
        times.add_row("background round", *_micro(report.background))
    screen = console()
    screen.print(times)
    fraction = max(report.torque_error) / max(report.torque_peak)
    priority = "granted" if report.real_time_priority else "not granted"
    screen.print(
        f"{report.samples} samples at {report.rate_hz:.1f} Hz, "
        f"{report.deadline_misses} deadlines missed, real-time priority {priority}; "
        f"background {report.background_hz:.0f} Hz; largest torque error "
        f"{100 * fraction:.2f} % of the largest torque"
    )


def _micro(times: Times) -> list[str]:
    return [f"{1e6 * x:.2f}" for x in vars(times).values()]
