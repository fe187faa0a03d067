"""Metrics and logs.

- `figures`: plain counters that other packages increment and metrics read
- `exposition`: metrics per topic, and the text of all metrics, in slices
- `process`: all other metrics, collected by `prometheus_client`, which nothing else imports
- `log`: the format of log lines
- `folding`: folds floods of similar lines
- `writing`: writes lines, at once or in a thread
"""
