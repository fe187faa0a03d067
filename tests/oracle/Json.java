/** Writes JSON in ASCII. */
final class Json {
    private static final int LONGEST = 200;

    private Json() {}

    /** Writes the members that say why something was refused: an exception's name and text. */
    static void refusal(Throwable cause, StringBuilder out) {
        text(cause.getClass().getSimpleName(), out.append("\"ex\":"));
        String told = String.valueOf(cause.getMessage());
        text(told.length() > LONGEST ? told.substring(0, LONGEST) : told, out.append(",\"told\":"));
    }

    static void text(String text, StringBuilder out) {
        out.append('"');
        for (int at = 0; at < text.length(); at++) {
            char each = text.charAt(at);
            if (each == '"' || each == '\\') {
                out.append('\\').append(each);
            } else if (each < 32 || each > 126) {
                out.append("\\u");
                for (int shift = 12; shift >= 0; shift -= 4) {
                    out.append(Character.forDigit(each >> shift & 15, 16));
                }
            } else {
                out.append(each);
            }
        }
        out.append('"');
    }
}
