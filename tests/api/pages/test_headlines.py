"""The headline of a run is that of its best side."""

from pennyweight.api.pages.headlines import SideHeadline, are_points, pack, side_headlines, unpack


def side(name, value, **group):
    return {"name": name, "group": group, "estimates": {"accuracy": [value, 0.1, 0.9, 5, 0]}}


def test_the_best_side_comes_first_and_sides_without_a_value_last():
    sides = [side("a · T0", 0.5, subject="a", tier="T0"), side("b · T0", None, subject="b")]
    sides += [side("c · T0", 0.8, subject="c", tier="T0")]
    found = side_headlines({"headline": "accuracy", "whole": side("", 0.65), "sides": sides})
    assert [one.name for one in found] == ["c · T0", "a · T0", "b · T0"]
    assert (found[0].subject, found[0].tier, found[0].value) == ("c", "T0", 0.8)
    assert list(unpack(pack(found))) == found


def test_a_run_with_one_side_has_its_own_headline():
    (only,) = side_headlines({"headline": "accuracy", "whole": side("all", 0.65), "sides": []})
    assert (only.name, only.value) == ("", 0.65)


def test_damaged_headlines_are_none():
    assert unpack("{") == unpack(None) == unpack('[{"x": 1}]') == ()


def test_of_a_probe_the_last_points_with_a_value_come_first():
    values = {0: 0.9, 25: 0.2, 75: 0.4, 100: None}
    sides = [side(f"probe@{n}%", value, tier=f"probe@{n}%") for n, value in values.items()]
    found = side_headlines({"headline": "accuracy", "whole": side("", 0.5), "sides": sides})
    assert [one.name for one in found] == [f"probe@{n}%" for n in (75, 25, 0, 100)]
    assert are_points(found)
    assert not are_points([*found, SideHeadline("a", "a", "T0", 0.5, None, None)])
