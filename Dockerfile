FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements/core.txt requirements/core.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/core.txt
COPY . .
RUN pip install --no-cache-dir --no-deps .
CMD ["acrouter", "up"]
