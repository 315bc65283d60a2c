"""Plans of lines: a line that is read by a plan gives what it gives without one."""

import random
import re
from fractions import Fraction

import pytest
from bench.reasoning import HELD_OUT, lines, written

from pennyweight.text.equation_plans import MOST_SHAPES, Plans, traced
from pennyweight.text.equations import of_line

DIGITS = re.compile(r"\d+")


class Counted(Plans):
    """Plans that count how often a line is read in full."""

    def __init__(self):
        self.reads = 0
        super().__init__(self._counted)

    def _counted(self, line, number):
        self.reads += 1
        return of_line(line, number)


def found(plans, line):
    return [
        (e.start, e.end, Fraction(*e.value), e.holds, Fraction(*e.computed))
        for e in plans.equations(line, 7)
    ]


@pytest.mark.parametrize("name", ["chains.txt", HELD_OUT])
def test_plans_find_what_is_found_without_them(name):
    rng, plans = random.Random(name), Counted()
    made = 0
    for template in lines(name):
        line = written(template, rng)
        for _ in range(8):
            other = DIGITS.sub(
                lambda m: rng.choice(
                    [m[0], m[0], "0", str(rng.randint(0, 10 ** rng.randint(1, 5)))]
                ),
                line,
            )
            assert found(plans, other) == found(Plans(of_line), other), other
            made += 1
    assert plans.reads < made  # some were read by plans, though the numbers were drawn blindly


def test_a_compiled_plan_gives_what_its_steps_give():
    rng, made = random.Random(2), 0
    for template in lines("chains.txt"):
        line = written(template, rng)
        plan = traced(line, of_line)
        if plan is None:
            continue
        run = plan.compiled()
        for _ in range(4):
            digits = DIGITS.findall(written(template, rng))
            if len(digits) == len(DIGITS.findall(line)):
                assert run(digits, 5) == plan.interpreted(digits, 5)
                made += 1
    assert made > 500


def test_a_plan_that_is_used_often_is_compiled():
    plans = Counted()
    for number in range(2, 30):
        found = plans.equations(f"{number} + 5 = {number + 5 + (number == 25)}", 3)
        assert [e.holds for e in found] == [number != 25]
    assert plans.reads <= 5


def test_numbers_that_look_alike_have_plans_of_their_own():
    plans = Plans(of_line)
    for _ in range(9):
        for line in ("5x10 + 1 = 51", "0x10 + 1 = 17", r"\frac12 + 1 = 3", r"\frac123 + 1 = 3"):
            assert found(plans, line) == found(Plans(of_line), line), line


def test_the_third_line_of_a_shape_is_not_read_again():
    plans = Counted()
    for number in range(2, 50):
        plans.equations(f"So we have {number} * 3 = {3 * number} apples", 0)
    assert plans.reads == 3  # once, then once to make the plan and once for its result


def test_what_depends_on_the_numbers_is_checked():
    plans = Counted()
    results = [
        found(plans, f"12 / {b} = {c}") for b, c in [(3, 4), (4, 3), (6, 2), (0, 5), (5, 2.4)]
    ]
    assert [[e[3] for e in one] for one in results] == [[True], [True], [True], [], [True]]
    wrong = found(plans, "12 / 3 = 5")
    assert [e[3] for e in wrong] == [False]


@pytest.mark.parametrize(
    "line", ["1,200 * 3 = 3,600", "1,2 * 3 = 3,6", f"{'9' * 31} + 1 = {10**31}"]
)
def test_commas_and_long_numbers_keep_their_meaning(line):
    plans = Plans(of_line)
    short = DIGITS.sub("1", line)
    for _ in range(4):
        assert found(plans, line) == found(Plans(of_line), line)
        assert found(plans, short) == found(Plans(of_line), short)


def test_shapes_are_forgotten_before_they_fill_the_memory():
    plans = Plans(of_line)
    for number in range(20_000):
        plans.equations(f"{'ab'[number % 2] * (number % 200)}{number // 400 * 'c'} = x", 0)
    assert len(plans) <= MOST_SHAPES
