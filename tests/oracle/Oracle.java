import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.pulsar.common.api.proto.BaseCommand;
import org.apache.pulsar.common.api.proto.MessageMetadata;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.protocol.Commands;

/**
 * Prints how a broker reads frames, by the classes that its PulsarDecoder uses, names, by its
 * TopicName, and patterns of topics, by its RE2J.
 *
 * Input: batches. A batch is its number of items (4 bytes), an item is its mode ('F', 'N' or
 * 'P'), its length (4 bytes) and its bytes: a frame without its total size, a name, or a pattern. Output: first a line
 * with the message types and fields that this version knows, then a line of JSON for each item,
 * at the end of the batch. Field names are their numbers, bytes are hexadecimal.
 */
public final class Oracle {
    private static final int MOST_NAMES = 50_000;

    /** A field of a message class. */
    private static final class Part {
        final int number;
        final Method has;
        final Method get;
        final Method count;

        Part(int number, Method has, Method get, Method count) {
            this.number = number;
            this.has = has;
            this.get = get;
            this.count = count;
        }
    }

    private static final Map<Class<?>, List<Part>> SHAPES = new HashMap<>();
    private static final Map<Integer, Part> BODIES = new HashMap<>();
    private static final Map<Object, Integer> NUMBERS = new HashMap<>();
    private static final Map<Class<?>, Method> TOPICS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        for (Part part : shape(BaseCommand.class)) {
            BODIES.put(part.number, part);
        }
        StringBuilder out = new StringBuilder();
        describe(out);
        say(out);
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        BaseCommand command = new BaseCommand();
        while (true) {
            int items;
            try {
                items = in.readInt();
            } catch (EOFException end) {
                return;
            }
            for (; items > 0; items--) {
                int mode = in.readByte();
                byte[] item = new byte[in.readInt()];
                in.readFully(item);
                if (mode == 'N') {
                    name(new String(item, StandardCharsets.UTF_8), out);
                } else if (mode == 'P') {
                    pattern(new String(item, StandardCharsets.UTF_8), out);
                } else {
                    frame(command, item, out);
                }
                out.append('\n');
            }
            say(out);
            TopicName.clearIfReachedMaxCapacity(MOST_NAMES);
        }
    }

    private static void say(StringBuilder out) throws IOException {
        System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
        out.setLength(0);
    }

    // -- frames ------------------------------------------------------------------------------

    /** Decodes like PulsarDecoder.channelRead; any exception closes the connection. */
    private static void frame(BaseCommand command, byte[] data, StringBuilder out) {
        int begin = out.length();
        try {
            ByteBuf buffer = Unpooled.wrappedBuffer(data);
            int size = (int) buffer.readUnsignedInt();
            command.parseFrom(buffer, size);
            int type = command.getType().getValue();
            Part body = BODIES.get(type);
            if (body == null || !(Boolean) body.has.invoke(command)) {
                throw new IllegalArgumentException("no body");
            }
            Object message = body.get.invoke(command);
            out.append("{\"t\":").append(type).append(",\"f\":");
            message(message, out);
            out.append(",\"at\":").append(buffer.readerIndex());
            topic(message, out);
            if (type == 6 || type == 9) {
                metadata(buffer, out);
            }
            out.append('}');
        } catch (Throwable thrown) {
            out.setLength(begin);
            refusal(thrown, out);
        }
    }

    private static void topic(Object message, StringBuilder out) throws Exception {
        Method get = TOPICS.get(message.getClass());
        if (get == null) {
            return;
        }
        try {
            String read = TopicName.get((String) get.invoke(message)).toString();
            Json.text(read, out.append(",\"tn\":"));
        } catch (IllegalArgumentException invalid) {
            Json.text(String.valueOf(invalid.getMessage()), out.append(",\"tx\":"));
        }
    }

    private static void metadata(ByteBuf buffer, StringBuilder out) {
        int begin = out.length();
        try {
            MessageMetadata metadata = Commands.parseMessageMetadata(buffer);
            out.append(",\"n\":").append(metadata.getNumMessagesInBatch());
            out.append(",\"payload\":").append(buffer.readerIndex());
        } catch (Throwable thrown) {
            out.setLength(begin);
            Json.text(thrown.toString(), out.append(",\"mx\":"));
        }
    }

    private static void message(Object message, StringBuilder out) throws Exception {
        char separator = '{';
        for (Part part : shape(message.getClass())) {
            if (part.count != null) {
                int count = (Integer) part.count.invoke(message);
                if (count == 0) {
                    continue;
                }
                out.append(separator).append('"').append(part.number).append("\":");
                for (int at = 0; at < count; at++) {
                    value(part.get.invoke(message, at), out.append(at == 0 ? '[' : ','));
                }
                out.append(']');
            } else {
                if (!(Boolean) part.has.invoke(message)) {
                    continue;
                }
                out.append(separator).append('"').append(part.number).append("\":");
                value(part.get.invoke(message), out);
            }
            separator = ',';
        }
        out.append(separator == '{' ? "{}" : "}");
    }

    private static void value(Object value, StringBuilder out) throws Exception {
        if (value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof String) {
            Json.text((String) value, out);
        } else if (value instanceof byte[]) {
            out.append('"');
            for (byte each : (byte[]) value) {
                out.append(Character.forDigit(each >> 4 & 15, 16));
                out.append(Character.forDigit(each & 15, 16));
            }
            out.append('"');
        } else if (value instanceof Enum) {
            Integer number = NUMBERS.get(value);
            if (number == null) {
                number = (Integer) value.getClass().getMethod("getValue").invoke(value);
                NUMBERS.put(value, number);
            }
            out.append(number);
        } else {
            message(value, out);
        }
    }

    // -- names -------------------------------------------------------------------------------

    private static void name(String said, StringBuilder out) {
        int begin = out.length();
        try {
            TopicName read = TopicName.get(said);
            Json.text(read.toString(), out.append("{\"full\":"));
            Json.text(read.getDomain().value(), out.append(",\"domain\":"));
            Json.text(read.getTenant(), out.append(",\"tenant\":"));
            Json.text(read.getNamespace(), out.append(",\"namespace\":"));
            Json.text(read.getLocalName(), out.append(",\"local\":"));
            out.append(",\"partition\":").append(read.getPartitionIndex());
            Json.text(read.getPartitionedTopicName(), out.append(",\"base\":"));
            out.append('}');
        } catch (Throwable thrown) {
            out.setLength(begin);
            refusal(thrown, out);
        }
    }

    private static void pattern(String said, StringBuilder out) {
        try {
            com.google.re2j.Pattern.compile(said);
            out.append("{}");
        } catch (Throwable thrown) {
            refusal(thrown, out);
        }
    }

    // -- JSON --------------------------------------------------------------------------------

    private static void refusal(Throwable thrown, StringBuilder out) {
        boolean reflected = thrown instanceof InvocationTargetException;
        Json.refusal(reflected ? thrown.getCause() : thrown, out.append('{'));
        out.append('}');
    }

    // -- reflection --------------------------------------------------------------------------

    private static final String NUMBER = "_FIELD_NUMBER";

    private static List<Part> shape(Class<?> of) throws Exception {
        List<Part> shape = SHAPES.get(of);
        if (shape == null) {
            shape = new ArrayList<>(parts(of).values());
            SHAPES.put(of, shape);
            for (Part part : shape) {
                if (part.get.getName().equals("getTopic")) {
                    TOPICS.put(of, part.get);
                }
            }
        }
        return shape;
    }

    private static Map<Integer, Part> parts(Class<?> of) throws Exception {
        Map<Integer, Part> parts = new TreeMap<>();
        for (Field field : of.getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers()) || !field.getName().endsWith(NUMBER)) {
                continue;
            }
            field.setAccessible(true);
            int number = field.getInt(null);
            String name = field.getName();
            parts.put(number, part(of, number, plain(name.substring(0, name.length() - NUMBER.length()))));
        }
        return parts;
    }

    private static Part part(Class<?> of, int number, String name) {
        Method has = null;
        Method get = null;
        Method at = null;
        Method count = null;
        for (Method method : of.getMethods()) {
            String called = method.getName();
            int takes = method.getParameterCount();
            if (takes == 0 && called.startsWith("has") && plain(called.substring(3)).equals(name)) {
                has = method;
            } else if (takes == 0 && called.startsWith("get") && plain(called.substring(3)).equals(name)) {
                get = method;
            } else if (takes == 0 && called.startsWith("is") && plain(called.substring(2)).equals(name)) {
                get = method;
            } else if (called.endsWith("Count") && takes == 0 && called.startsWith("get")
                    && same(called.substring(3, called.length() - 5), name)) {
                count = method;
            } else if (called.endsWith("At") && takes == 1 && called.startsWith("get")
                    && same(called.substring(3, called.length() - 2), name)) {
                at = method;
            }
        }
        Part part = at != null && count != null ? new Part(number, null, at, count) : new Part(number, has, get, null);
        if (part.get == null || (part.has == null && part.count == null)) {
            throw new IllegalStateException("no accessors: " + of.getSimpleName() + " " + name);
        }
        return part;
    }

    /** Accessors of repeated fields are named by a singular and a plural. */
    private static boolean same(String called, String name) {
        return stem(plain(called)).equals(stem(name));
    }

    private static String stem(String name) {
        if (name.endsWith("ies")) {
            return name.substring(0, name.length() - 3) + "y";
        }
        return name.endsWith("s") ? name.substring(0, name.length() - 1) : name;
    }

    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }

    private static void describe(StringBuilder out) throws Exception {
        out.append("{\"types\":[");
        char separator = ' ';
        for (BaseCommand.Type type : BaseCommand.Type.values()) {
            out.append(separator).append(type.getValue());
            separator = ',';
        }
        out.append("],\"fields\":{");
        List<Class<?>> open = new ArrayList<>(List.of(BaseCommand.class));
        for (int at = 0; at < open.size(); at++) {
            Class<?> of = open.get(at);
            out.append(at == 0 ? "" : ",").append('"').append(of.getSimpleName()).append("\":[");
            separator = ' ';
            for (Part part : shape(of)) {
                out.append(separator).append(part.number);
                separator = ',';
                Class<?> returned = part.get.getReturnType();
                boolean message = returned.getPackage() == BaseCommand.class.getPackage() && !returned.isEnum();
                if (message && !open.contains(returned)) {
                    open.add(returned);
                }
            }
            out.append(']');
        }
        out.append("}}\n");
    }
}
