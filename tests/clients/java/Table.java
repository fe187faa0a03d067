import java.util.List;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.TableView;

/**
 * Sends a message for each of COUNT keys, and then another one. A table view has the newest of each key, both of
 * messages before it and of later ones.
 */
final class Table {
    private static final int PAUSE_MS = 10;

    static void run(PulsarClient client, Client.Options asked, Trying.Seen got) throws Exception {
        String topic = asked.word(0);
        int count = asked.number(1);
        try (Producer<String> producer =
                client.newProducer(Schema.STRING).topic(topic).enableBatching(false).create()) {
            send(producer, count, 0);
            try (TableView<String> view =
                    client.newTableView(Schema.STRING).topic(topic).create()) {
                got.put("before", newest(view, count, 0, asked));
                send(producer, count, count);
                got.put("after", newest(view, count, count, asked));
            }
        }
    }

    /** Sends a message with the number first + n for the key n. */
    private static void send(Producer<String> producer, int count, int first) throws PulsarClientException {
        for (int key = 0; key < count; key++) {
            producer.newMessage().key("key-" + key).value(Integer.toString(first + key)).send();
        }
    }

    /** Waits until the table has this many values from first on, and returns them. */
    private static List<Integer> newest(TableView<String> view, int count, int first, Client.Options asked)
            throws InterruptedException {
        while (true) {
            List<Integer> numbers = view.values().stream()
                    .map(Integer::valueOf)
                    .filter(number -> number >= first)
                    .sorted()
                    .toList();
            if (numbers.size() == count || asked.isOver()) {
                return numbers;
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    private Table() {}
}
