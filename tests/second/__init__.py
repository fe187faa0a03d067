"""A second protocol, `memo`, unlike Pulsar's: requests and answers in order, several topics in one
request, one address for each broker. It proves that no package of the gateway depends on one
protocol."""
