"""Fields of a webhook's body that are not as GitHub describes them."""

import pytest

from bot.errors import PayloadError
from bot.payload import Payload


@pytest.mark.parametrize(
    "value", [None, True, "", "soon", 10**30, "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]
)
def test_a_time_that_is_none_is_named(value: object) -> None:
    with pytest.raises(PayloadError, match=r"^run\.updated_at: "):
        Payload({"updated_at": value}, "run").moment("updated_at")
