"""Walks what MLflow lists page by page; where a page is longer than we read of any answer, by smaller ones."""

from collections.abc import Callable, Iterator, Mapping

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Answer, Asks
from evalstopd.adapters.mlflow.problems import TooLong
from evalstopd.errors import Unavailable


def pages(http: Asks, path: str, asked: Mapping[str, object], size: int) -> Iterator[Answer]:
    """Yield the answers to a search, of at most `size` entries each. Raises Unavailable or Rejected.

    TooLong: a single entry is beyond what is read of any answer.
    """

    def ask(token: str) -> Answer:
        nonlocal size
        answer, size = _page(http, path, {**asked, "page_token": token} if token else asked, size)
        return answer

    return walked(ask)


def walked(ask: Callable[[str], Answer]) -> Iterator[Answer]:
    """Yield the answers from the first page on; `ask` gets its token. Raises Unavailable where they go round."""
    token, seen = "", {""}
    while True:
        answer = ask(token)
        yield answer
        token = fields.text(answer.body.get("next_page_token"), "page token")
        if not token:
            return
        if token in seen:
            raise Unavailable("MLflow sends the same page again and again")
        seen.add(token)


def _page(http: Asks, path: str, asked: Mapping[str, object], size: int) -> tuple[Answer, int]:
    """Return the next page, and how large a page may be from here on."""
    while True:
        try:
            return http.post(path, {**asked, "max_results": size}), size
        except TooLong:
            if size == 1:
                raise
            size //= 2
