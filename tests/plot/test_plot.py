"""Pictures: what is drawn where, files and their failures."""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from PIL import Image

import cordax
from cordax.mechanics import Bodies, Scene
from cordax.systems import Neck, Oscillator, Pendulum, SplineRod

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg

from cordax.plot import animate, plot_scene, plot_snapshots, plot_states, save_figure
from cordax.plot.film import Film, frames, stage
from cordax.plot.scene import colour_bar, dimension, draw, fit_view, norm_of, scenes_of
from cordax.plot.style import FONT, LINES


class Spatial(Pendulum):
    """A pendulum drawn in space."""

    def geometry(self, t, q):
        end = jnp.stack([jnp.sin(q[0]), 0.2 * jnp.cos(q[0]), -jnp.cos(q[0])])
        return Scene({"cable": jnp.stack([jnp.zeros(3), end])[None]}, {"ground": jnp.zeros((1, 3))})


@pytest.fixture(scope="module")
def pendulum_run():
    return cordax.simulate(Pendulum(), dt=0.02, duration=0.4, integrator="rk4")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_neck_is_drawn_to_scale_with_labels():
    neck = Neck.default(3)
    q = neck.state_at(jnp.array([0.6, -0.8, 1.0])).q
    axes = plot_scene(neck, q, values={"tendon": [1.0, 2.0, 3.0, 4.0]}).axes[0]
    assert axes.get_aspect() == 1.0
    assert axes.get_xlabel() == "x [m]" and axes.get_ylabel() == "y [m]"
    by_order = {c.get_zorder(): c for c in axes.collections}
    bars = np.array(by_order[LINES["bar"].order].get_segments())
    # 4 transverse bars of 50 mm, 6 diagonals of 100 mm
    lengths = np.sort(np.linalg.norm(bars[:, 1] - bars[:, 0], axis=1))
    np.testing.assert_allclose(lengths, [0.05] * 4 + [0.1] * 6, atol=1e-12)
    np.testing.assert_array_equal(by_order[LINES["tendon"].order].get_array(), [1, 2, 3, 4])


@pytest.mark.parametrize("routing", ["single", "cumulative"])
def test_tendons_run_along_the_joints_they_pull(routing):
    """A tendon drawn beside a joint's side changes its drawn length there as its true length does:
    both fall with a positive angle on the left and rise on the right. The first point is on the
    drum."""
    neck = Neck.default(3, routing=routing)
    draw = jax.jit(lambda a: neck.geometry(0.0, neck.state_at(a).q).lines["tendon"])
    straight = np.asarray(draw(jnp.zeros(3)))
    for j in range(3):
        bent = np.asarray(draw(0.3 * jnp.eye(3)[j]))
        for k in range(4):
            piece = lambda points, k=k, j=j: np.linalg.norm(
                points[k, 2 * j + 2] - points[k, 2 * j + 1], axis=-1
            )
            change = piece(bent) - piece(straight)
            if neck.routing.left[k, j]:
                assert change < -5e-3
            elif neck.routing.right[k, j]:
                assert change > 5e-3


def test_snapshots_share_one_scale(pendulum_run):
    figure = plot_snapshots(pendulum_run, [0.0, 0.2, 0.4])
    assert [a.get_title() for a in figure.axes] == ["t = 0.00 s", "t = 0.20 s", "t = 0.40 s"]
    assert len({a.get_xlim() for a in figure.axes}) == 1
    with pytest.raises(ValueError, match=r"times.*9.*from 0 to 0.4 s"):
        plot_snapshots(pendulum_run, [9.0])


def test_space_is_drawn_in_three_dimensions(tmp_path):
    run = cordax.simulate(Spatial(), dt=0.02, duration=0.4, integrator="rk4")
    figure = plot_snapshots(run, [0.0, 0.4])
    assert [a.name for a in figure.axes] == ["3d", "3d"]
    with Image.open(animate(run, tmp_path / "film.gif", fps=5, dpi=40)) as film:
        assert film.n_frames == 3


def test_states_by_kind_with_the_desired_ones(pendulum_run):
    wanted = np.zeros(len(pendulum_run.t))
    figure = plot_states(pendulum_run, ["angle", "d_angle"], desired={"angle": wanted})
    first, second = figure.axes
    assert first.get_ylabel() == "angle [rad]" and second.get_ylabel() == "angle rate [rad/s]"
    assert second.get_xlabel() == "time [s]"
    np.testing.assert_array_equal(first.lines[0].get_ydata(), pendulum_run["angle"])
    assert {t.get_text() for t in first.texts} == {"angle", "desired"}
    with pytest.raises(ValueError, match=r"names: got 'alpha_9', expected one of angle"):
        plot_states(pendulum_run, ["alpha_9"])


def test_many_kinds_fit_a_page_and_names_do_not_overlap():
    """Eight kinds in two columns, below 9 inches; equal curves are both seen, and names at the ends
    of curves that come close are apart."""
    t = jnp.linspace(0.0, 1.0, 21)
    names = ["a", "b", "c", "d", "e", "f", "g", "h"]
    run = cordax.simulate(Pendulum(), dt=0.05, duration=1.0, integrator="rk4")
    outputs = {name: jnp.stack([t, t, t + 1e-3], axis=1) for name in names}
    run = eqx.tree_at(lambda r: r.outputs, run, outputs)
    figure = plot_states(run, names)
    assert figure.get_size_inches()[1] <= 9.0
    axes = figure.axes[0]
    assert axes.lines[0].get_linestyle() == "-" and axes.lines[1].get_linestyle() == "--"
    heights = sorted(text.get_position()[1] for text in axes.texts)
    assert len(heights) == 3 and np.diff(heights).min() > 0.05
    assert {a.get_xlabel() for a in figure.axes[-2:]} == {"time [s]"}


def test_the_scale_is_that_of_the_whole_run(pendulum_run):
    """A peak between the instants that are shown is on the scale."""
    tension = jnp.ones((21, 1)).at[3].set(50.0)
    run = eqx.tree_at(lambda r: r.outputs, pendulum_run, {"tension": tension})
    run = eqx.tree_at(lambda r: r.system, run, Spatial())
    figure = plot_snapshots(run, [0.0, 0.4], view="side")
    assert figure.axes[-1].get_ylim() == (1.0, 50.0)
    assert (figure.axes[0].elev, figure.axes[0].azim) == (0.0, 0.0)
    with pytest.raises(ValueError, match=r"view: got 'behind', expected one of corner, front"):
        plot_snapshots(run, [0.0], view="behind")


def test_focus_on_what_is_small():
    """The seat fills the picture, and cables end at its frame."""

    class Seat(Spatial):
        def geometry(self, t, q):
            scene = super().geometry(t, q)
            corners = 0.01 * jnp.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
            seat = Bodies(scene.lines["cable"][:, 1], jnp.eye(3)[None], corners[None, None])
            return Scene(scene.lines, {}, {"body": seat})

    axes = plot_scene(Seat(), jnp.array([0.3]), focus="body").axes[0]
    assert np.ptp(axes.get_xlim()) < 0.1
    (cable,) = [c for c in axes.collections if hasattr(c, "_segments3d")]
    points = np.concatenate([np.asarray(x) for x in cable._segments3d])
    points = points[np.isfinite(points).all(axis=1)]
    assert len(points) > 1
    assert np.all(points[:, 2] <= axes.get_zlim()[1] + 1e-9)
    with pytest.raises(ValueError, match=r"focus: got 'seat', expected one of body"):
        plot_scene(Seat(), jnp.array([0.3]), focus="seat")


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # by the reader of MP4 files
def test_film_has_the_right_length(pendulum_run, tmp_path, suffix):
    if suffix == ".mp4":
        ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = animate(pendulum_run, tmp_path / f"film{suffix}", fps=20, speed=0.5, dpi=40)
    assert [p.name for p in tmp_path.iterdir()] == [f"film{suffix}"]
    if suffix == ".gif":
        with Image.open(path) as film:
            assert film.n_frames == 17  # 0.4 s at half speed and 20 frames a second, ends included
            assert film.info["duration"] == 50
    else:
        frames, seconds = ffmpeg.count_frames_and_secs(str(path))
        assert frames == 17 and seconds == pytest.approx(17 / 20, abs=0.01)


def test_film_shows_the_motion(pendulum_run, tmp_path):
    with Image.open(animate(pendulum_run, tmp_path / "a.gif", fps=10, dpi=40)) as film:
        first = np.asarray(film.convert("RGB"), dtype=int)
        film.seek(film.n_frames - 1)
        assert np.abs(first - np.asarray(film.convert("RGB"), dtype=int)).max() > 100


def test_bad_films_are_refused(pendulum_run, tmp_path):
    with pytest.raises(ValueError, match=r"path suffix: got '.avi', expected one of .gif, .mp4"):
        animate(pendulum_run, tmp_path / "film.avi")
    with pytest.raises(ValueError, match=r"fps: got 0"):
        animate(pendulum_run, tmp_path / "film.gif", fps=0)
    nothing = cordax.simulate(Oscillator(), dt=0.1, duration=0.2)
    with pytest.raises(ValueError, match=r"geometry.*something to draw"):
        animate(nothing, tmp_path / "film.gif")
    assert list(tmp_path.iterdir()) == []


def test_a_figure_file_appears_complete_or_not_at_all(pendulum_run, tmp_path):
    target = tmp_path / "new" / "figure.png"
    with Image.open(save_figure(plot_states(pendulum_run), target, dpi=40)) as picture:
        assert picture.size[0] > 100
    before = target.read_bytes()
    with pytest.raises(ValueError):
        save_figure(plot_states(pendulum_run), target, dpi=-1.0)
    assert target.read_bytes() == before and len(list(target.parent.iterdir())) == 1


def test_what_stays_upright_is_drawn_in_its_plane():
    rod = SplineRod(control_points=5)
    still = np.asarray(rod.default_state().q)
    bent = still.copy()
    bent[3] = 0.1  # y of a control point
    upright = scenes_of(rod, np.zeros(2), np.stack([still, still]))
    assert {dimension(s) for s in upright} == {2}
    assert plot_scene(rod, still).axes[0].get_ylabel() == "z [m]"
    assert dimension(scenes_of(rod, np.zeros(2), np.stack([still, bent]))[0]) == 3
    assert dimension(scenes_of(rod, np.zeros(1), still[None], flatten=False)[0]) == 3


def test_bodies_are_filled_where_their_pose_puts_their_faces():
    class Door(Pendulum):
        def geometry(self, t, q):
            c, s = jnp.cos(q[0]), jnp.sin(q[0])
            outline = jnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
            turn = jnp.array([[[c, -s], [s, c]]])
            return Scene(
                bodies={"door": Bodies(jnp.array([[3.0, 4.0]]), turn, outline[None, None])}
            )

    axes = plot_scene(Door(), jnp.array([np.pi / 2])).axes[0]
    (filled,) = axes.collections
    np.testing.assert_allclose(
        filled.get_paths()[0].vertices[:3], [[3, 4], [3, 5], [1, 5]], atol=1e-12
    )
    assert filled.get_facecolor()[0, 3] > 0.5


@pytest.mark.parametrize("space", [False, True])
def test_frames_are_what_axes_would_draw(space):
    """Lines, coloured and plain, faces and points of a frame against matplotlib's own artists."""
    rng = np.random.default_rng(1)
    d = 3 if space else 2
    faces = np.broadcast_to(rng.normal(size=(2, 3, 4, d)), (2, 2, 3, 4, d))
    scene = Scene(
        {"cable": rng.normal(size=(2, 5, 2, d)), "spring": rng.normal(size=(2, 2, 2, d))},
        {"exit": rng.normal(size=(2, 4, d)), "pivot": rng.normal(size=(2, 3, d))},
        {"body": Bodies(rng.normal(size=(2, 2, d)), np.stack([[np.eye(d)] * 2] * 2), faces)},  # pyright: ignore
    )
    tension = np.abs(rng.normal(size=(2, 5)))
    norm = norm_of(tension)
    film = Film(np.zeros(2), scene, {"cable": tension}, norm, "both", "corner")
    pictures = [frame[..., :3].astype(int) for frame in frames(film, 90.0)]
    below = slice(60, None)  # the clock is above
    unlike = lambda a, b: np.mean(np.abs(a - b)[below].max(axis=-1) > 80)
    for i in range(2):
        with plt.rc_context(FONT):
            figure = stage(scene, 90.0, True)
            canvas, axes = FigureCanvasAgg(figure), figure.axes[0]
            fit_view(axes, [scene])
            axes.set_title("both")
            colour_bar(axes, "cable", norm, values=[tension])
            draw(axes, jax.tree.map(lambda x, i=i: x[i], scene), {"cable": tension[i]}, norm)
            canvas.draw()
            wanted = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
        # edges of strokes may be rounded to other pixels
        assert unlike(pictures[i], wanted) < 0.002
        assert unlike(pictures[1 - i], wanted) > 0.02
