#!/bin/sh
# Makes a virtual environment with the pipeline as its image has it:
#
#   install.sh ENVIRONMENT WHEEL CONSTRAINTS [EXTRAS]
set -eu

environment=$1
sh "$(dirname "$0")/../gateway/install.sh" "$environment" "$2" "$3" "${4:-pipeline,topic}"

# Paths that do not name the version of Python, for spark-submit and manifests.
job=$("$environment/bin/python" -c 'import gateway.pipeline.command as it; print(it.__file__)')
home=$("$environment/bin/python" -c 'import pyspark, os; print(os.path.dirname(pyspark.__file__))')
ln -sfn "$job" "$environment/pipeline.py"
ln -sfn "$home" "$environment/spark"
