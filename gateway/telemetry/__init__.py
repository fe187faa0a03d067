"""Metrics and logs.

- `figures`: plain counters that other packages increment, and the figures that metrics read
- `exposition`: metrics per topic, as text in slices
- `process`: all other metrics; the only module that imports `prometheus_client`
- `log`: the format of log lines
- `folding`: folds floods of similar lines
- `writing`: writes lines, at once or in a thread
"""
