"""`make bench`: compares the gateway with HAProxy, and with Apache's own proxy on request.

One proxy at a time has a core of its own, the load generator another one. The compared figure is
CPU time per frame; docs/performance.md says how to read it. Modules:

- `machine`: cores, interpreters, and other load on the machine
- `load`: the load generator, built and called
- `proxies`: how each proxy is configured, started and stopped; `javaproxy` for Apache's, `limits`
  for what any proxy could reach, with the relays in relay.c and `bare`
- `rows`: the measured rows and the goals
- `rounds`: takes the samples; `figures` are computed from them
- `report`: the table
- `workers`: another table, by number of workers
"""
