import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.zip.CRC32;
import org.apache.inlong.tubemq.corebase.cluster.Partition;
import org.apache.inlong.tubemq.corebase.cluster.SubscribeInfo;
import org.apache.inlong.tubemq.corebase.protobuf.generated.RPCProtos;
import org.apache.inlong.tubemq.corebase.rv.ProcessResult;
import org.apache.inlong.tubemq.corebase.utils.DataConverterUtil;
import org.apache.inlong.tubemq.corerpc.RpcDataPack;
import org.apache.inlong.tubemq.corerpc.codec.PbEnDecoder;
import org.apache.inlong.tubemq.corerpc.netty.ByteBufferInputStream;
import org.apache.inlong.tubemq.corerpc.netty.NettyProtocolDecoder;
import org.apache.inlong.tubemq.server.common.fielddef.WebFieldDef;
import org.apache.inlong.tubemq.server.common.paramcheck.PBParameterUtils;

/**
 * Prints how a server reads streams of requests, by the classes that its NettyRpcServer uses, and
 * the names in them, as master and brokers check them.
 *
 * Input: batches. A batch is its number of items (4 bytes), an item is how many bytes of it come at
 * once (4 bytes), its length (4 bytes) and its bytes. Output: a line of JSON for each item, at the
 * end of the batch. Field names are their numbers, bytes are hexadecimal.
 */
public final class TubeOracle {
    private static Field head;
    private static Field rest;

    public static void main(String[] arguments) throws Exception {
        head = NettyProtocolDecoder.class.getDeclaredField("packHeaderRead");
        rest = NettyProtocolDecoder.class.getDeclaredField("lastByteBuf");
        head.setAccessible(true);
        rest.setAccessible(true);
        StringBuilder out = new StringBuilder();
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        while (true) {
            int items;
            try {
                items = in.readInt();
            } catch (EOFException end) {
                return;
            }
            for (; items > 0; items--) {
                int piece = in.readInt();
                byte[] item = new byte[in.readInt()];
                in.readFully(item);
                stream(item, piece, out);
                out.append('\n');
            }
            System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
            System.out.flush();
            out.setLength(0);
        }
    }

    // -- frames ------------------------------------------------------------------------------

    /** Cuts a stream into frames, up to the first exception, and reads each of them. */
    private static void stream(byte[] data, int piece, StringBuilder out) throws Exception {
        NettyProtocolDecoder decoder = new NettyProtocolDecoder();
        EmbeddedChannel channel = new EmbeddedChannel(decoder);
        List<RpcDataPack> packs = new ArrayList<>();
        Throwable refusal = null;
        for (int at = 0; at < data.length && refusal == null; at += piece) {
            int size = Math.min(piece, data.length - at);
            try {
                channel.writeInbound(Unpooled.copiedBuffer(data, at, size));
            } catch (Throwable thrown) {
                refusal = thrown;
            }
            Object read = channel.readInbound();
            for (; read != null; read = channel.readInbound()) {
                packs.add((RpcDataPack) read);
            }
        }
        out.append("{\"frames\":[");
        for (int number = 0; number < packs.size(); number++) {
            pack(packs.get(number), out.append(number == 0 ? "" : ","));
        }
        ByteBuf waiting = (ByteBuf) rest.get(decoder);
        out.append("],\"waits\":").append(waiting == null ? 0 : waiting.readableBytes());
        out.append(",\"begun\":").append(head.getBoolean(decoder));
        if (refusal != null) {
            refusal(refusal, out.append(','));
        }
        out.append('}');
        channel.finishAndReleaseAll();
    }

    /** Reads a frame like NettyServerHandler.channelRead; any exception is answered with FATAL. */
    private static void pack(RpcDataPack pack, StringBuilder out) {
        CRC32 sum = new CRC32();
        int size = 0;
        for (ByteBuffer block : pack.getDataLst()) {
            size += block.remaining();
            sum.update(block.duplicate());
        }
        out.append("{\"serial\":").append(pack.getSerialNo());
        out.append(",\"size\":").append(size).append(",\"crc\":").append(sum.getValue());
        int begin = out.length();
        try {
            InputStream in = new ByteBufferInputStream(pack.getDataLst());
            RPCProtos.RpcConnHeader connection = RPCProtos.RpcConnHeader.parseDelimitedFrom(in);
            RPCProtos.RequestHeader header = RPCProtos.RequestHeader.parseDelimitedFrom(in);
            RPCProtos.RequestBody body = RPCProtos.RequestBody.parseDelimitedFrom(in);
            byte[] request = body.getRequest().toByteArray();
            Message message = (Message) PbEnDecoder.pbDecode(true, body.getMethod(), request);
            int left = 0;
            for (ByteBuffer block : pack.getDataLst()) {
                left += block.remaining();
            }
            out.append(",\"left\":").append(left);
            message(connection, out.append(",\"connection\":"));
            message(header, out.append(",\"header\":"));
            out.append(",\"method\":").append(body.getMethod());
            out.append(",\"timeout\":").append(body.getTimeout());
            message(message, out.append(",\"message\":"));
            out.append(",\"served\":").append(PbEnDecoder.isValidServiceTypeAndMethod(
                    header.getServiceType(), body.getMethod(), null));
            names(message, out);
            out.append('}');
        } catch (Throwable thrown) {
            out.setLength(begin);
            refusal(thrown, out.append(','));
            out.append('}');
        }
    }

    private static void message(Message message, StringBuilder out) {
        char separator = '{';
        for (Map.Entry<FieldDescriptor, Object> field : message.getAllFields().entrySet()) {
            out.append(separator).append('"').append(field.getKey().getNumber()).append("\":");
            if (field.getKey().isRepeated()) {
                char comma = '[';
                for (Object each : (List<?>) field.getValue()) {
                    value(each, out.append(comma));
                    comma = ',';
                }
                out.append(']');
            } else {
                value(field.getValue(), out);
            }
            separator = ',';
        }
        Set<Integer> unknown = new TreeSet<>(message.getUnknownFields().asMap().keySet());
        if (!unknown.isEmpty()) {
            out.append(separator).append("\"?\":").append(unknown);
            separator = ',';
        }
        out.append(separator == '{' ? "{}" : "}");
    }

    private static void value(Object value, StringBuilder out) {
        if (value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof String) {
            Json.text((String) value, out);
        } else if (value instanceof ByteString) {
            out.append('"');
            for (byte each : (ByteString) value) {
                out.append(Character.forDigit(each >> 4 & 15, 16));
                out.append(Character.forDigit(each & 15, 16));
            }
            out.append('"');
        } else if (value instanceof EnumValueDescriptor) {
            out.append(((EnumValueDescriptor) value).getNumber());
        } else {
            message((Message) value, out);
        }
    }

    // -- names -------------------------------------------------------------------------------

    /** A set that has all topics, as if each were deployed. */
    private static final class All extends HashSet<String> {
        @Override
        public boolean contains(Object topic) {
            return true;
        }
    }

    /** Reads what the services of master and brokers read first in requests. */
    private static void names(Message message, StringBuilder out) {
        out.append(",\"client\":");
        checked(WebFieldDef.CLIENTID, message, "clientId", out);
        out.append(",\"group\":");
        checked(WebFieldDef.GROUPNAME, message, "groupName", out);
        out.append(",\"topic\":");
        checked(WebFieldDef.TOPICNAME, message, "topicName", out);
        out.append(",\"topics\":");
        topics(message, out);
        out.append(",\"partitions\":");
        partitions(message, out);
        out.append(",\"subscriptions\":");
        subscriptions(message, out);
    }

    private static Object got(Message message, String name) {
        FieldDescriptor field = message.getDescriptorForType().findFieldByName(name);
        return field == null ? null : message.getField(field);
    }

    private static void checked(WebFieldDef field, Message message, String name, StringBuilder out) {
        ProcessResult result = new ProcessResult();
        Object said = got(message, name);
        boolean read = said != null && PBParameterUtils.getStringParameter(
                field, (String) said, new StringBuilder(), result);
        told(read ? result.getRetData() : null, out);
    }

    @SuppressWarnings("unchecked")
    private static void topics(Message message, StringBuilder out) {
        ProcessResult result = new ProcessResult();
        Object said = got(message, "topicList");
        boolean isConsumer = got(message, "groupName") != null;
        if (said == null || !isConsumer || !PBParameterUtils.checkConsumerTopicList(
                new All(), (List<String>) said, new StringBuilder(), result)) {
            out.append("null");
            return;
        }
        listed(new TreeSet<>((Set<String>) result.getRetData()), out);
    }

    @SuppressWarnings("unchecked")
    private static void partitions(Message message, StringBuilder out) {
        List<String> read = new ArrayList<>();
        try {
            Object said = got(message, "partitionInfo");
            for (Partition each : DataConverterUtil.convertPartitionInfo((List<String>) said)) {
                read.add(each.getTopic() + ":" + each.getPartitionId());
            }
        } catch (RuntimeException refused) {
            out.append("null");
            return;
        }
        listed(read, out);
    }

    @SuppressWarnings("unchecked")
    private static void subscriptions(Message message, StringBuilder out) {
        List<String> read = new ArrayList<>();
        try {
            Object said = got(message, "subscribeInfo");
            for (SubscribeInfo each : DataConverterUtil.convertSubInfo((List<String>) said)) {
                read.add(each.getPartition().toString());
            }
        } catch (RuntimeException refused) {
            out.append("null");
            return;
        }
        listed(read, out);
    }

    // -- JSON --------------------------------------------------------------------------------

    private static void told(Object text, StringBuilder out) {
        if (text == null) {
            out.append("null");
        } else {
            Json.text((String) text, out);
        }
    }

    private static void listed(Iterable<String> texts, StringBuilder out) {
        char separator = '[';
        for (String each : texts) {
            Json.text(each, out.append(separator));
            separator = ',';
        }
        out.append(separator == '[' ? "[]" : "]");
    }

    private static void refusal(Throwable thrown, StringBuilder out) {
        Json.refusal(thrown.getCause() == null ? thrown : thrown.getCause(), out);
    }
}
