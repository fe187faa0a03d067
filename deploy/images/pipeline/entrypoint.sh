#!/bin/sh
# What a container of the pipeline runs: `driver` and `executor` are what Spark starts in
# Kubernetes, with the environment that it sets for each; anything else is a command.
set -eu

case ${1:-} in
driver)
    shift
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
    ;;
executor)
    # Options of Java come as SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...; each is one word.
    set --
    number=0
    while eval "[ -n \"\${SPARK_JAVA_OPT_$number+set}\" ]"; do
        eval "set -- \"\$@\" \"\$SPARK_JAVA_OPT_$number\""
        number=$((number + 1))
    done
    exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" "$@" \
        "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" \
        --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
*)
    exec "$@"
    ;;
esac
