import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;

/** Logs in over TLS, verifies the server, and asks what it is encrypted with: DRIVER PORT TRUSTSTORE. */
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
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                System.err.println(cause.getMessage());
            }
            System.exit(1);
        }
    }
}
