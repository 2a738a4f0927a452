"""The demo: real bugs, scripted models behind a local endpoint, and a story that shows the whole loop."""
