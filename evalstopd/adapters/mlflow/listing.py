"""Lists the runs of an experiment, page by page: for looking at the past, never for deciding on a job."""

from collections.abc import Iterator
from urllib.parse import quote

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Answer, Http
from evalstopd.adapters.mlflow.runs import facts_of
from evalstopd.core.binding import RunFacts
from evalstopd.errors import Rejected, Unavailable

_PAGE = 200
# Of a name in an address: MLflow keeps 256 characters, and the web server of MLflow 2 takes lines of 4,094 bytes.
_LONGEST_NAME = 3_500


def runs_of(http: Http, experiment: str, most: int) -> tuple[RunFacts, ...]:
    """Return the runs of an experiment, named or by its id, the newest first. Raises Rejected or Unavailable."""
    found: list[RunFacts] = []
    for page in _pages(http, _experiment_id(http, experiment)):
        found += [facts_of(item) for item in page]
        if len(found) >= most:
            break
    return tuple(found[:most])


def _experiment_id(http: Http, experiment: str) -> str:
    if len(quote(experiment, errors="replace")) > _LONGEST_NAME:
        raise Rejected(f"no such experiment: {experiment[:100]!a}... is longer than any name that MLflow keeps")
    try:
        answer = http.get("/experiments/get-by-name", {"experiment_name": experiment})
    except Rejected:
        answer = _by_id(http, experiment)
    named = fields.mapping(answer.body.get("experiment"), "experiment")
    return fields.text(named.get("experiment_id"), "experiment id")


def _by_id(http: Http, experiment: str) -> Answer:
    try:
        return http.get("/experiments/get", {"experiment_id": experiment})
    except Rejected as error:
        raise Rejected(f"no such experiment: {experiment[:100]!a} ({error})") from None


def _pages(http: Http, experiment_id: str) -> Iterator[list[object]]:
    token, seen = "", {""}
    while True:
        asked = {"experiment_ids": [experiment_id], "max_results": _PAGE, "order_by": ["attributes.start_time DESC"]}
        answer = http.post("/runs/search", {**asked, "page_token": token} if token else asked)
        yield fields.items(answer.body.get("runs"), "runs")
        token = fields.text(answer.body.get("next_page_token"), "page token")
        if not token:
            return
        if token in seen:
            raise Unavailable("MLflow sends the same page of runs again and again")
        seen.add(token)
