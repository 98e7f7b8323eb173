"""Fixtures that several files of tests share."""

import pytest

from tests.helpers.multilingual import PAIRS, Case, make_case


@pytest.fixture(scope="session", params=[*PAIRS])
def case(request, tmp_path_factory) -> Case:
    """An imported multilingual model of each kind; tests do not change its folders."""
    pytest.importorskip("transformers")
    return make_case(request.param, tmp_path_factory.mktemp(request.param))
