import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;

/** Reads lines "KEY VERSION request|response HEX", and answers each with what Kafka's own class of
 * that message reads: "LEFT JSON", the bytes that it has not read and its fields; with "removed" if
 * the class does not have the version any more; or with "! EXCEPTION". */
public class Oracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ", -1)));
            System.out.flush();
        }
    }

    private static String answer(String[] asked) {
        short version = Short.parseShort(asked[1]);
        ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(asked[0]));
        ApiMessage message = asked[2].equals("request") ? type.newRequest() : type.newResponse();
        if (version < message.lowestSupportedVersion()) {
            return "removed";
        }
        ByteBuffer body = ByteBuffer.wrap(HexFormat.of().parseHex(asked[3]));
        try {
            message.read(new ByteBufferAccessor(body), version);
            Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
            Object json = converter.getMethod("write", message.getClass(), short.class)
                .invoke(null, message, version);
            return body.remaining() + " " + (JsonNode) json;
        } catch (Exception e) {
            return "! " + e;
        }
    }
}
