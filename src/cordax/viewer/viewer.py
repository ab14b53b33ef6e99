"""`cordax.viewer.view`: a run in the browser."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from .._base.checks import require
from ..mechanics import System
from ..parameters.parameter import varied
from ..plot.playback import played
from ..simulation._simulate import SimulationError, simulate
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from .curves import Curves
from .sliders import sliders as found_sliders
from .stage import Stage, legend

#: pictures per second at most, and curves
_PICTURES, _CURVES = 30.0, 10.0
#: instants that can be shown
_INSTANTS = 1500
_SPEEDS = ("0.05×", "0.1×", "0.25×", "0.5×", "1×", "2×", "5×")


def view(
    what: Trajectory | Experiment | System,
    *,
    sliders: Mapping[str, tuple[float, float] | None] | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    title: str | None = None,
    port: int = 8080,
) -> "Viewer":
    """Show a run at `http://localhost:port`; returns immediately.

    **Arguments:**

    - `what`: a trajectory, or an `Experiment`, which is simulated and can be changed by sliders, or
      a machine, which runs from its default state by its own method for 5 s.
    - `sliders`: numbers of the experiment by the names of `cordax.Parameter`, with their (low,
      high) or without (half to twice as much); by default the first six numbers of the machine. The
      run is simulated again whenever one moves; only the first time compiles anything.
    - `names` of the curves, from `trajectory.names`. Default: the machine's default plots.
    - `title`: above the controls; the machine by default.
    - `port`: 0 takes any that is free. Only this computer can reach the page, and the page needs
      nothing from any other.

    `viewer.wait()` keeps a script alive until Ctrl-C, `viewer.stop()` ends it.
    """
    return Viewer(what, sliders=sliders, names=names, title=title, port=port)


class Viewer:
    """A page that shows a run, created by `view`: the trajectory `run` and the address `url`."""

    def __init__(self, what, *, sliders=None, names=None, title=None, port: int = 8080):
        try:
            import viser
        except ImportError as error:
            raise ImportError("the viewer needs viser, the `view` extra of cordax") from error
        if isinstance(what, System):
            what = Experiment(what, duration=5.0)
        known = isinstance(what, (Trajectory, Experiment))
        require(known, "what", type(what).__name__, "a Trajectory, an Experiment or a machine")
        self._experiment = what if isinstance(what, Experiment) else None
        no_use = sliders and self._experiment is None
        require(not no_use, "sliders", sliders, "none with a trajectory: give its Experiment")
        moved = [] if self._experiment is None else found_sliders(self._experiment, sliders)
        self._names = names
        self.run: Trajectory = what if isinstance(what, Trajectory) else simulate(what, throw=True)
        shown = played(self.run, names, _INSTANTS)
        with redirect_stdout(StringIO()):  # viser says where it is even if not `verbose`
            self._server = viser.ViserServer(host="localhost", port=port, verbose=False)
        self._lock = threading.RLock()
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._frame, self._clock, self._drawn_curves = 0, float(shown.t[0]), 0.0
        self._server.scene.set_up_direction("+z")
        self._server.gui.main_panel.dock_right()
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._server.gui.set_panel_label(
            title if title is not None else type(self.run.system).__name__
        )
        self.stage = Stage(self._server, shown)
        self._controls(shown)
        self._sliders = self._add_sliders(moved)
        with self._server.gui.add_folder("Curves"):
            self.curves = Curves(self._server, shown)
        self._go(0)
        for work in (self._play, self._simulate_again):
            threading.Thread(target=work, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://localhost:{self._server.get_port()}"

    def wait(self) -> None:
        """Return when stopped, or at Ctrl-C."""
        try:
            while not self._stopped.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """Close the page's server, once."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._changed.set()
        with self._lock, redirect_stdout(StringIO()):
            self._server.stop()

    # --- what the user touches
    def _controls(self, shown) -> None:
        gui = self._server.gui
        self._time = gui.add_slider(
            "time [s]",
            min=float(shown.t[0]),
            max=float(shown.t[-1]),
            step=max(float(shown.t[-1] - shown.t[0]) / (len(shown.t) - 1), 1e-6),
            initial_value=float(shown.t[0]),
        )
        self._playing = gui.add_checkbox("play", False)
        self._speed = gui.add_dropdown("speed", _SPEEDS, initial_value="1×")
        self._trace = gui.add_checkbox("trace", True, visible=shown.trace is not None)
        self._legend = gui.add_html(legend(shown))
        self._said = gui.add_markdown("")

        # what the program sets is no event of a client
        @self._time.on_update
        def _(event):
            if event.client is not None:
                self._playing.value = False
                self._seek(float(self._time.value))

        @self._trace.on_update
        def _(_):
            with self._lock:
                self.stage.show_trace = self._trace.value
                self.stage.show(self._frame)

    def _add_sliders(self, moved) -> dict[str, Any]:
        made = {}
        if not moved:
            return made
        with self._server.gui.add_folder("Numbers"):
            for one in moved:
                handle = self._server.gui.add_slider(
                    one.name,
                    min=one.low,
                    max=one.high,
                    step=one.step,
                    initial_value=one.value,
                )
                handle.on_update(lambda _: self._changed.set())
                made[one.name] = handle
        return made

    # --- work of the two threads
    def _play(self) -> None:
        before = time.perf_counter()
        while not self._stopped.wait(1.0 / _PICTURES):
            now = time.perf_counter()
            passed, before = now - before, now
            if not self._playing.value:
                continue
            t = self.stage.run.t
            later = self._clock + passed * float(self._speed.value.rstrip("×"))
            self._seek(later if self._clock < t[-1] else float(t[0]))

    def _seek(self, clock: float) -> None:
        with self._lock:
            t = self.stage.run.t
            self._clock = min(max(clock, float(t[0])), float(t[-1]))
            self._go(max(0, int(t.searchsorted(self._clock + 1e-9)) - 1))

    def _go(self, frame: int) -> None:
        if self._stopped.is_set():
            return
        self._frame = frame
        self.stage.show(frame)
        now = time.perf_counter()
        if not self._playing.value or now - self._drawn_curves > 1.0 / _CURVES:
            self._drawn_curves = now
            self.curves.show(frame)
        if self._playing.value:
            self._time.value = self._clock

    def _simulate_again(self) -> None:
        """Simulate with the present slider values; intermediate values are skipped."""
        while not self._stopped.is_set():
            self._changed.wait()
            self._changed.clear()
            if self._stopped.is_set() or self._experiment is None:
                return
            numbers = {name: handle.value for name, handle in self._sliders.items()}
            begin = time.perf_counter()
            try:
                run = simulate(varied(self._experiment, numbers), throw=True)
                shown = played(run, self._names, _INSTANTS)
            except (SimulationError, ValueError) as error:
                self._said.content = f"**not possible:** {str(error).splitlines()[0]}"
                continue
            spent = time.perf_counter() - begin
            with self._lock:
                self.run = run
                self.stage.replace(shown)
                self.curves.replace(shown)
                self._legend.content = legend(shown)
                self._said.content = f"simulated in {spent:.2f} s"
                self._go(min(self._frame, len(shown.t) - 1))
