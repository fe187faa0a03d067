"""The units of deploy/systemd under a real systemd, installed with the commands of the page.

Real: systemd as process 1 of namespaces, with systemctl, control groups, sandboxes and seccomp; the
package, which is built and installed as pages say; clients, and the brokers of the sandbox.

Not real: the machine's files are this one's under a layer in memory, and its network is this one's
loopback. None of Debian's services run, so there is no journal: the gateway's log is a file. Of the
units a drop-in changes the port, and says where the log and the seal key are.
"""
