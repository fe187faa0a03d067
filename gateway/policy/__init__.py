"""Policy: authorization of clients by rules, and the rate limits and quotas that rules set."""
