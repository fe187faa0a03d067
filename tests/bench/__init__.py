"""`make bench`: the gateway beside HAProxy, and Apache's own proxy if asked for.

One proxy at a time has a core of its own, the load generator another one. What is compared is CPU
time per frame; docs/performance/README.md says how to read it. Modules:

- `machine`: cores, interpreters, and what else runs here
- `load`: the load generator, built and called
- `proxies`: how each proxy is configured, started and ended; `javaproxy` for Apache's
- `rows`: what is measured, and the goals
- `rounds`: takes the samples; `figures` are what is made of them
- `report`: the table
"""
