import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;

/** Logs in over TLS, verifies the server, asks what it is encrypted with, and calls a procedure: DRIVER PORT TRUSTSTORE. */
public class Client {
    public static void main(String[] args) throws Exception {
        String port = args[1];
        String url = switch (args[0]) {
            // Without an authority the server must prove with the password that the certificate is its own.
            case "mariadb" -> "jdbc:mariadb://localhost:" + port + "/?sslMode=verify-full"
                    + (args[2].equals("-") ? "" : "&trustStore=" + args[2] + "&trustStorePassword=changeit");
            default -> "jdbc:mysql://localhost:" + port + "/?sslMode=VERIFY_IDENTITY&trustCertificateKeyStoreUrl=file:"
                    + args[2] + "&trustCertificateKeyStorePassword=changeit&fallbackToSystemTrustStore=false";
        };
        try (Connection connection = DriverManager.getConnection(url, "driver", "secret");
                ResultSet rows = connection.createStatement().executeQuery("SHOW SESSION STATUS LIKE 'Ssl_cipher'")) {
            rows.next();
            System.out.println("encrypted " + rows.getString(2));
            if (!args[2].equals("-")) {
                call(connection);
            }
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                System.err.println(cause.getMessage());
            }
            System.exit(1);
        }
    }

    /** Calls a procedure with IN, INOUT and OUT parameters, which also returns a row. */
    private static void call(Connection connection) throws SQLException {
        connection.setCatalog("test");
        try (CallableStatement call = connection.prepareCall("{CALL answer(?, ?, ?)}")) {
            call.setInt(1, 7);
            call.setInt(2, 5);
            call.registerOutParameter(2, Types.INTEGER);
            call.registerOutParameter(3, Types.VARCHAR);
            call.execute();
            ResultSet rows = call.getResultSet();
            rows.next();
            int first = rows.getInt(1);
            while (call.getMoreResults() || call.getUpdateCount() != -1) {
                // The OUT parameters follow the results.
            }
            System.out.println("called " + first + " " + call.getInt(2) + " " + call.getString(3));
        }
        try (CallableStatement call = connection.prepareCall("{CALL refuse()}")) {
            call.execute();
        } catch (SQLException error) {
            System.out.println("refused " + error.getErrorCode() + " " + error.getSQLState());
        }
    }
}
