import io.debezium.connector.mariadb.MariaDbConnector;
import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.spi.OffsetCommitPolicy;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HexFormat;
import java.util.Properties;
import java.util.StringJoiner;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Debezium's embedded engine with its MariaDB connector as a reader of Cohort's stream: `Client.java PORT FOLDER`. It stores its offsets in the folder.
 *
 * main.rs describes the output. The program exits when its connection ends, and the test restarts it.
 */
public class Client {
    static final DateTimeFormatter MOMENT = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS").withZone(ZoneOffset.UTC);

    static String time(long micros) {
        long rest = Math.abs(micros), seconds = rest / 1_000_000;
        return String.format("%s%02d:%02d:%02d.%06d", micros < 0 ? "-" : "", seconds / 3600, seconds / 60 % 60, seconds % 60, rest % 1_000_000);
    }

    static long littleEndian(byte[] bytes) {
        long number = 0;
        for (int at = bytes.length - 1; at >= 0; at--) {
            number = number << 8 | bytes[at] & 0xff;
        }
        return number;
    }

    static String text(Field field, Object value) {
        String type = field.schema().name();
        return switch (type == null ? "" : type) {
            case "io.debezium.time.Date" -> LocalDate.ofEpochDay((Integer) value).toString();
            case "io.debezium.time.MicroTime" -> time((Long) value);
            case "io.debezium.time.MicroTimestamp" ->
                MOMENT.format(Instant.EPOCH.plus((Long) value, java.time.temporal.ChronoUnit.MICROS));
            case "io.debezium.time.ZonedTimestamp" -> MOMENT.format(OffsetDateTime.parse((String) value));
            case "io.debezium.data.Bits" -> Long.toString(littleEndian((byte[]) value));
            default -> value.toString();
        };
    }

    static String row(Struct values) {
        StringJoiner words = new StringJoiner(" ");
        HexFormat hex = HexFormat.of();
        for (Field field : values.schema().fields()) {
            Object value = values.get(field);
            boolean isBinary = field.name().equals("bin") || field.name().equals("bl");
            String word = value == null ? "-"
                : isBinary ? value.toString() : hex.formatHex(text(field, value).getBytes(StandardCharsets.UTF_8));
            words.add(word.isEmpty() ? "=" : word);
        }
        return words.toString();
    }

    static void tell(SourceRecord record) {
        Struct change = (Struct) record.value();
        if (change == null || change.schema().field("op") == null) {
            return; // tombstones, schema changes, heartbeats
        }
        Struct source = change.getStruct("source"), before = change.getStruct("before"), after = change.getStruct("after");
        String table = source.getString("table");
        StringBuilder out = new StringBuilder();
        switch (change.getString("op")) {
            case "r", "c" -> out.append("insert\t" + table + "\t" + row(after) + "\n");
            case "u" -> out.append("update\t" + table + "\t" + row(before) + "\t" + row(after) + "\n");
            case "d" -> out.append("delete\t" + table + "\t" + row(before) + "\n");
            default -> throw new IllegalStateException(change.toString());
        }
        Object gtid = source.get("gtid");
        if (gtid != null) {
            out.insert(0, "begin\t" + gtid + "\n");
        }
        out.append("commit\t" + record.sourceOffset().get("file") + "\t" + record.sourceOffset().get("pos") + "\t\n");
        System.out.print(out);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.putAll(java.util.Map.ofEntries(
            java.util.Map.entry("name", "cdc"),
            java.util.Map.entry("connector.class", MariaDbConnector.class.getName()),
            java.util.Map.entry("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore"),
            java.util.Map.entry("offset.storage.file.filename", arguments[1] + "/offsets"),
            java.util.Map.entry("offset.flush.interval.ms", "0"),
            java.util.Map.entry("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory"),
            java.util.Map.entry("schema.history.internal.file.filename", arguments[1] + "/schema"),
            java.util.Map.entry("errors.max.retries", "0"),
            java.util.Map.entry("database.hostname", "127.0.0.1"),
            java.util.Map.entry("database.port", arguments[0]),
            java.util.Map.entry("database.user", "root"),
            java.util.Map.entry("database.password", ""),
            java.util.Map.entry("database.ssl.mode", "disabled"),
            java.util.Map.entry("database.server.id", "73"),
            java.util.Map.entry("database.include.list", "cdc"),
            java.util.Map.entry("topic.prefix", "cohort"),
            java.util.Map.entry("connect.keep.alive", "false"),
            java.util.Map.entry("decimal.handling.mode", "string"),
            java.util.Map.entry("bigint.unsigned.handling.mode", "precise"),
            java.util.Map.entry("time.precision.mode", "adaptive_time_microseconds"),
            java.util.Map.entry("binary.handling.mode", "hex")));
        try (DebeziumEngine<ChangeEvent<SourceRecord, SourceRecord>> engine = DebeziumEngine.create(Connect.class)
            .using(settings)
            .using(OffsetCommitPolicy.always())
            .notifying(event -> tell(event.value()))
            .using((isFine, message, error) -> {
                System.err.println(message);
                // Otherwise its threads would keep running.
                Runtime.getRuntime().halt(1);
            })
            .build()) {
            engine.run();
        }
    }
}
