"""Names of registered models: safe whatever the parts hold, and never one for all jobs."""

import re

import pytest

from evalstopd.core.model import JobKey
from evalstopd.core.registry import check_template, model_name

HOSTILE = "a/b:c\n'\"@é{job}漢 ../x"


@pytest.mark.parametrize("template", ["evalstop-{cluster}-{job}", "{uid}", "best_{account}", "{cluster}-{uid}-{job}"])
def test_a_name_is_safe_whatever_the_parts_hold(template: str):
    check_template(template)
    name = model_name(template, JobKey(HOSTILE, "12_3", 1001, 5), HOSTILE * 50)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,250}", name)


def test_tasks_of_an_array_have_models_of_their_own():
    names = {model_name("m-{cluster}-{job}", JobKey("c", f"12_{task}", 1, 5), "") for task in range(3)}
    assert names == {"m-c-12_0", "m-c-12_1", "m-c-12_2"}


@pytest.mark.parametrize(
    "template",
    [
        "",
        "evalstop",
        "evalstop-{cluster}",
        "{name}-{job}",
        "a/{job}",
        "a:{job}",
        "{job.uid}",
        "{job!r}",
        "{job:>9}",
        "{",
    ],
)
def test_what_would_be_unsafe_or_one_name_for_all_is_refused(template: str):
    with pytest.raises(ValueError, match=r"\S"):
        check_template(template)
