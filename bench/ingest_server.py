"""acrouter's web part alone, as `acrouter up` serves it beside workers, with a queue that wakes nobody.

`python -m bench.ingest_server PORT DATABASE_URL`, the webhook's secret in WEBHOOK_SECRET.
"""

import logging
import os
import sys

import structlog
import uvicorn
from pydantic import SecretStr

from bot.web import create_app
from store import migrations
from store.database import Database
from store.settings import Settings


class NobodyToWake:
    """The queue's messages are not what is measured: losing them loses no work."""

    def deliver(self, delivery_id: int) -> None:
        pass

    def work(self, task_id: int, *, delay_s: float = 0.0) -> None:
        pass


def main() -> None:
    port, url = int(sys.argv[1]), sys.argv[2]
    logging.basicConfig(level=logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    database = Database(url)
    migrations.upgrade(database)
    settings = Settings(_env_file=None, github_webhook_secret=SecretStr(os.environ["WEBHOOK_SECRET"]))
    app = create_app(settings, database, NobodyToWake())
    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None)


if __name__ == "__main__":
    main()
