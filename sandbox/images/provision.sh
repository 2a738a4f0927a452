#!/bin/sh
# Makes a Debian with packages.txt into the base image. Used by the Dockerfile and by the debootstrap build alike.
set -eu
groupadd --gid 1000 agent
useradd --uid 1000 --gid 1000 --no-create-home --home-dir /home/agent --shell /bin/bash agent
mkdir -p /workspace /home/agent /opt/venv
chown agent:agent /workspace /home/agent
python3 -m venv /opt/venv
/opt/venv/bin/python -m pip install --no-cache-dir --upgrade --requirement "$1"
chown -R agent:agent /opt/venv
