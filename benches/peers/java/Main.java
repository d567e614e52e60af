import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/**
 * The JDK's com.sun.net.httpserver: {@code Main ADDR cached} or {@code Main ADDR fixed[:THREADS]}.
 *
 * <p>The JDK has no JSON, so a small strict reader of the one shape that is asked for stands here.
 * System properties that the start command sets: no Nagle, and idle connections kept as the other
 * servers keep them.
 */
public class Main {
    static final String RESOURCE = "/api/v1/resource/";
    static final String TEXT = "text/plain; charset=utf-8";
    static final String JSON = "application/json";
    static final byte[] HELLO = "Hello, World!".getBytes(StandardCharsets.UTF_8);
    static final byte[] HEALTH = "ok".getBytes(StandardCharsets.UTF_8);
    static final byte[] VERSION = "{\"server\":\"java\"}".getBytes(StandardCharsets.UTF_8);

    static void send(HttpExchange exchange, int status, String type, byte[] body) throws IOException {
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(status, body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    static void refuse(HttpExchange exchange, int status, String error) throws IOException {
        byte[] body = ("{\"error\":\"" + error + "\"}").getBytes(StandardCharsets.UTF_8);
        send(exchange, status, JSON, body);
    }

    static void create(HttpExchange exchange, String text) throws IOException {
        String token = exchange.getRequestHeaders().getFirst("Authorization");
        if (token == null || token.length() <= 7 || !token.regionMatches(true, 0, "bearer ", 0, 7)) {
            refuse(exchange, 401, "Unauthorized");
            return;
        }
        long id;
        try {
            if (text.startsWith("+")) throw new NumberFormatException();
            id = Long.parseUnsignedLong(text);
        } catch (NumberFormatException e) {
            refuse(exchange, 400, "Invalid id");
            return;
        }
        Resource data = Resource.read(exchange.getRequestBody().readAllBytes());
        if (data == null) {
            refuse(exchange, 422, "Invalid body");
            return;
        }
        StringBuilder out = new StringBuilder(96);
        out.append("{\"status\":\"success\",\"id\":").append(Long.toUnsignedString(id));
        out.append(",\"data\":{\"name\":");
        quote(out, data.name);
        out.append(",\"active\":").append(data.active).append("}}");
        send(exchange, 200, JSON, out.toString().getBytes(StandardCharsets.UTF_8));
    }

    static void quote(StringBuilder out, String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < 0x20) out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        }
        out.append('"');
    }

    static void route(HttpExchange exchange) throws IOException {
        String method = exchange.getRequestMethod();
        String path = exchange.getRequestURI().getRawPath();
        boolean get = method.equals("GET");
        if (get && path.equals("/")) send(exchange, 200, TEXT, HELLO);
        else if (method.equals("POST") && path.startsWith(RESOURCE)) {
            create(exchange, path.substring(RESOURCE.length()));
        } else if (get && path.equals("/health")) send(exchange, 200, TEXT, HEALTH);
        else if (get && path.equals("/version")) send(exchange, 200, JSON, VERSION);
        else refuse(exchange, 404, "Not Found");
    }

    public static void main(String[] args) throws IOException {
        String addr = args.length > 0 ? args[0] : "127.0.0.1:8080";
        String pool = args.length > 1 ? args[1] : "cached";
        int colon = addr.lastIndexOf(':');
        int port = Integer.parseInt(addr.substring(colon + 1));
        HttpServer server = HttpServer.create(new InetSocketAddress(addr.substring(0, colon), port), 4096);
        int threads = pool.startsWith("fixed:") ? Integer.parseInt(pool.substring(6)) : 8;
        server.setExecutor(pool.equals("cached")
            ? Executors.newCachedThreadPool() : Executors.newFixedThreadPool(threads));
        server.createContext("/", Main::route);
        server.start();
        System.out.println("listening on " + addr);
    }

    /** The body of the POST, and a strict reader of it. Other members are skipped if they are scalars. */
    static final class Resource {
        String name;
        Boolean active;
        private final String in;
        private int at;

        private Resource(String in) {
            this.in = in;
        }

        static Resource read(byte[] body) {
            try {
                Resource r = new Resource(
                    StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString());
                r.object();
                return r.name == null || r.active == null ? null : r;
            } catch (CharacterCodingException | IllegalArgumentException | StringIndexOutOfBoundsException e) {
                return null;
            }
        }

        private char peek() {
            while (" \t\r\n".indexOf(in.charAt(at)) >= 0) at++;
            return in.charAt(at);
        }

        private void take(char c) {
            if (peek() != c) throw new IllegalArgumentException();
            at++;
        }

        private boolean word(String word) {
            if (!in.startsWith(word, at)) return false;
            at += word.length();
            return true;
        }

        private void object() {
            take('{');
            if (peek() != '}') {
                member();
                while (peek() == ',') {
                    at++;
                    member();
                }
            }
            take('}');
            if (!in.substring(at).isBlank()) throw new IllegalArgumentException();
        }

        private void member() {
            peek();
            String key = string();
            take(':');
            peek();
            if (key.equals("name")) name = string();
            else if (key.equals("active")) active = bool();
            else if (peek() == '"') string();
            else if (!word("null") && !number()) bool();
        }

        private boolean bool() {
            if (word("true")) return true;
            if (word("false")) return false;
            throw new IllegalArgumentException();
        }

        private boolean number() {
            int start = at;
            while ("+-.eE0123456789".indexOf(in.charAt(at)) >= 0) at++;
            if (at > start) Double.parseDouble(in.substring(start, at));
            return at > start;
        }

        private String string() {
            if (in.charAt(at++) != '"') throw new IllegalArgumentException();
            int start = at;
            while (in.charAt(at) != '"' && in.charAt(at) != '\\' && in.charAt(at) >= 0x20) at++;
            if (in.charAt(at) == '"') return in.substring(start, at++);
            StringBuilder out = new StringBuilder(in.substring(start, at));
            for (;;) {
                char c = in.charAt(at++);
                if (c == '"') return out.toString();
                if (c < 0x20) throw new IllegalArgumentException();
                out.append(c == '\\' ? escape() : c);
            }
        }

        private char escape() {
            char c = in.charAt(at++);
            if (c == 'u') {
                at += 4;
                return (char) Integer.parseInt(in.substring(at - 4, at), 16);
            }
            int known = "\"\\/bfnrt".indexOf(c);
            if (known < 0) throw new IllegalArgumentException();
            return "\"\\/\b\f\n\r\t".charAt(known);
        }
    }
}
