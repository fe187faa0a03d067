import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;

/** Offers messages at steady rates until it is told to stop. ../loads.py explains the words. */
final class Load {
    private static final long BEGUN = System.nanoTime();
    private static final long BEGUN_AT = nanos(Instant.now());

    /** Each text once, in the order of occurrence. */
    private final List<String> errors = new ArrayList<>();

    private final List<Stream> streams = new ArrayList<>();

    static String run(PulsarClient client, Client.Options asked) throws Exception {
        Load load = new Load();
        List<Producer<byte[]>> producers = new ArrayList<>();
        for (String text : asked.word(0).split(",")) {
            int at = text.lastIndexOf('=');
            String topic = text.substring(0, at);
            producers.add(producer(client, topic, asked));
            String tag = asked.text("tag", "") + "." + load.streams.size();
            load.streams.add(load.new Stream(topic, Double.parseDouble(text.substring(at + 1)), tag));
        }
        Client.sayReady();
        for (int at = 0; at < producers.size(); at++) {
            load.streams.get(at).start(producers.get(at), asked);
        }
        while (!asked.isOver()) {
            Thread.sleep(Client.POLL_MS);
        }
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(asked.number("patience-s", 0));
        while (load.streams.stream().anyMatch(Stream::isWaiting) && System.nanoTime() < until) {
            Thread.sleep(Client.POLL_MS);
        }
        load.write(Path.of(asked.word(1)));
        return "{\"loaded\": true}";
    }

    private static Producer<byte[]> producer(PulsarClient client, String topic, Client.Options asked)
            throws PulsarClientException {
        int batch = asked.number("batch-of", 0);
        return client.newProducer()
                .topic(topic)
                .enableBatching(batch > 0)
                .batchingMaxMessages(Math.max(2, batch))
                .batchingMaxPublishDelay(10, TimeUnit.MILLISECONDS)
                .maxPendingMessages(asked.number("pending", 0))
                .blockIfQueueFull(asked.text("when-full", "block").equals("block"))
                .create();
    }

    /** Reads the monotonic clock. */
    private static long now() {
        return BEGUN_AT + System.nanoTime() - BEGUN;
    }

    private static long nanos(Instant moment) {
        return TimeUnit.SECONDS.toNanos(moment.getEpochSecond()) + moment.getNano();
    }

    private synchronized long code(Throwable error) {
        if (error == null) {
            return 0;
        }
        // Leave out what differs between messages.
        String text = error.getClass().getSimpleName();
        if (!errors.contains(text)) {
            errors.add(text);
        }
        return errors.indexOf(text) + 1;
    }

    /** Writes the results so far: receipts may still arrive. */
    private synchronized void write(Path file) throws IOException {
        List<long[][]> kept = streams.stream().map(Stream::columns).collect(Collectors.toList());
        String head = "{\"topics\": " + quoted(streams.stream().map(it -> it.topic).collect(Collectors.toList()))
                + ", \"counts\": " + kept.stream().map(it -> it[0].length).collect(Collectors.toList())
                + ", \"errors\": " + quoted(errors) + "}\n";
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
            out.write(head.getBytes(StandardCharsets.UTF_8));
            for (long[][] columns : kept) {
                for (long[] column : columns) {
                    ByteBuffer bytes = ByteBuffer.allocate(8 * column.length).order(ByteOrder.LITTLE_ENDIAN);
                    bytes.asLongBuffer().put(column);
                    out.write(bytes.array());
                }
            }
        }
    }

    private static String quoted(List<String> texts) {
        return texts.stream().map(it -> '"' + it + '"').collect(Collectors.joining(", ", "[", "]"));
    }

    /**
     * One producer's messages: when each was sent and settled (0: not yet), in nanoseconds, and the number of its error
     * or 0.
     */
    private final class Stream {
        private final String topic;
        private final double rate;
        private final String tag;
        private long[] sent = new long[1024];
        private long[] settled = new long[1024];
        private long[] codes = new long[1024];
        private int count;
        private int left;

        Stream(String topic, double rate, String tag) {
            this.topic = topic;
            this.rate = rate;
            this.tag = tag;
        }

        void start(Producer<byte[]> producer, Client.Options asked) {
            Thread thread = new Thread(() -> {
                try {
                    offer(producer, asked);
                } catch (InterruptedException end) {
                    Thread.currentThread().interrupt();
                }
            });
            thread.setDaemon(true); // a blocked thread must not keep the process alive
            thread.start();
        }

        /** Sends at a steady rate, and catches up as fast as possible. */
        private void offer(Producer<byte[]> producer, Client.Options asked) throws InterruptedException {
            int size = asked.number("size", 0);
            long start = System.nanoTime();
            for (int number = 0; !asked.isOver(); number++) {
                long due = start + (long) ((number + 1) * 1e9 / rate);
                if (due - System.nanoTime() > 1_000_000 && !Client.sleepUntil(due, asked)) {
                    return;
                }
                byte[] text = (number + " " + tag + " ").getBytes(StandardCharsets.UTF_8);
                byte[] content = Arrays.copyOf(text, Math.max(size, text.length));
                Arrays.fill(content, text.length, content.length, (byte) ' ');
                int sent = number;
                begin();
                producer.sendAsync(content).whenComplete((id, error) -> settle(sent, error));
            }
        }

        private synchronized void begin() {
            if (count == sent.length) {
                sent = Arrays.copyOf(sent, 2 * count);
                settled = Arrays.copyOf(settled, 2 * count);
                codes = Arrays.copyOf(codes, 2 * count);
            }
            sent[count++] = now();
        }

        private void settle(int number, Throwable error) {
            long code = code(error);
            synchronized (this) {
                settled[number] = now();
                codes[number] = code;
                left++;
            }
        }

        synchronized boolean isWaiting() {
            return left < count;
        }

        synchronized long[][] columns() {
            return new long[][] {
                Arrays.copyOf(sent, count), Arrays.copyOf(settled, count), Arrays.copyOf(codes, count)
            };
        }
    }
}
