"""The laboratory: brokers in memory and a demonstration, for trying the gateway without a
cluster.
"""
