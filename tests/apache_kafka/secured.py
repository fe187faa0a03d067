"""Settings of a broker that wants to know who its clients are, by each mechanism of SASL."""

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
PREFIX = "listener.name.plaintext"
MODULES = "org.apache.kafka.common.security"
SASL = f"""\
listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.enabled.mechanisms={",".join(MECHANISMS)}
{PREFIX}.plain.sasl.jaas.config={MODULES}.plain.PlainLoginModule required \\
  username="alice" password="se:cret" user_alice="se:cret";
{PREFIX}.scram-sha-256.sasl.jaas.config={MODULES}.scram.ScramLoginModule required;
{PREFIX}.scram-sha-512.sasl.jaas.config={MODULES}.scram.ScramLoginModule required;
{PREFIX}.oauthbearer.sasl.jaas.config={MODULES}.oauthbearer.OAuthBearerLoginModule required \\
  unsecuredLoginStringClaim_sub="broker";
"""
USERS = [f"{it}=[name=alice,password=se:cret]" for it in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
