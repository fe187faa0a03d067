"""Export of spans and log lines to an OpenTelemetry collector, by OTLP over HTTP."""
