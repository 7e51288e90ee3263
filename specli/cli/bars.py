"""Bars that a resize of the terminal does not leave behind."""

from collections.abc import Callable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.live import Live
from rich.live_render import LiveRender
from rich.progress import Progress
from rich.segment import ControlType, Segment


class SteadyProgress(Progress):
    """A rich Progress whose cursor waits where the bars begin, not where they end.

    A terminal that becomes narrower breaks a line in two, and rich would go up by the rows that it
    wrote. From where the bars begin, one erasure removes whatever a resize has made of them.
    """

    def start(self) -> None:
        """Show the bars."""
        super().start()
        if self.live.is_started:
            self.console.pop_render_hook()  # its own, which this one asks first
            self.console.push_render_hook(_FromTheTop(self.live))


class _FromTheTop(RenderHook):
    def __init__(self, live: Live) -> None:
        self._live = live

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Replace the steps to the beginning, and go back there; at the very end stay below."""
        renderables = self._live.process_renderables(renderables)
        bars = renderables[-1] if renderables else None
        if not isinstance(bars, LiveRender):
            return renderables

        def back() -> str:
            n = bars.last_render_height - 1
            return "" if not self._live.is_started else f"\r\x1b[{n}A" if n > 0 else "\r"

        return [_Codes(lambda: "\r\x1b[J"), *renderables[1:], _Codes(back)]


class _Codes:
    """What is sent to the terminal as it is."""

    def __init__(self, codes: Callable[[], str]) -> None:
        self._codes = codes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield them as one piece that takes no room."""
        yield Segment(self._codes(), None, [(ControlType.CARRIAGE_RETURN,)])
