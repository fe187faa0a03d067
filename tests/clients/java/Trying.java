import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/** Things to do with a few messages of its own. */
final class Trying {
    /** How long a message may take on a busy machine. */
    private static final int RECEIVE_S = 15;

    interface Trial {
        void run(PulsarClient client, Client.Options asked, Seen got) throws Exception;
    }

    /** What was received, in order: the numbers of messages by the way they were received. */
    static final class Seen {
        private final Map<String, List<Integer>> numbers = new TreeMap<>();

        void put(String name, List<Integer> found) {
            numbers.put(name, found);
        }

        String json() {
            return numbers.entrySet().stream()
                    .map(entry -> '"' + entry.getKey() + "\": " + entry.getValue())
                    .collect(Collectors.joining(", ", "{\"seen\": {", "}}"));
        }
    }

    static Client.Action of(Trial trial) {
        return (client, asked) -> {
            Client.sayReady();
            Seen got = new Seen();
            trial.run(client, asked, got);
            return got.json();
        };
    }

    /** Starts at the oldest message. */
    static <T> Consumer<T> subscribe(PulsarClient client, String topic, Schema<T> schema) throws PulsarClientException {
        return client.newConsumer(schema)
                .topic(topic)
                .subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .subscribe();
    }

    /** Sends the messages first to last, one by one, and returns their ids. */
    static List<MessageId> sendNumbers(PulsarClient client, String topic, int first, int last)
            throws PulsarClientException {
        List<MessageId> ids = new ArrayList<>();
        try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
            for (int number = first; number <= last; number++) {
                ids.add(producer.send(payload(number)));
            }
        }
        return ids;
    }

    /** Receives and acknowledges this many messages. */
    static List<Integer> receiveNumbers(Consumer<byte[]> consumer, int count) throws PulsarClientException {
        List<Integer> numbers = new ArrayList<>();
        while (numbers.size() < count) {
            Message<byte[]> message = receive(consumer);
            numbers.add(number(message));
            consumer.acknowledge(message);
        }
        return numbers;
    }

    /** Returns the next message; fails without one. */
    static <T> Message<T> receive(Consumer<T> consumer) throws PulsarClientException {
        Message<T> message = consumer.receive(RECEIVE_S, TimeUnit.SECONDS);
        if (message == null) {
            throw new IllegalStateException("no message came");
        }
        return message;
    }

    static byte[] payload(int number) {
        return Integer.toString(number).getBytes(StandardCharsets.UTF_8);
    }

    static int number(Message<byte[]> message) {
        return Integer.parseInt(new String(message.getValue(), StandardCharsets.UTF_8));
    }

    private Trying() {}
}
