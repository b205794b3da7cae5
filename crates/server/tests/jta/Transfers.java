import com.arjuna.ats.arjuna.common.CoreEnvironmentBeanException;
import com.arjuna.ats.arjuna.common.ObjectStoreEnvironmentBean;
import com.arjuna.ats.arjuna.common.arjPropertyManager;
import com.arjuna.ats.arjuna.common.recoveryPropertyManager;
import com.arjuna.ats.arjuna.recovery.RecoveryManager;
import com.arjuna.ats.arjuna.recovery.RecoveryModule;
import com.arjuna.ats.internal.jta.recovery.arjunacore.XARecoveryModule;
import com.arjuna.ats.jta.common.jtaPropertyManager;
import com.arjuna.ats.jta.recovery.XAResourceRecoveryHelper;
import com.arjuna.common.internal.util.propertyservice.BeanPopulator;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.sql.Connection;
import java.sql.Statement;
import java.util.List;
import javax.sql.XAConnection;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.mariadb.jdbc.MariaDbDataSource;

/**
 * An application with two databases and the transaction manager Narayana.
 *
 * <p>{@code Transfers STORE URL_A URL_B transfer FIRST COUNT STEP}: transfers FIRST to FIRST + COUNT - 1, each one
 * transaction over both databases. It stops at a step of the two-phase commit: at STEP in the first transfer, at the
 * step after it in the second, and so on; it prints {@code at STEP NAME}, continues after the next line from its
 * input, and recovers. Prints {@code committed N} or {@code failed N WHY} for each transfer.
 *
 * <p>{@code Transfers STORE URL_A URL_B recover}: lets the transaction manager finish what is in doubt.
 */
public final class Transfers {
    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));

    private static int step;
    private static int pauseAt;

    private Transfers() {}

    public static void main(String[] arguments) throws Exception {
        String[] urls = {arguments[1], arguments[2]};
        configure(arguments[0]);
        if (arguments[3].equals("recover")) {
            recover(urls);
        } else {
            int first = Integer.parseInt(arguments[4]);
            int count = Integer.parseInt(arguments[5]);
            int from = Integer.parseInt(arguments[6]);
            for (int n = 0; n < count; n++) {
                step = 0;
                pauseAt = from + n;
                transfer(urls, first + n);
                if (step > pauseAt) {
                    recover(urls);
                }
            }
        }
        System.exit(0);
    }

    private static void configure(String store) throws CoreEnvironmentBeanException {
        arjPropertyManager.getCoreEnvironmentBean().setNodeIdentifier("cohort");
        for (String name : new String[] {null, "communicationStore", "stateStore"}) {
            ObjectStoreEnvironmentBean bean = name == null
                    ? BeanPopulator.getDefaultInstance(ObjectStoreEnvironmentBean.class)
                    : BeanPopulator.getNamedInstance(ObjectStoreEnvironmentBean.class, name);
            bean.setObjectStoreDir(store);
        }
        var recovery = recoveryPropertyManager.getRecoveryEnvironmentBean();
        recovery.setRecoveryBackoffPeriod(1);
        recovery.setRecoveryModuleClassNames(List.of(
                "com.arjuna.ats.internal.arjuna.recovery.AtomicActionRecoveryModule",
                "com.arjuna.ats.internal.jta.recovery.arjunacore.XARecoveryModule"));
        var jta = jtaPropertyManager.getJTAEnvironmentBean();
        jta.setXaRecoveryNodes(List.of("cohort"));
        jta.setOrphanSafetyInterval(0);
        jta.setXaResourceOrphanFilterClassNames(List.of(
                "com.arjuna.ats.internal.jta.recovery.arjunacore.JTATransactionLogXAResourceOrphanFilter",
                "com.arjuna.ats.internal.jta.recovery.arjunacore.JTANodeNameXAResourceOrphanFilter"));
    }

    private static void transfer(String[] urls, int n) {
        XAConnection[] connections = new XAConnection[2];
        try {
            var manager = com.arjuna.ats.jta.TransactionManager.transactionManager();
            manager.begin();
            try {
                for (int place = 0; place < 2; place++) {
                    connections[place] = new MariaDbDataSource(urls[place]).getXAConnection();
                    Connection connection = connections[place].getConnection();
                    manager.getTransaction().enlistResource(new Watched(connections[place].getXAResource(), "AB".charAt(place)));
                    try (Statement statement = connection.createStatement()) {
                        String sign = place == 0 ? "-" : "+";
                        statement.executeUpdate("UPDATE account SET balance = balance " + sign + " 1 WHERE id = 1");
                        statement.executeUpdate("INSERT INTO done VALUES (" + n + ")");
                    }
                }
            } catch (Exception error) {
                manager.rollback();
                throw error;
            }
            manager.commit();
            System.out.println("committed " + n);
        } catch (Exception error) {
            System.out.println("failed " + n + " " + error.toString().replace('\n', ' '));
        } finally {
            for (XAConnection connection : connections) {
                try {
                    if (connection != null) {
                        connection.close();
                    }
                } catch (Exception error) {
                    // Its server is gone.
                }
            }
        }
    }

    /**
     * Stops before and after each step. Like connection pools, maps a lost connection to XAER_RMFAIL; the driver reports
     * it with the code 0. The resource is not serializable, so the transaction manager finds it again by its xid.
     */
    private record Watched(XAResource inner, char name) implements XAResource {
        private interface Step {
            void run() throws XAException;
        }

        private void step(String what, Step step) throws XAException {
            pass("before " + what + " " + name);
            try {
                step.run();
            } catch (XAException error) {
                if (error.errorCode == 0) {
                    error.errorCode = XAException.XAER_RMFAIL;
                }
                throw error;
            } finally {
                pass("after " + what + " " + name);
            }
        }

        @Override
        public void start(Xid xid, int flags) throws XAException {
            step("start", () -> inner.start(xid, flags));
        }

        @Override
        public void end(Xid xid, int flags) throws XAException {
            step("end", () -> inner.end(xid, flags));
        }

        @Override
        public int prepare(Xid xid) throws XAException {
            int[] vote = new int[1];
            step("prepare", () -> vote[0] = inner.prepare(xid));
            return vote[0];
        }

        @Override
        public void commit(Xid xid, boolean onePhase) throws XAException {
            step("commit", () -> inner.commit(xid, onePhase));
        }

        @Override
        public void rollback(Xid xid) throws XAException {
            step("rollback", () -> inner.rollback(xid));
        }

        @Override
        public Xid[] recover(int flag) throws XAException {
            return inner.recover(flag);
        }

        @Override
        public void forget(Xid xid) throws XAException {
            inner.forget(xid);
        }

        @Override
        public boolean isSameRM(XAResource other) {
            return false;
        }

        @Override
        public int getTransactionTimeout() throws XAException {
            return inner.getTransactionTimeout();
        }

        @Override
        public boolean setTransactionTimeout(int seconds) throws XAException {
            return inner.setTransactionTimeout(seconds);
        }
    }

    private static void pass(String what) {
        if (step++ == pauseAt) {
            System.out.println("at " + pauseAt + " " + what);
            try {
                INPUT.readLine();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    private static void recover(String[] urls) throws Exception {
        RecoveryManager manager = RecoveryManager.manager(RecoveryManager.DIRECT_MANAGEMENT);
        manager.initialize();
        XAConnection[] connections = new XAConnection[2];
        XAResource[] resources = new XAResource[2];
        for (int place = 0; place < 2; place++) {
            connections[place] = new MariaDbDataSource(urls[place]).getXAConnection();
            resources[place] = connections[place].getXAResource();
        }
        XAResourceRecoveryHelper helper = new XAResourceRecoveryHelper() {
            @Override
            public boolean initialise(String parameter) {
                return true;
            }

            @Override
            public XAResource[] getXAResources() {
                return resources;
            }
        };
        for (RecoveryModule module : manager.getModules()) {
            if (module instanceof XARecoveryModule ours) {
                ours.addXAResourceRecoveryHelper(helper);
                // The first scan finishes transactions in doubt, the second one orphaned branches.
                manager.scan();
                manager.scan();
                ours.removeXAResourceRecoveryHelper(helper);
            }
        }
        for (XAConnection connection : connections) {
            connection.close();
        }
        System.out.println("recovered");
    }
}
