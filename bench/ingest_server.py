"""acrouter's web part alone, as `acrouter up` serves and logs it beside workers, with a queue that wakes nobody.

`python -m bench.ingest_server PORT DATABASE_URL`, the webhook's secret in WEBHOOK_SECRET.
"""

import os
import sys

import uvicorn
from pydantic import SecretStr

from bot.web import create_app, server_config
from store import migrations
from store.database import Database
from store.logs import configure_logging
from store.settings import Settings


class NobodyToWake:
    """The queue's messages are not what is measured: losing them loses no work."""

    def deliver(self, delivery_id: int) -> None:
        pass

    def work(self, task_id: int) -> None:
        pass


def main() -> None:
    port, url = int(sys.argv[1]), sys.argv[2]
    settings = Settings(_env_file=None, github_webhook_secret=SecretStr(os.environ["WEBHOOK_SECRET"]))
    configure_logging(settings)
    database = Database(url)
    migrations.upgrade(database)
    app = create_app(settings, database, NobodyToWake())
    uvicorn.Server(server_config(app, port=port)).run()


if __name__ == "__main__":
    main()
