"""Charts are drawn from the numbers, and claim nothing where there is none."""

from app.console.charts import TOP, Axes, Point, Series, chart

LABELS = [(float(week), f"week {week}") for week in range(20)]


def test_nothing_to_draw_is_no_chart():
    assert chart("reward", "of nothing", [Series("a", []), Series("b", [])], Axes([(0, "now")])) is None


def test_a_line_does_not_cross_a_gap_that_is_too_long():
    points = [Point(0, 0.5), Point(1, 0.6), Point(4, 0.7)]
    crossing, broken = (chart("r", "d", [Series("a", points, gap)], Axes(LABELS)) for gap in (None, 1))
    assert crossing is not None
    assert broken is not None
    assert [drawn.drawn[0].path.count("M") for drawn in (crossing, broken)] == [1, 2]


def test_a_point_stands_between_the_ends_of_its_interval_and_one_without_has_no_bar():
    drawn = chart("r", "d", [Series("a", [Point(0, 0.5, 0.25, 0.75), Point(1, 0.5)])], Axes(LABELS, (0.0, 1.0)))
    assert drawn is not None
    ((_, low, high),) = drawn.drawn[0].bars
    assert high < drawn.drawn[0].dots[0][1] < low  # an SVG counts from above
    assert high >= TOP


def test_labels_have_room_and_the_axis_has_round_numbers():
    drawn = chart("r", "d", [Series("a", [Point(0, 3), Point(19, 17)])], Axes(LABELS))
    assert drawn is not None
    assert len(drawn.across) <= 10
    assert [label for _, label in drawn.up] == ["0", "5", "10", "15"]


def test_a_single_point_and_one_that_is_all_the_same_are_drawn():
    assert chart("r", "d", [Series("a", [Point(3, 0.0)])], Axes([(3, "now")])) is not None
