"""What the gateway tells about itself.

- `figures`: plain counters that the rooms write, and what metrics read of the books
- `topics`: a topic's name, taken apart for labels
- `exposition`: metrics per topic, as text in slices
- `process`: all other metrics; the only module that imports `prometheus_client`
- `log`: lines for people and machines
"""
