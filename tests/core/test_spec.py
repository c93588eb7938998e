"""The text form of rules and policies, and the list of rules behind it."""

import pytest

from evalstopd.core.detectors import DETECTORS, detector
from evalstopd.core.spec import Spec, parse_spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("never", Spec("never")),
        (" never ", Spec("never")),
        ("never:", Spec("never")),
        ("a:x=1", Spec("a", (("x", 1.0),))),
        ("a: x =1, y=-2.5", Spec("a", (("x", 1.0), ("y", -2.5)))),
        ("a:b:x=1", None),
        ("", None),
        (":x=1", None),
        ("a:x=1,x=2", None),
        ("a:x=", None),
        ("a:x", None),
        ("a:x=1=2", None),
    ],
)
def test_a_name_and_its_numbers_are_read_in_order_each_once(text: str, spec: Spec | None) -> None:
    if spec is not None:
        assert parse_spec(text) == spec
    elif text == "a:b:x=1":
        assert parse_spec(text).params == (("b:x", 1.0),), "what no rule knows is for the rule to refuse"
    else:
        with pytest.raises(ValueError, match="is not "):
            parse_spec(text)


def test_what_is_wrong_with_a_text_is_named() -> None:
    with pytest.raises(ValueError, match=r"^'a:x=b': 'b' is not a number$"):
        parse_spec("a:x=b")
    with pytest.raises(ValueError, match=r"^'a:x=1,x=2' is not of the form"):
        parse_spec("a:x=1,x=2")


def test_an_unknown_rule_or_parameter_is_answered_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=f"known: {', '.join(sorted(DETECTORS))}$"):
        detector("lottery")
    with pytest.raises(ValueError, match=r"has no parameter 'q'; it has: k, min_delta$"):
        detector("k-declines:q=1")
    with pytest.raises(ValueError, match=r"it has: none$"):
        detector("never:q=1")


@pytest.mark.parametrize("value", ["1.5", "inf", "nan"])
def test_what_is_counted_is_whole(value: str) -> None:
    with pytest.raises(ValueError, match=f"a whole number is needed, not {value}"):
        detector(f"k-declines:k={value}")


def test_a_rule_is_made_from_a_spec_as_from_its_text() -> None:
    assert detector(Spec("k-declines", (("k", 3.0),))) == detector("k-declines:k=3")
