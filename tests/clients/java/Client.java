import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TypedMessageBuilder;

/**
 * A small Pulsar client on the published Java package, for tests: the same program as ../go, with
 * the same command line and the same reports. ../programs.py drives it and says what words mean.
 *
 * <pre>
 * client URL produce TOPIC COUNT [--batch] [--key] [--serial] [--interval-ms N] [--limit-s N] [--token T | --token-file F]
 * client URL consume TOPIC SUBSCRIPTION COUNT [--type KIND] [--queue N] [--work-ms N] [--quiet-ms N] [--limit-s N] [--token T | --token-file F]
 * client URL transact SOURCE TARGET COUNT [--batch] [--limit-s N] [--token T | --token-file F]
 * client URL load STREAMS FILE [--tag NAME] [--size N] [--batch-of N] [--pending N] [--when-full block|fail]
 *     [--patience-s N] [--limit-s N]
 * client URL chunks|json|avro|list|packed|pattern|read|seek|table TOPIC COUNT [--size N]
 * </pre>
 */
public final class Client {
    /** The number of different keys, used in turn. */
    static final int KEYS = 10;
    /** How often a waiting program checks if it is time to stop. */
    static final int POLL_MS = 50;

    /** Set by SIGTERM. */
    static volatile boolean isTold;

    /** Something that a client can do: the number of words after its name, and what to do. */
    record Verb(int words, Action action) {}

    interface Action {
        String run(PulsarClient client, Options asked) throws Exception;
    }

    static final Map<String, Verb> VERBS = Map.ofEntries(
            Map.entry("produce", new Verb(2, Client::produce)),
            Map.entry("consume", new Verb(3, Client::consume)),
            Map.entry("transact", new Verb(3, Transact::run)),
            Map.entry("load", new Verb(2, Load::run)),
            Map.entry("chunks", new Verb(2, Trying.of(Chunks::run))),
            Map.entry("json", new Verb(2, Trying.of(Records::json))),
            Map.entry("avro", new Verb(2, Trying.of(Records::avro))),
            Map.entry("list", new Verb(2, Trying.of(Topics::listed))),
            Map.entry("packed", new Verb(2, Trying.of(Packing::run))),
            Map.entry("pattern", new Verb(2, Trying.of(Topics::matching))),
            Map.entry("read", new Verb(2, Trying.of(Reading::read))),
            Map.entry("seek", new Verb(2, Trying.of(Reading::seek))),
            Map.entry("table", new Verb(2, Trying.of(Table::run))));

    public static void main(String[] words) {
        for (String name : List.of("TERM", "INT")) {
            sun.misc.Signal.handle(new sun.misc.Signal(name), signal -> isTold = true);
        }
        int status = 1;
        try {
            System.out.println(run(words));
            status = 0;
        } catch (Throwable error) { // a missing class, too, must not leave threads running
            error.printStackTrace();
        }
        System.out.flush();
        // Closing the client would wait a second for its threads. Producers and consumers are
        // closed already.
        System.exit(status);
    }

    static String run(String[] words) throws Exception {
        if (words.length < 2 || !VERBS.containsKey(words[1])) {
            throw new IllegalArgumentException("wanted: URL " + String.join("|", VERBS.keySet()) + " ...");
        }
        Verb verb = VERBS.get(words[1]);
        Options asked = new Options(words, 2 + verb.words);
        var builder = PulsarClient.builder().serviceUrl(words[0]);
        if (words[1].equals("transact")) {
            builder.enableTransaction(true).operationTimeout(Transact.PATIENCE_S, TimeUnit.SECONDS);
        }
        if (words[1].equals("load")) {
            builder.connectionMaxIdleSeconds(-1); // a connection that ends counts as lost
        }
        if (asked.has("trust")) {
            builder.tlsTrustCertsFilePath(asked.text("trust", "")).enableTlsHostnameVerification(true);
        }
        if (asked.has("certificate")) {
            String certificate = asked.text("certificate", "");
            String key = asked.text("private-key", "");
            if (asked.has("tls-credential")) {
                builder.authentication(AuthenticationFactory.TLS(certificate, key));
            } else {
                builder.tlsCertificateFilePath(certificate).tlsKeyFilePath(key);
            }
        }
        if (asked.has("token")) {
            builder.authentication(AuthenticationFactory.token(asked.text("token", "")));
        }
        if (asked.has("token-file")) {
            Path file = Path.of(asked.text("token-file", ""));
            builder.authentication(AuthenticationFactory.token(() -> read(file)));
        }
        return verb.action.run(builder.build(), asked);
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static void sayReady() {
        System.out.println("{\"ready\": true}");
        System.out.flush();
    }

    /** Says that all has come, and returns when it is told to stop. */
    static void stay(Options asked) throws InterruptedException {
        System.out.println("{\"complete\": true}");
        System.out.flush();
        while (!asked.isOver()) {
            Thread.sleep(POLL_MS);
        }
    }

    // -- produce -------------------------------------------------------------------------------

    static String produce(PulsarClient client, Options asked) throws Exception {
        Sent report = new Sent();
        try (Producer<byte[]> producer = client.newProducer()
                .topic(asked.word(0))
                .enableBatching(asked.has("batch"))
                // Long enough that batches hold several messages.
                .batchingMaxPublishDelay(10, TimeUnit.MILLISECONDS)
                // Like the other clients: without a bound all of COUNT may be pending.
                .maxPendingMessages(1000)
                .blockIfQueueFull(true)
                .create()) {
            sayReady();
            sendAll(producer, asked, report);
            try {
                producer.flush();
            } catch (PulsarClientException error) {
                report.failed(error);
            }
        }
        return report.json();
    }

    /**
     * Sends at a steady pace until everything is sent or it is told to stop. It waits for no receipts; if serial, it
     * waits for each one, and ends at the first failure.
     */
    static void sendAll(Producer<byte[]> producer, Options asked, Sent report) throws InterruptedException {
        int count = asked.number(1);
        long interval = TimeUnit.MILLISECONDS.toNanos(asked.number("interval-ms", 0));
        long start = System.nanoTime();
        for (int number = 0; count == 0 || number < count; number++) {
            if (!sleepUntil(start + number * interval, asked)) {
                return;
            }
            int sent = number;
            long begun = System.nanoTime();
            CompletableFuture<MessageId> sending;
            do {
                sending = message(producer, number, asked).sendAsync();
            } while (failedForTheLibrary(sending));
            sending = sending.whenComplete((id, error) -> report.settled(sent, System.nanoTime() - begun, error));
            if (asked.has("serial") && failed(sending)) {
                return;
            }
        }
    }

    private static boolean failed(CompletableFuture<MessageId> sending) {
        return sending.handle((id, error) -> error != null).join();
    }

    private static TypedMessageBuilder<byte[]> message(Producer<byte[]> producer, int number, Options asked) {
        TypedMessageBuilder<byte[]> message =
                producer.newMessage().value(Integer.toString(number).getBytes(StandardCharsets.UTF_8));
        return asked.has("key") ? message.key("key-" + number % KEYS) : message;
    }

    /**
     * Returns true if a race in the library made the send fail at once: ProducerImpl.getChecksumType checks for a
     * connection and then takes it, although the broker may have closed the producer in between (4.0.8 and 4.2.4).
     * Nothing of the message was sent.
     */
    private static boolean failedForTheLibrary(CompletableFuture<MessageId> sending) {
        if (!sending.isCompletedExceptionally()) {
            return false;
        }
        Throwable error = sending.handle((id, failure) -> failure).join();
        return String.valueOf(error.getMessage()).contains("ConnectionHandler.cnx()\" is null");
    }

    /** Sleeps until that time; returns false if it was told to stop meanwhile. */
    static boolean sleepUntil(long when, Options asked) throws InterruptedException {
        long left;
        while ((left = when - System.nanoTime()) > 0 && !asked.isOver()) {
            TimeUnit.NANOSECONDS.sleep(Math.min(left, TimeUnit.MILLISECONDS.toNanos(POLL_MS)));
        }
        return !asked.isOver();
    }

    // -- consume -------------------------------------------------------------------------------

    static String consume(PulsarClient client, Options asked) throws Exception {
        Map<String, SubscriptionType> kinds = Map.of(
                "exclusive", SubscriptionType.Exclusive,
                "shared", SubscriptionType.Shared,
                "failover", SubscriptionType.Failover,
                "key_shared", SubscriptionType.Key_Shared);
        String kind = asked.text("type", "exclusive");
        if (!kinds.containsKey(kind)) {
            throw new IllegalArgumentException("unknown type " + kind + " of a subscription");
        }
        Received report = new Received();
        try (Consumer<byte[]> consumer = client.newConsumer()
                .topic(asked.word(0))
                .subscriptionName(asked.word(1))
                .subscriptionType(kinds.get(kind))
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .receiverQueueSize(asked.number("queue", 1000))
                .subscribe()) {
            sayReady();
            if (asked.number("queue", 1000) == 0) {
                receiveOneByOne(consumer, asked, report);
            } else {
                receiveAll(consumer, asked, report);
            }
            if (asked.has("stay")) {
                stay(asked);
            }
        }
        return report.json();
    }

    /** Receives until everything has arrived and repeats had their time, or it is told to stop. */
    static void receiveAll(Consumer<byte[]> consumer, Options asked, Received report) throws Exception {
        int count = asked.number(2);
        long quiet = TimeUnit.MILLISECONDS.toNanos(asked.number("quiet-ms", 500));
        long complete = 0;
        while (!asked.isOver() && (complete == 0 || System.nanoTime() - complete < quiet)) {
            Message<byte[]> message = consumer.receive(POLL_MS, TimeUnit.MILLISECONDS);
            if (message == null) {
                continue;
            }
            report.note(message);
            consumer.acknowledge(message);
            if (complete == 0 && count > 0 && report.received.size() >= count) {
                complete = System.nanoTime();
            }
            Thread.sleep(asked.number("work-ms", 0));
        }
    }

    /** Requests each message when needed, until everything has arrived: such a wait has no timeout. */
    static void receiveOneByOne(Consumer<byte[]> consumer, Options asked, Received report) throws Exception {
        while (report.received.size() < asked.number(2)) {
            Message<byte[]> message = consumer.receive();
            report.note(message);
            consumer.acknowledge(message);
            Thread.sleep(asked.number("work-ms", 0));
        }
    }

    // -- the command line ----------------------------------------------------------------------

    /** The words after the verb, and the options after those. */
    static final class Options {
        private static final Set<String> TAKE_NONE =
                Set.of("batch", "key", "serial", "stay", "tls-credential");
        private final List<String> words;
        private final Map<String, String> options = new HashMap<>();
        private final long end;

        Options(String[] line, int first) {
            if (line.length < first) {
                throw new IllegalArgumentException("wanted " + (first - 2) + " words behind the verb");
            }
            words = Arrays.asList(line).subList(2, first);
            for (int at = first; at < line.length; at++) {
                String name = line[at].replaceFirst("^--", "");
                options.put(name, TAKE_NONE.contains(name) ? "" : line[++at]);
            }
            end = System.nanoTime() + TimeUnit.SECONDS.toNanos(number("limit-s", 60));
        }

        String word(int at) {
            return words.get(at);
        }

        int number(int at) {
            return Integer.parseInt(words.get(at));
        }

        boolean has(String name) {
            return options.containsKey(name);
        }

        String text(String name, String otherwise) {
            return options.getOrDefault(name, otherwise);
        }

        int number(String name, int otherwise) {
            return has(name) ? Integer.parseInt(options.get(name)) : otherwise;
        }

        /** Returns true if time is up, or it was told to stop. */
        boolean isOver() {
            return isTold || System.nanoTime() > end;
        }
    }

    // -- reports -------------------------------------------------------------------------------

    /** What became of the sent messages, whose content is their number. */
    static final class Sent {
        private final Ranges acknowledged = new Ranges();
        private final Errors errors = new Errors();
        private double longestMs;

        synchronized void settled(int number, long nanos, Throwable error) {
            longestMs = Math.max(longestMs, nanos / 1e6);
            if (error == null) {
                acknowledged.add(number);
            } else {
                errors.add(error);
            }
        }

        synchronized void failed(Throwable error) {
            errors.add(error);
        }

        synchronized String json() {
            return "{\"acknowledged\": " + acknowledged + ", \"errors\": " + errors
                    + ", \"longest_send_ms\": " + longestMs + "}";
        }
    }

    /** The scope of message order: one key in one partition. */
    record Place(String topic, String key) {}

    /** Where the broker has stored a message. */
    record Identity(int number, MessageId id) {}

    /**
     * The received messages. One that comes again is redelivered, or was stored twice if its id differs. One that comes
     * first after a later one of its place is out of order.
     */
    static final class Received {
        /** The number of messages also known by their ids. Repeats come soon, and a consumer may run for hours. */
        private static final int REMEMBERED = 10_000;

        private final Ranges received = new Ranges();
        private final Map<Integer, Identity> ids = new HashMap<>();
        private final Map<Place, Integer> last = new HashMap<>();
        private int redelivered;
        private int storedTwice;
        private int outOfOrder;

        void note(Message<byte[]> message) {
            int number = Integer.parseInt(new String(message.getValue(), StandardCharsets.UTF_8));
            Identity found = new Identity(number, message.getMessageId());
            if (!received.add(number)) {
                repeat(found);
                return;
            }
            ids.put(number % REMEMBERED, found);
            Place place = new Place(message.getTopicName(), message.hasKey() ? message.getKey() : "");
            if (number < last.getOrDefault(place, -1)) {
                outOfOrder++;
            } else {
                last.put(place, number);
            }
        }

        private void repeat(Identity found) {
            Identity first = ids.get(found.number % REMEMBERED);
            if (first.number == found.number && !first.id.equals(found.id)) {
                storedTwice++;
            } else {
                redelivered++;
            }
        }

        String json() {
            return "{\"received\": " + received + ", \"redelivered\": " + redelivered
                    + ", \"stored_twice\": " + storedTwice + ", \"out_of_order\": " + outOfOrder
                    + ", \"errors\": []}";
        }
    }

    /** A set of numbers: pairs of a first and a last one, with gaps between them. */
    static final class Ranges {
        private final TreeMap<Integer, Integer> lastOf = new TreeMap<>();
        private int size;

        /** Returns true if the number was not there yet. */
        boolean add(int number) {
            Map.Entry<Integer, Integer> before = lastOf.floorEntry(number);
            if (before != null && number <= before.getValue()) {
                return false;
            }
            size++;
            int first = before != null && before.getValue() == number - 1 ? before.getKey() : number;
            Integer last = lastOf.remove(number + 1);
            lastOf.put(first, last == null ? number : last);
            return true;
        }

        int size() {
            return size;
        }

        @Override
        public String toString() {
            return lastOf.entrySet().stream()
                    .map(pair -> "[" + pair.getKey() + ", " + pair.getValue() + "]")
                    .collect(Collectors.joining(", ", "[", "]"));
        }
    }

    /** A limited number of different texts. */
    static final class Errors {
        private static final int MOST = 20;
        private final Set<String> texts = new LinkedHashSet<>();

        void add(Throwable error) {
            if (texts.size() < MOST) {
                texts.add(error.toString());
            }
        }

        @Override
        public String toString() {
            List<String> quoted = new ArrayList<>();
            for (String text : texts) {
                String plain = text.replaceAll("[\\x00-\\x1f]+", " ");
                quoted.add('"' + plain.replace("\\", "\\\\").replace("\"", "\\\"") + '"');
            }
            return quoted.toString();
        }
    }
}
