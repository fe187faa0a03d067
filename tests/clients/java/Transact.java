import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * Takes messages from one topic and sends them to another in a transaction, until COUNT are moved (0: until told to
 * stop). Every fourth transaction is aborted, and its messages come again.
 */
final class Transact {
    /** The largest number of messages in a transaction. */
    private static final int PER_TRANSACTION = 5;
    /** One in this many transactions is aborted. */
    private static final int ABORT_EVERY = 4;
    /** Added to the numbers in aborted transactions: once in the first one, twice in the second, and so on. */
    private static final int ABORTED = 1_000_000;
    /** The time after which a coordinator aborts a silent transaction. */
    private static final int LIMIT_S = 5;
    /** Runs tasks when a failed transaction has ended, and whatever it conflicted with. */
    private static final Executor LATER = CompletableFuture.delayedExecutor(LIMIT_S + 2, TimeUnit.SECONDS);
    /** A broker does not answer an acknowledgement that arrives before its consumer is open again. */
    static final int PATIENCE_S = 8;

    private final PulsarClient client;
    private final Consumer<byte[]> consumer;
    private final Producer<byte[]> producer;
    private final Client.Ranges moved = new Client.Ranges();
    private final Client.Errors errors = new Client.Errors();
    private int committed;
    private int aborted;
    private int failed;
    private double longestMs;

    static String run(PulsarClient client, Client.Options asked) throws Exception {
        try (Consumer<byte[]> consumer = client.newConsumer()
                        .topic(asked.word(0))
                        .subscriptionName("s")
                        .subscriptionType(SubscriptionType.Shared)
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS)
                        .subscribe();
                Producer<byte[]> producer = client.newProducer()
                        .topic(asked.word(1))
                        .enableBatching(asked.has("batch"))
                        .batchingMaxPublishDelay(10, TimeUnit.MILLISECONDS)
                        // A message in a transaction may wait for ever.
                        .sendTimeout(0, TimeUnit.SECONDS)
                        .create()) {
            Client.sayReady();
            Transact moving = new Transact(client, consumer, producer);
            int count = asked.number(2);
            for (int number = 0; !asked.isOver() && (count == 0 || moving.moved.size() < count); number++) {
                boolean isAborted = number % ABORT_EVERY == ABORT_EVERY - 1;
                moving.once(isAborted ? ABORTED * (number / ABORT_EVERY + 1) : 0);
            }
            return moving.json();
        }
    }

    private Transact(PulsarClient client, Consumer<byte[]> consumer, Producer<byte[]> producer) {
        this.client = client;
        this.consumer = consumer;
        this.producer = producer;
    }

    /** Runs one transaction. If `extra` is not 0, it is added to the numbers and the transaction is aborted. */
    private void once(int extra) throws Exception {
        List<Message<byte[]>> messages = take();
        if (messages.isEmpty()) {
            return;
        }
        long begun = System.nanoTime();
        try {
            within(messages, extra);
        } catch (Exception error) {
            failed++;
            errors.add(error);
            LATER.execute(() -> askAgain(messages));
        }
        longestMs = Math.max(longestMs, (System.nanoTime() - begun) / 1e6);
    }

    private List<Message<byte[]>> take() throws PulsarClientException {
        List<Message<byte[]>> messages = new ArrayList<>();
        while (messages.size() < PER_TRANSACTION) {
            Message<byte[]> message = consumer.receive(2 * Client.POLL_MS, TimeUnit.MILLISECONDS);
            if (message == null) {
                break;
            }
            messages.add(message);
        }
        return messages;
    }

    private void within(List<Message<byte[]>> messages, int extra) throws Exception {
        Transaction transaction = client.newTransaction()
                .withTransactionTimeout(LIMIT_S, TimeUnit.SECONDS)
                .build()
                .get();
        try {
            fill(transaction, messages, extra);
        } catch (Exception error) {
            transaction.abort(); // or it times out
            throw error;
        }
        if (extra != 0) {
            transaction.abort().get();
            aborted++;
        } else {
            transaction.commit().get();
            committed++;
            messages.forEach(message -> moved.add(Trying.number(message)));
        }
    }

    private void fill(Transaction transaction, List<Message<byte[]>> messages, int extra) throws Exception {
        List<CompletableFuture<?>> pending = new ArrayList<>();
        for (Message<byte[]> message : messages) {
            int number = Trying.number(message) + extra;
            pending.add(producer.newMessage(transaction)
                    .value(Trying.payload(number))
                    .sendAsync());
            pending.add(consumer.acknowledgeAsync(message.getMessageId(), transaction));
        }
        CompletableFuture.allOf(pending.toArray(CompletableFuture[]::new)).get();
    }

    /**
     * Requests redelivery of the messages of a failed transaction: a broker sends those again that an aborted
     * transaction has acknowledged, but none that it was to acknowledge. One that is acknowledged by now does not come
     * again.
     */
    private void askAgain(List<Message<byte[]>> messages) {
        messages.forEach(consumer::negativeAcknowledge);
    }

    private String json() {
        return "{\"moved\": " + moved + ", \"committed\": " + committed + ", \"aborted\": " + aborted
                + ", \"failed\": " + failed + ", \"errors\": " + errors + ", \"longest_ms\": " + longestMs + "}";
    }
}
