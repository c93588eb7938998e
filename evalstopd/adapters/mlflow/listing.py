"""Lists the runs of an experiment, page by page: for looking at the past, never for deciding on a job."""

from urllib.parse import quote

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Answer, Http
from evalstopd.adapters.mlflow.pages import pages
from evalstopd.adapters.mlflow.runs import facts_of
from evalstopd.core.binding import RunFacts
from evalstopd.errors import Rejected

_PAGE = 200
# Of a name in an address: MLflow keeps 256 characters, and the web server of MLflow 2 takes lines of 4,094 bytes.
_LONGEST_NAME = 3_500


def runs_of(http: Http, experiment: str, most: int) -> tuple[RunFacts, ...]:
    """Return the runs of an experiment, named or by its id, the newest first. Raises Rejected or Unavailable."""
    found: list[RunFacts] = []
    asked = {"experiment_ids": [_experiment_id(http, experiment)], "order_by": ["attributes.start_time DESC"]}
    for page in pages(http, "/runs/search", asked, _PAGE):
        found += [facts_of(item) for item in fields.items(page.body.get("runs"), "runs")]
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
