"""TubeMQ's own decoder as judge: a server must read each request as the gateway did."""
