import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.inlong.tubemq.client.common.ConfirmResult;
import org.apache.inlong.tubemq.client.common.ConsumeResult;
import org.apache.inlong.tubemq.client.common.QueryMetaResult;
import org.apache.inlong.tubemq.client.config.ConsumerConfig;
import org.apache.inlong.tubemq.client.config.TubeClientConfig;
import org.apache.inlong.tubemq.client.consumer.ClientBalanceConsumer;
import org.apache.inlong.tubemq.client.consumer.ConsumePosition;
import org.apache.inlong.tubemq.client.consumer.ConsumerResult;
import org.apache.inlong.tubemq.client.consumer.PullMessageConsumer;
import org.apache.inlong.tubemq.client.exception.TubeClientException;
import org.apache.inlong.tubemq.client.factory.MessageSessionFactory;
import org.apache.inlong.tubemq.client.factory.TubeSingleSessionFactory;
import org.apache.inlong.tubemq.client.producer.MessageProducer;
import org.apache.inlong.tubemq.client.producer.MessageSentResult;
import org.apache.inlong.tubemq.corebase.Message;
import org.apache.inlong.tubemq.corebase.rv.ProcessResult;

/** A client of TubeMQ, for one piece of work:
 *
 * produce MASTER TOPIC COUNT [SIZE] sends messages whose payloads begin with their numbers, from 0
 *     on, and waits for each. Prints "failed NUMBER CODE TEXT" for each that fails, where CODE is
 *     "exception" if the client throws one, and at the end "sent N failed M".
 * pull MASTER TOPIC GROUP COUNT receives as a member of a group whose partitions the master
 *     spreads. Prints the number of each message once it is confirmed, one in a line, and ends
 *     after COUNT or when the time is over.
 * balance MASTER TOPIC GROUP COUNT does the same as the only member of a group whose clients choose
 *     their partitions: it takes all.
 *
 * Properties: seconds, the time for receiving (60); user and password, which turn authentication
 * on. Notes go to standard error. Exits with 0 unless the work could not be begun, or broke off. */
public class Tube {
    private static final long HEARTBEAT_MS = 1000;
    private static final long IDLE_MS = 50;
    private static final long LOOK_AGAIN_MS = 1000;
    private static final int FAILED = 1;

    private static String noted;

    public static void main(String[] arguments) {
        int code = FAILED;
        try {
            work(arguments);
            code = 0;
        } catch (Throwable e) {
            e.printStackTrace();
        } finally {
            System.exit(code); // the client's threads would keep the process
        }
    }

    private static void work(String[] of) throws Throwable {
        switch (of[0]) {
            case "produce" -> produce(of[1], of[2], number(of, 3), number(of, 4));
            case "pull" -> pull(of[1], of[2], of[3], number(of, 4));
            case "balance" -> balance(of[1], of[2], of[3], number(of, 4));
            default -> throw new IllegalArgumentException(of[0]);
        }
    }

    /** Returns an argument, 0 if it is left out. */
    private static int number(String[] of, int place) {
        return place < of.length ? Integer.parseInt(of[place]) : 0;
    }

    // -- sending ---------------------------------------------------------------------------------

    private static void produce(String master, String topic, int count, int size) throws Throwable {
        TubeClientConfig config = new TubeClientConfig(master);
        prepare(config);
        MessageSessionFactory factory = new TubeSingleSessionFactory(config);
        MessageProducer producer = factory.createProducer();
        producer.publish(topic);
        int sent = 0;
        for (int number = 0; number < count; number++) {
            String failure = send(producer, new Message(topic, payload(number, size)));
            if (failure == null) {
                sent++;
            } else {
                System.out.println("failed " + number + " " + failure);
            }
        }
        System.out.println("sent " + sent + " failed " + (count - sent));
        producer.shutdown();
        factory.shutdown();
    }

    /** Returns null, or in one line why a message was not sent. */
    private static String send(MessageProducer producer, Message message)
            throws InterruptedException {
        try {
            MessageSentResult result = producer.sendMessage(message);
            return result.isSuccess() ? null : result.getErrCode() + " " + line(result.getErrMsg());
        } catch (TubeClientException e) {
            return "exception " + line(String.valueOf(e.getMessage()));
        }
    }

    private static String line(String text) {
        return text.replaceAll("\\s+", " ").strip();
    }

    /** A number and a space, then as many dots as make it this long. */
    private static byte[] payload(int number, int size) {
        byte[] written = (number + " ").getBytes(StandardCharsets.US_ASCII);
        byte[] payload = Arrays.copyOf(written, Math.max(size, written.length));
        Arrays.fill(payload, written.length, payload.length, (byte) '.');
        return payload;
    }

    // -- receiving -------------------------------------------------------------------------------

    private static void pull(String master, String topic, String group, int count)
            throws Throwable {
        ConsumerConfig config = receiving(master, group);
        MessageSessionFactory factory = new TubeSingleSessionFactory(config);
        PullMessageConsumer consumer = factory.createPullConsumer(config);
        consumer.subscribe(topic, null);
        consumer.completeSubscribe();
        long until = deadline();
        for (int received = 0; received < count && System.currentTimeMillis() < until; ) {
            ConsumerResult result = consumer.getMessage();
            if (!result.isSuccess()) {
                pause(result.getErrCode(), result.getErrMsg());
                continue;
            }
            ConsumerResult confirmed = consumer.confirmConsume(result.getConfirmContext(), true);
            if (confirmed.isSuccess()) {
                received += print(result.getMessageList());
            } else {
                pause(confirmed.getErrCode(), "not confirmed: " + confirmed.getErrMsg());
            }
        }
        consumer.shutdown();
        factory.shutdown();
    }

    private static void balance(String master, String topic, String group, int count)
            throws Throwable {
        ConsumerConfig config = receiving(master, group);
        MessageSessionFactory factory = new TubeSingleSessionFactory(config);
        ClientBalanceConsumer consumer = factory.createBalanceConsumer(config);
        ProcessResult begun = new ProcessResult();
        if (!consumer.start(Map.of(topic, new TreeSet<>()), -1, 0, begun)) {
            throw new TubeClientException(begun.getErrCode() + " " + begun.getErrMsg());
        }
        ConsumeResult result = new ConsumeResult();
        ConfirmResult confirmed = new ConfirmResult();
        long until = deadline();
        long look = 0;
        for (int received = 0; received < count && System.currentTimeMillis() < until; ) {
            if (System.currentTimeMillis() >= look) {
                take(consumer);
                look = System.currentTimeMillis() + LOOK_AGAIN_MS;
            }
            if (consumer.getCurRegisteredPartSet().isEmpty()) {
                pause(0, "no partition yet"); // getMessage would wait for one that nobody takes
            } else if (!consumer.getMessage(result)) {
                pause(result.getErrCode(), result.getErrMsg());
            } else if (consumer.confirmConsume(result.getConfirmContext(), true, confirmed)) {
                received += print(result.getMessageList());
            } else {
                pause(confirmed.getErrCode(), "not confirmed: " + confirmed.getErrMsg());
            }
        }
        consumer.shutdown();
        factory.shutdown();
    }

    /** Connects to all partitions that it is not connected to, each from where its group is. */
    private static void take(ClientBalanceConsumer consumer) throws TubeClientException {
        QueryMetaResult known = new QueryMetaResult();
        if (!consumer.getPartitionMetaInfo(known)) {
            System.err.println("no partitions: " + known.getErrCode() + " " + known.getErrMsg());
            return;
        }
        ProcessResult connected = new ProcessResult();
        for (Map.Entry<String, Boolean> partition : known.getPartStatusMap().entrySet()) {
            boolean wanted = partition.getValue()
                && !consumer.getCurRegisteredPartSet().contains(partition.getKey());
            if (wanted && !consumer.connect2Partition(partition.getKey(), -1, connected)) {
                String why = connected.getErrCode() + " " + connected.getErrMsg();
                System.err.println("not connected to " + partition.getKey() + ": " + why);
            }
        }
    }

    private static int print(List<Message> messages) {
        for (Message message : messages) {
            String payload = new String(message.getData(), StandardCharsets.US_ASCII);
            System.out.println(payload.substring(0, payload.indexOf(' ')));
        }
        return messages.size();
    }

    /** Notes why there is nothing, once as long as it stays so, and waits a little. */
    private static void pause(int code, String why) throws InterruptedException {
        String note = code + " " + why;
        if (!note.equals(noted)) {
            System.err.println(note);
        }
        noted = note;
        Thread.sleep(IDLE_MS);
    }

    private static long deadline() {
        return System.currentTimeMillis() + 1000L * Integer.getInteger("seconds", 60);
    }

    // -- settings --------------------------------------------------------------------------------

    private static ConsumerConfig receiving(String master, String group) {
        ConsumerConfig config = new ConsumerConfig(master, group);
        prepare(config);
        config.setConsumePosition(ConsumePosition.CONSUMER_FROM_FIRST_OFFSET);
        config.setMsgNotFoundWaitPeriodMs(IDLE_MS);
        config.setShutDownRebalanceWaitPeriodMs(IDLE_MS);
        return config;
    }

    private static void prepare(TubeClientConfig config) {
        config.setHeartbeatPeriodMs(HEARTBEAT_MS);
        config.setHeartbeatPeriodAfterFail(HEARTBEAT_MS);
        String user = System.getProperty("user");
        if (user != null) {
            config.setAuthenticInfo(true, user, System.getProperty("password", ""));
        }
    }
}
