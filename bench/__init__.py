"""Benchmarks and their peers: `acrouter bench NAME`.

Each is a module with `run(console) -> dict[str, float]`, the figures by their dotted names.
"""

BENCHES = {
    "dashboard": "bench.dashboard",
    "decide": "bench.decide",
    "ingest": "bench.ingest",
    "long": "bench.long",
    "pipeline": "bench.pipeline",
    "routing": "bench.routing",
    "sandbox": "bench.sandbox",
}
"""Name on the command line -> module. Imported when asked for: a benchmark may need heavy packages."""
