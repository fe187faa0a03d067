"""Progress reports of long runs."""

import time


def say(text: str) -> None:
    """Print a line with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
