"""Transactions belong to the principal that began them.

Ids of transactions count up, so anybody can guess them. A broker that authenticates clients keeps
the owner of each transaction, and compares it with `original_principal`; a broker that does not
lets everybody extend and end it. So where the gateway verifies clients, it remembers to which
principal a broker gave each id, for all connections of one listener.

The owner cannot be written into the id, as a digest that all replicas could check: clients find the
coordinator by the upper half of an id, and write both halves into the metadata of each message.
Metadata is under the message's checksum, and brokers compare it with ids of aborted transactions.
Source: PIP-31; `TransactionCoordinatorClientImpl`, `TopicTransactionBuffer` and
`ServerCnx.verifyTxnOwnership` of Pulsar 4.2.
"""

from __future__ import annotations

from typing import Any

from gateway.wire.contract import Denial, Refusal
from gateway.wire.plugin import Mode
from gateway.wire.pulsar.commands import BUSY
from gateway.wire.pulsar.context import Client, ListenerContext
from gateway.wire.pulsar.owners import Transaction

MOST_ASKED = 5_000
"""In-flight requests of one connection that begin transactions, and as many that end them. A client
has one for each of its transactions at most."""

NO_METHOD = "none"
"""The method of the gateway's own credential where brokers authenticate nobody."""

NOT_FOUND = Denial(Refusal.UNAUTHORIZED, "this client has no such transaction")


class TransactionRequests:
    """The requests of one pair about transactions. `request` and `response` are the messages of
    their commands. Where brokers authenticate clients by themselves (pass-through), nothing is
    remembered but which transactions are being ended."""

    __slots__ = ("_beginning", "_ending", "_listener", "_principal", "_verified")

    def __init__(self, listener: ListenerContext, client: Client) -> None:
        self._listener = listener
        self._principal = client.principal.name
        self._verified = listener.mode is not Mode.PASS_THROUGH
        # In-flight requests, by request id.
        self._beginning: dict[int, bool] = {}  # whether a coordinator of 5.0 is asked
        self._ending: dict[int, Transaction] = {}

    @property
    def are_ending(self) -> bool:
        """Return whether the end of a transaction is in flight."""
        return bool(self._ending)

    def begin(self, request: Any) -> Denial | None:
        """Note a NEW_TXN until its response; return a denial if that cannot be. A second one of the
        same request id is refused: its response could be taken for that of the first."""
        if not self._verified:
            return None
        if request.request_id in self._beginning or len(self._beginning) >= MOST_ASKED:
            return BUSY
        self._beginning[request.request_id] = request.scalable
        return None

    def began(self, response: Any) -> None:
        """Remember whose the transaction in a NEW_TXN_RESPONSE is."""
        scalable = self._beginning.pop(response.request_id, None)
        if scalable is not None and not response.HasField("error"):
            id = Transaction(scalable, response.txnid_most_bits, response.txnid_least_bits)
            self._listener.owners.add(id, self._principal)

    def forbid(self, request: Any) -> Denial | None:
        """Return a denial if the transaction in a request is not the client's. A transaction whose
        owner the gateway does not know is the broker's to judge, if the broker authenticates
        clients; otherwise it is nobody's."""
        if not self._verified:
            return None
        owner = self._listener.owners.get(_transaction(request))
        if owner is None:
            return None if self._brokers_judge else NOT_FOUND
        return None if owner == self._principal else NOT_FOUND

    @property
    def _brokers_judge(self) -> bool:
        ours = self._listener.services.credential()
        return isinstance(ours, Denial) or ours.method != NO_METHOD

    def end(self, request: Any) -> Denial | None:
        """Note an END_TXN until its response; return a denial if that cannot be."""
        denial = self.forbid(request)
        if denial is None and len(self._ending) >= MOST_ASKED:
            denial = BUSY
        if denial is None:
            self._ending[request.request_id] = _transaction(request)
        return denial

    def ended(self, response: Any) -> None:
        """Forget the transaction of an END_TXN_RESPONSE, unless the response is an error."""
        id = self._ending.pop(response.request_id, None)
        if id is not None and not response.HasField("error"):
            self._listener.owners.remove(id)


def _transaction(request: Any) -> Transaction:
    """Return the transaction that a request names. An absent half of an id is 0, as brokers read
    it."""
    return Transaction(request.scalable, request.txnid_most_bits, request.txnid_least_bits)
