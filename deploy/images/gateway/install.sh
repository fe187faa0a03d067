#!/bin/sh
# Makes a virtual environment with the gateway as its image has it:
#
#   install.sh ENVIRONMENT WHEEL CONSTRAINTS [EXTRAS]
#
# PYTHON names another interpreter than python3.
set -eu

environment=$1
wheel=$2
constraints=$3
# All that a configuration may ask for. Java and Spark are in the image of the pipeline.
extras=${4:-basic,console,http,otlp,regex,topic,usage,valkey}

"${PYTHON:-python3}" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$constraints" "$wheel[$extras]"
# What nobody needs who runs the gateway has no place in its image.
"$environment/bin/python" -m pip uninstall --quiet --yes --disable-pip-version-check \
    setuptools pip
"$environment/bin/gateway" --version
