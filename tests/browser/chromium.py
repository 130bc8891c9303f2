"""Headless Chromium, and what a page did in it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # CI runs as root
    "--use-gl=angle",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,900",
)


def find_chromium() -> tuple[str, str] | None:
    """Chromium and its driver, if both are installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = [path for name in names if (path := shutil.which(name))]
    driver = shutil.which("chromedriver")
    return (found[0], driver) if found and driver else None


class Browser:
    """A browser that remembers what pages complained about and asked for."""

    def __init__(self, chromium: str, driver: str, profile: Path, shots: Path) -> None:
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service

        options = ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        logs = {"browser": "ALL", "performance": "ALL"}
        options.set_capability("goog:loggingPrefs", logs)
        options.set_capability("unhandledPromptBehavior", "ignore")
        self.driver = Chrome(options=options, service=Service(driver))
        self.shots = shots

    def open(self, address: str) -> None:
        """Open a page in the light, forgetting what came before."""
        self.driver.get("about:blank")
        self.emulate()
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(address)

    def emulate(self, scheme: str = "light", media: str = "screen") -> None:
        """Show pages as on a dark or light screen, or on paper."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        settings = {"media": media, "features": [feature]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", settings)

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page."""
        return self.driver.execute_script(f"return {script}")

    def find(self, path: str) -> Any:
        """Find an element by XPath, waiting until it is there."""
        return self.until(lambda: self.driver.find_elements("xpath", path))[0]

    def until(self, question: Callable[[], Any], seconds: float = 30.0) -> Any:
        """Ask again and again until the answer is true, and return it."""
        end = time.monotonic() + seconds
        while not (answer := question()):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s")
            time.sleep(0.05)
        return answer

    def draw_figures(self) -> int:
        """Scroll to every figure until it is drawn; return how many there are."""
        self.run(
            "document.querySelectorAll('details').forEach(d => { d.open = true; })"
        )
        figures = self.driver.find_elements("css selector", ".figure")
        for figure in figures:
            self.driver.execute_script("arguments[0].scrollIntoView()", figure)
            self.until(lambda: figure.find_elements("css selector", ".main-svg"))  # noqa: B023
        self.run("window.scrollTo(0, 0)")
        return len(figures)

    def errors(self) -> list[str]:
        """What the console complained about since the page was opened, or last time."""
        logs = self.driver.get_log("browser")
        return [line["message"] for line in logs if line["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """Addresses on any network that were asked for since then."""
        lines = self.driver.get_log("performance")
        events = [json.loads(line["message"])["message"] for line in lines]
        asked = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        opened = [
            event["params"]["url"]
            for event in events
            if event["method"] == "Network.webSocketCreated"
        ]
        network = ("http:", "https:", "ws:", "wss:")
        return [url for url in (*asked, *opened) if url.startswith(network)]

    def shoot(self, name: str) -> Path:
        """Take a screenshot and return its file."""
        path = self.shots / f"{name}.png"
        self.driver.save_screenshot(str(path))
        return path
